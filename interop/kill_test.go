//go:build interop

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// killPlaces are where a run is killed, each as often as there is such an operation.
var killPlaces = []string{
	"after close bucket-*/*", // an output
	"before create manifest/*",
	"half write manifest/*",
	"after close manifest/*",
	"before put snapshot/snap*",
	"named put snapshot/snap*", // with its hidden file still there
	"after put snapshot/snap*",
	"before put snapshot/LATEST",
	"after put snapshot/LATEST",
}

// killCase is a table before a run was killed there.
type killCase struct {
	name string
	spec tableSpec
	rows [][]string // batches
	more []string   // what Java writes after the kill
	want []string   // before that
}

// TestKilled kills tablectl at each step of a compaction. Java reads the rows that were there, appends, and
// reads them all after the next run, to which the leftovers do not matter.
func TestKilled(t *testing.T) {
	program := buildWithFailpoints(t)
	batches := numberedBatches(7, 20)
	rewritten := make([]string, 0, len(batches[0]))
	for _, row := range batches[0] {
		rewritten = append(rewritten, strings.Replace(row, `"s":"`, `"s":"again `, 1))
	}
	keyed := slices.Clone(numberedFields)
	keyed[0].Type += " NOT NULL"
	cases := []killCase{
		{
			name: "append", spec: tableSpec{Fields: numberedFields, Options: map[string]string{"compaction.min.file-num": "2"}},
			rows: batches[:6], want: sortedRows(batches[:6]...),
		},
		{
			name: "buckets", spec: tableSpec{Fields: numberedFields, Options: map[string]string{"bucket": "2", "bucket-key": "id", "compaction.min.file-num": "2"}},
			rows: batches[:6], want: sortedRows(batches[:6]...),
		},
		{
			name: "keys", spec: tableSpec{Fields: keyed, PrimaryKeys: []string{"id"}, Options: map[string]string{"bucket": "2"}},
			rows: append(slices.Clone(batches[:6]), rewritten), want: sortedRows(append(slices.Clone(batches[1:6]), rewritten)...),
		},
	}
	var all []killedRun
	for _, c := range cases {
		c.more = batches[6]
		all = append(all, killEverywhere(t, program, c)...)
	}
	finishKilled(t, all)
}

// buildWithFailpoints builds the program that can be killed or stopped at an operation.
func buildWithFailpoints(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tablectl")
	if out, err := exec.Command("go", "build", "-tags", "failpoints", "-o", program, "..").CombinedOutput(); err != nil {
		t.Fatalf("building tablectl with failpoints: %v\n%s", err, out)
	}
	return program
}

// killedRun is a copy of a table after a kill.
type killedRun struct {
	killCase
	point string
	table table
}

// killEverywhere makes the table and kills a run on a copy at every place.
func killEverywhere(t *testing.T, program string, c killCase) []killedRun {
	t.Helper()
	template := createTable(t, c.spec)
	write(t, template, c.rows...)
	var all []killedRun
	for _, place := range killPlaces {
		for n := 1; ; n++ {
			k := killedRun{c, fmt.Sprintf("%s %d", place, n), template.clone(t)}
			cmd := exec.Command(program, "compact", k.table.path, "--parallelism", "1")
			cmd.Env = append(os.Environ(), "TABLECTL_FAILPOINT=kill "+k.point)
			out, err := cmd.CombinedOutput()
			if err == nil {
				if n == 1 {
					t.Errorf("%s: there is no operation %s", c.name, place)
				}
				break
			}
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
				t.Fatalf("%s, %s: it ended with %v: %s", c.name, k.point, cmd.ProcessState, out)
			}
			all = append(all, k)
		}
	}
	t.Logf("%s: killed at %d points", c.name, len(all))
	return all
}

// finishKilled has Java read and append, tablectl compact, and Java read again.
func finishKilled(t *testing.T, all []killedRun) {
	t.Helper()
	dir := t.TempDir()
	out := func(when string, i int) string { return filepath.Join(dir, fmt.Sprintf("%s-%d", when, i)) }
	var first, last []javaStep
	for i, k := range all {
		first = append(first, step("dump", k.table, "--out", out("killed", i)), writeStep(t, k.table, k.more))
		last = append(last, step("dump", k.table, "--out", out("finished", i)))
	}
	java(t, first...)
	for _, k := range all {
		if o := compact(t, k.table); o.code != exitDone || o.result.Status != "committed" {
			t.Errorf("%s, killed %s: the next run: %v, want status committed", k.name, k.point, o)
		}
	}
	java(t, last...)
	for i, k := range all {
		t.Run(k.name+" "+k.point, func(t *testing.T) {
			requireRows(t, readRows(t, out("killed", i)), k.want)
			requireRows(t, readRows(t, out("finished", i)), sortedRows(k.want, k.more))
		})
	}
}
