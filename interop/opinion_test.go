//go:build interop

package interop

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestSecondOpinion shows that a table that tablectl compacted is one that Java goes on with: it appends
// rows and compacts again, tablectl's files included, and all readers get the old rows and the new.
func TestSecondOpinion(t *testing.T) {
	// fewest is how many commits Java's compaction needs to have something to do.
	const fewest = 5
	cases := fixtures(t, "append-unpartitioned", "append-bucketed", "append-partitioned")
	readings := make([]reading, len(cases))
	wants := make([][]string, len(cases))
	for i, f := range cases {
		tbl := copyTable(t, f.dir, f.branch)
		mustCommit(t, tbl)
		rows := f.rowsAfter(t, full)
		batches := slices.Collect(slices.Chunk(rows, (len(rows)+fewest-1)/fewest))
		write(t, tbl, batches...)

		out := filepath.Join(t.TempDir(), "compact.json")
		java(t, step("compact", tbl, "--full", "--no-expire", "--out", out))
		var did struct {
			Before int64 `json:"snapshot_before"`
			After  int64 `json:"snapshot_after"`
		}
		readJSON(t, out, &did)
		if did.After != did.Before+1 {
			t.Errorf("%s: Java's compaction found nothing to do at snapshot %d", f.name, did.Before)
		}
		readings[i] = reading{table: tbl}
		wants[i] = sortedRows(rows, rows)
	}
	readouts := readAll(t, readings)
	for i, f := range cases {
		t.Run(f.name, func(t *testing.T) { checkRows(t, readouts, i, wants[i]) })
	}
}
