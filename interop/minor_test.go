//go:build interop

package interop

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// TestMinor shows, for every fixture that can be compacted, that --strategy minor leaves the rows as all
// readers see them, and where it is known what Java's own pick takes, that the same files are picked and the
// same commit is made of them.
func TestMinor(t *testing.T) {
	type run struct {
		fixture
		table table
		compaction
	}
	var runs []run
	var readings []reading
	for _, f := range fixtures(t, "*") {
		tbl := copyTable(t, f.dir, f.branch)
		c := observe(t, tbl, "--strategy", "minor")
		if c.err != nil || unsupported(tbl.latestSchema(t), readList(t, c.filesBefore)) != "" {
			continue // TestFixtures tells how these end
		}
		runs = append(runs, run{f, tbl, c})
		readings = append(readings, reading{table: tbl})
	}
	readouts := readAll(t, readings)
	for i, r := range runs {
		options := sortReadouts(t, r.table, readouts, i)
		t.Run(r.name, func(t *testing.T) {
			switch o := r.outcome; {
			case o.code != exitDone || o.result.Error != nil:
				t.Fatalf("%v, want exit %d", o, exitDone)
			case r.committed():
				checkCommit(t, r.compaction)
				checkRows(t, readouts, i, sortSets(t, options, r.rowsAfter(t, minor)))
			default:
				requireSameTree(t, r.treeBefore, r.treeAfter)
				checkRows(t, readouts, i, sortSets(t, options, r.rowsBefore(t)))
			}
			if _, err := os.Stat(r.file(minorFile)); r.branch == "" && !errors.Is(err, fs.ErrNotExist) {
				checkAsJava(t, r.fixture, minorFile, r.filesAfter)
			}
		})
	}
}
