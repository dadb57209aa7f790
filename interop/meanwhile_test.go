//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// meanwhile is what Java does while a compaction stands still.
type meanwhile struct {
	name  string
	steps func(t *testing.T, tbl table) []javaStep
	lost  string // partitions that the run gives up; "all" leaves nothing to commit
	// unclear says that Java takes the planned snapshot back: a run that has begun to
	// publish may end with 6 then.
	unclear bool
	refused bool // the next run refuses the table
}

var partitionedFields = []field{{"id", "INT NOT NULL"}, {"p", "STRING NOT NULL"}, {"v", "STRING"}}

// partitionedRows are rows of one partition, n ids from the first on.
func partitionedRows(partition string, first, n int, value string) []string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":%d,"p":"%s","v":"%s %d"}`, first+i, partition, value, first+i)
	}
	return rows
}

func writes(batches ...[]string) func(*testing.T, table) []javaStep {
	return func(t *testing.T, tbl table) (steps []javaStep) {
		for _, rows := range batches {
			steps = append(steps, writeStep(t, tbl, rows))
		}
		return steps
	}
}

func steps(lines ...[]string) func(*testing.T, table) []javaStep {
	return func(_ *testing.T, tbl table) (all []javaStep) {
		for _, l := range lines {
			all = append(all, step(l[0], tbl, l[1:]...))
		}
		return all
	}
}

var meanwhiles = []meanwhile{
	{name: "appends", steps: writes(partitionedRows("a", 1000, 5, "new"), partitionedRows("d", 0, 5, "new"))},
	{name: "overwrites a partition", lost: "a", steps: func(t *testing.T, tbl table) []javaStep {
		return []javaStep{append(writeStep(t, tbl, partitionedRows("a", 0, 3, "over")), "--overwrite")}
	}},
	{name: "drops a partition", lost: "b", steps: steps([]string{"drop-partition", "--partition", "p=b"})},
	{name: "compacts a partition", lost: "c", steps: steps([]string{"compact", "--full", "--where", "p=c", "--no-expire", "--out", os.DevNull})},
	{name: "compacts all", lost: "all", steps: steps([]string{"compact", "--full", "--no-expire", "--out", os.DevNull})},
	{name: "compacts all and expires", lost: "all", steps: steps([]string{"compact", "--full", "--out", os.DevNull}, []string{"expire", "--retain", "1", "--out", os.DevNull})},
	{name: "appends and expires", steps: func(t *testing.T, tbl table) []javaStep {
		return []javaStep{writeStep(t, tbl, partitionedRows("a", 1000, 5, "new")), step("expire", tbl, "--retain", "1", "--out", os.DevNull)}
	}},
	{name: "adds a column", steps: steps([]string{"alter", "--changes", `[{"op":"addColumn","name":"w","type":"INT"}]`})},
	{name: "rolls back", lost: "all", unclear: true, steps: steps([]string{"rollback", "--to", "5"})},
	{name: "turns on deletion vectors", lost: "all", refused: true, steps: steps([]string{"alter", "--changes", `[{"op":"setOption","key":"deletion-vectors.enabled","value":"true"}]`})},
}

// rescale gives a partition another number of buckets, as INSERT OVERWRITE does.
var rescale = meanwhile{name: "rescales a partition", lost: "a", steps: func(t *testing.T, tbl table) []javaStep {
	return []javaStep{
		step("alter", tbl, "--changes", `[{"op":"setOption","key":"bucket","value":"4"}]`),
		append(writeStep(t, tbl, partitionedRows("a", 0, 9, "rescaled")), "--overwrite"),
	}
}}

// TestMeanwhile lets Java change a table while a compaction stands still after it was
// planned, or just before it publishes. Tasks whose files Java has changed are given
// up, the others are committed, and the rows are those that Java alone would have made.
func TestMeanwhile(t *testing.T) {
	program := buildWithFailpoints(t)
	for name, spec := range map[string]tableSpec{
		"append":  {Fields: partitionedFields, Options: map[string]string{"compaction.min.file-num": "2", "deletion-vectors.modifiable": "true"}},
		"buckets": {Fields: partitionedFields, Options: map[string]string{"bucket": "2", "bucket-key": "id", "compaction.min.file-num": "2"}},
		"keys":    {Fields: partitionedFields, PrimaryKeys: []string{"p", "id"}, Options: map[string]string{"bucket": "2"}},
	} {
		spec.PartitionKeys = []string{"p"}
		template := createTable(t, spec)
		for i := range 3 {
			for _, p := range []string{"a", "b", "c"} {
				write(t, template, partitionedRows(p, 20*i, 30, fmt.Sprint("batch ", i)))
			}
		}
		all := meanwhiles
		if name != "append" {
			all = append(slices.Clone(all), rescale)
		}
		for _, m := range all {
			if name != "append" && m.refused {
				continue // Java does not let it be turned on, or says that it needs other things
			}
			for when, pause := range map[string]string{"planned": "before create bucket-*/*", "publishing": "before put snapshot/snapshot-*"} {
				m := m
				if m.refused && when == "publishing" {
					m.lost = "" // which is not before the commit any more: there are no vectors yet
				}
				t.Run(name+", Java "+m.name+", "+when, func(t *testing.T) { m.race(t, program, template, pause) })
			}
		}
	}
}

func (m meanwhile) race(t *testing.T, program string, template table, pause string) {
	alone, tbl := template.clone(t), template.clone(t)
	java(t, m.steps(t, alone)...)
	goOn := filepath.Join(t.TempDir(), "go-on")
	type ended struct {
		outcome
		err error
	}
	end := make(chan ended, 1)
	go func() {
		o, err := runProgram(program, tbl, []string{"TABLECTL_FAILPOINT=pause " + pause + " 1 " + goOn}, "--parallelism", "1")
		end <- ended{o, err}
	}()
	for range 600 {
		if _, err := os.Stat(goOn + ".reached"); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	java(t, m.steps(t, tbl)...)
	if err := os.WriteFile(goOn, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o := <-end
	if o.err != nil {
		t.Fatal(o.err)
	}
	m.checkEnd(t, o.outcome)
	want := dump(t, alone)
	requireRows(t, dump(t, tbl), want)
	if o.code != exitUnknown {
		if got, javas := leftovers(t, tbl), leftovers(t, alone); len(got) != len(javas) {
			t.Errorf("left behind: %v; by Java alone: %v", got, javas)
		}
	}
	next := compact(t, tbl)
	if m.refused && next.code != exitUnsupported || !m.refused && next.code != exitDone {
		t.Errorf("the next run: %v", next)
	}
	requireRows(t, dump(t, tbl), want)
}

// checkEnd checks the exit code, and which partitions were given up.
func (m meanwhile) checkEnd(t *testing.T, o outcome) {
	t.Helper()
	lost := map[string]bool{}
	for _, l := range o.result.Lost {
		lost[l.Partition["p"]] = true
		if l.Message == "" {
			t.Errorf("no reason for the loss of %v", l.Partition)
		}
	}
	switch {
	case m.unclear && o.code == exitUnknown && o.result.Status == "unknown":
	case m.lost == "all":
		if o.code != exitLostRace || o.result.Status != "failed" {
			t.Errorf("%v, want a lost race", o)
		}
	case m.lost == "":
		if o.code != exitDone || o.result.Status != "committed" || len(lost) > 0 {
			t.Errorf("%v, lost %v; want a commit of everything", o, lost)
		}
	case o.code != exitPartly || o.result.Status != "committed" || len(lost) != 1 || !lost[m.lost]:
		t.Errorf("%v, lost %v; want a commit without %s", o, lost, m.lost)
	}
}

// leftovers are what tablectl inspect lists.
func leftovers(t *testing.T, tbl table) []string {
	t.Helper()
	out, err := exec.Command(tablectlBinary, "inspect", tbl.location(), "--leftovers", "-o", "json").Output()
	if err != nil {
		t.Fatalf("inspect: %v", err)
	}
	var document struct {
		Leftovers []struct {
			Path string `json:"path"`
		} `json:"leftovers"`
	}
	if err := json.Unmarshal(out, &document); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, l := range document.Leftovers {
		paths = append(paths, strings.TrimPrefix(l.Path, tbl.path))
	}
	return paths
}
