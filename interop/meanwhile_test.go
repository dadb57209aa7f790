//go:build interop

package interop

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

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
		var batches [][]string
		for i := range 3 {
			for _, p := range []string{"a", "b", "c"} {
				batches = append(batches, partitionedRows(p, 20*i, 30, fmt.Sprint("batch ", i)))
			}
		}
		write(t, template, batches...)
		for _, m := range meanwhiles {
			if len(m.kinds) > 0 && !slices.Contains(m.kinds, name) {
				continue
			}
			t.Run(name+", Java "+m.name, func(t *testing.T) {
				t.Parallel()
				m.test(t, program, template, spec)
			})
		}
	}
}

// test stops a run at both points. What follows the first pause is done before the
// attempts to publish after it.
func (m meanwhile) test(t *testing.T, program string, template table, spec tableSpec) {
	alone := template.clone(t)
	for _, steps := range m.steps {
		java(t, steps(t, alone, spec)...)
	}
	r := race{meanwhile: m, program: program, spec: spec, want: dump(t, alone)}
	var publishing []string
	for n := range m.steps {
		publishing = append(publishing, fmt.Sprint("before put snapshot/snapshot-* ", n+1))
	}
	t.Run("planned", func(t *testing.T) {
		r := r
		if r.early != "" {
			r.why = r.early
		}
		r.run(t, template.clone(t), append([]string{"before create bucket-*/* 1"}, publishing[:len(publishing)-1]...))
	})
	t.Run("publishing", func(t *testing.T) {
		r := r
		if r.late != "" {
			r.lost = strings.TrimPrefix(r.late, "nothing")
		}
		r.run(t, template.clone(t), publishing)
	})
}

// race is one run of tablectl beside Java.
type race struct {
	meanwhile
	program string
	spec    tableSpec
	want    []string // the rows in the end
	ours    []string // files that tablectl has written
}

// run starts tablectl, has Java do its steps at the pauses, and checks what comes out.
func (r race) run(t *testing.T, tbl table, pauses []string) {
	var points, files []string
	for i, pause := range pauses {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprint("go-on-", i)))
		points = append(points, "pause "+pause+" "+files[i])
	}
	type ended struct {
		outcome
		err error
	}
	end := make(chan ended, 1)
	seen := filesOf(t, tbl)
	go func() {
		o, err := runProgram(r.program, tbl, []string{"TABLECTL_FAILPOINT=" + strings.Join(points, ";")}, "--parallelism", "1")
		end <- ended{o, err}
	}()
	for i, steps := range r.steps {
		waitFor(t, files[i]+".reached")
		r.ours = append(r.ours, without(filesOf(t, tbl), seen)...)
		java(t, steps(t, tbl, r.spec)...)
		seen = append(filesOf(t, tbl), r.ours...)
		if err := os.WriteFile(files[i], nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := <-end
	if o.err != nil {
		t.Fatal(o.err)
	}
	r.ours = append(r.ours, without(filesOf(t, tbl), seen)...)
	r.checkEnd(t, o.outcome)
	requireRows(t, dump(t, tbl), r.want)
	r.checkFiles(t, tbl, o.outcome)
	next := compact(t, tbl)
	if r.refused && next.code != exitUnsupported || !r.refused && next.code != exitDone {
		t.Errorf("the next run: %v", next)
	}
	requireRows(t, dump(t, tbl), r.want)
}

// checkEnd checks the exit code, and which buckets were given up, and why.
func (r race) checkEnd(t *testing.T, o outcome) {
	t.Helper()
	lost := []string{}
	for _, l := range o.result.Lost {
		lost = append(lost, fmt.Sprint(l.Partition["p"], "/", l.Bucket))
		r.checkWhy(t, l.Message)
	}
	slices.Sort(lost)
	want := strings.Fields(r.lost)
	if r.spec.Options["bucket"] == "" { // a partition is one task
		want = slices.DeleteFunc(want, func(bucket string) bool { return strings.HasSuffix(bucket, "/1") })
	}
	switch {
	case r.unclear && o.code == exitUnknown && o.result.Status == "unknown":
	case r.lost == all:
		if o.code != exitLostRace || o.result.Status != "failed" {
			t.Fatalf("%v, want a lost race", o)
		}
		r.checkWhy(t, o.result.Error.Message)
	case len(want) == 0:
		if o.code != exitDone || o.result.Status != "committed" || len(lost) > 0 {
			t.Errorf("%v, lost %v; want a commit of everything", o, lost)
		}
	case o.code != exitPartly || o.result.Status != "committed" || !slices.Equal(lost, want):
		t.Errorf("%v, lost %v; want a commit without %v", o, lost, want)
	}
}

func (r race) checkWhy(t *testing.T, message string) {
	t.Helper()
	if r.why == "" || !strings.Contains(message, r.why) {
		t.Errorf("the reason is %q, want one with %q", message, r.why)
	}
}

// checkFiles makes sure that of what tablectl wrote only what it committed is there,
// and that nothing of it is listed as left behind.
func (r race) checkFiles(t *testing.T, tbl table, o outcome) {
	t.Helper()
	now := filesOf(t, tbl)
	var there []string
	for _, f := range r.ours {
		if slices.Contains(now, f) {
			there = append(there, f)
		}
	}
	data := 0
	for _, f := range there {
		if strings.HasSuffix(f, ".parquet") {
			data++
		}
	}
	switch {
	case o.code == exitUnknown:
		return
	case o.code == exitLostRace && len(there) > 0:
		t.Errorf("these files of a run that has lost are there: %v", there)
	case o.code != exitLostRace && data != o.result.FilesAdded:
		t.Errorf("%d data files were committed, %d are there: %v", o.result.FilesAdded, data, there)
	}
	for _, f := range leftovers(t, tbl) {
		if slices.Contains(r.ours, f) {
			t.Errorf("%s is left behind", f)
		}
	}
}

// waitFor waits until a file is there.
func waitFor(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not there: tablectl has never come to that operation", file)
		}
	}
}

// filesOf are the files of a table that may be there now; Java may be removing some.
func filesOf(t *testing.T, tbl table) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(tbl.path), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(path) != "LATEST" && filepath.Base(path) != "EARLIEST" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func without(files, others []string) []string {
	return slices.DeleteFunc(files, func(f string) bool { return slices.Contains(others, f) })
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
		paths = append(paths, l.Path)
	}
	return paths
}
