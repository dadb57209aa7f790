//go:build !race

// The processes that are killed have no race detector: it would only take time.

package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/avro/ocf"

	"tablectl/internal/fileio"
	"tablectl/internal/tabletest"
	"tablectl/snapshot"
	"tablectl/table"
)

// buildWithFailpoints builds the program that can be killed at a chosen operation.
func buildWithFailpoints(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tablectl")
	if out, err := exec.Command("go", "build", "-tags", "failpoints", "-o", program, "tablectl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// killed runs a compaction that is to be killed at a failpoint. It reports false
// when the run came to its end, which must be a good one then.
func killed(t *testing.T, program, location, failpoint string) bool {
	t.Helper()
	cmd := exec.Command(program, "compact", location, "--parallelism", "1")
	cmd.Env = append(os.Environ(), "TABLECTL_FAILPOINT="+failpoint)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("%s: it ended with %v: %s", failpoint, cmd.ProcessState, out)
	}
	return true
}

// TestKill kills the program at every operation that changes the table, before it,
// after it, and in the middle where it has one, until a run comes to its end.
func TestKill(t *testing.T) {
	program := buildWithFailpoints(t)
	for _, c := range []struct {
		kind, table string
		fewest      int // operations; fewer would mean that the test has missed some
	}{
		{"append", "append-unpartitioned", 28}, {"fixed buckets", "append-bucketed", 45}, {"primary key", "pk-dedup-write-only", 35},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			k := newKillTest(t, program, c.table)
			operations, points := 0, 0
			for _, where := range []string{"before change", "after change", "half write", "half put", "named put"} {
				n := 1
				for k.at(t, fmt.Sprintf("kill %s * %d", where, n), n) {
					n++
				}
				points += n - 1
				if strings.HasSuffix(where, "change") {
					operations = n - 1
				} else if n == 1 {
					t.Errorf("there was no place %s", where)
				}
			}
			t.Logf("killed at %d points, %d operations, %d states of the disk, %d of them with the snapshot", points, operations, len(k.states), k.published)
			if operations < c.fewest || k.published < 3 || k.published == len(k.states) {
				t.Errorf("%d operations, want at least %d; %d of %d states with the snapshot", operations, c.fewest, k.published, len(k.states))
			}
		})
	}
}

// killTest is a table and what is known of it.
type killTest struct {
	program   string
	dir       string              // of the table
	files     map[string][32]byte // as they were; the hint is none of them
	base      int64               // its latest snapshot
	rows      []string            // once it is compacted
	states    map[string]bool     // of the disk, that were looked at
	published int                 // of them, those with the snapshot
}

func newKillTest(t *testing.T, program, name string) *killTest {
	t.Helper()
	k := &killTest{program: program, states: map[string]bool{}, dir: tabletest.CopyTable(t, name)}
	k.files = tabletest.TreeHash(t, k.dir)
	delete(k.files, "snapshot/LATEST")
	_, k.rows = tabletest.Expected(t, name)
	k.base = latestOf(t, k.dir).ID
	if unused := notUsed(t, k.dir); len(unused) > 0 {
		t.Fatalf("the table has leftovers already: %v", unused)
	}
	return k
}

// at kills a run there and looks at what is left, then has another run finish the
// work. It reports false when the run came to its end.
func (k *killTest) at(t *testing.T, failpoint string, n int) bool {
	t.Helper()
	location := k.dir
	k.restore(t)
	wasKilled := killed(t, k.program, location, failpoint)
	// Most writes only reach a buffer: what is on disk then was there before, and what
	// comes of it need not be shown again.
	state := diskState(t, location)
	if k.states[state] {
		return wasKilled
	}
	k.states[state] = true
	left := notUsed(t, location)
	if !wasKilled && len(left) > 0 {
		t.Errorf("a run that came to its end has left %v", left)
	}
	k.check(t, failpoint, location, left, false)

	// Readers and writers find the snapshot with whatever hint there is.
	hint := filepath.Join(location, "snapshot", "LATEST")
	var err error
	switch n % 3 {
	case 1:
		err = os.Remove(hint)
	case 2:
		err = os.WriteFile(hint, []byte("1"), 0o666)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	runHere(t, "compact", location)
	k.check(t, failpoint+", and the next run", location, left, true)
	return wasKilled
}

// restore removes what the run before has added. What was there must not have been
// changed, which check looks at.
func (k *killTest) restore(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(k.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(k.dir, p)
		if _, ok := k.files[rel]; !ok && err == nil {
			err = os.Remove(p)
		}
		return err
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(k.dir, "snapshot", "LATEST"), fmt.Append(nil, k.base), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check makes sure that the table is as it was or as it is to be, with these
// leftovers.
func (k *killTest) check(t *testing.T, when, location string, left []string, finished bool) {
	t.Helper()
	now := tabletest.TreeHash(t, location)
	for p, content := range k.files {
		if now[p] != content {
			t.Errorf("%s: %s is gone or was changed", when, p)
		}
	}
	switch s := latestOf(t, location); {
	case s.ID == k.base+1:
		got, err := tabletest.Rows(t.Context(), tabletest.Load(t, location, nil), s)
		if diff := tabletest.Diff(got, k.rows); err != nil || diff != "" {
			t.Errorf("%s: the rows are others: %s, %v", when, diff, err)
		}
		if !finished {
			k.published++
		}
	case s.ID != k.base || finished:
		t.Errorf("%s: the latest snapshot is %d", when, s.ID)
	}
	var doc struct{ Leftovers []struct{ Path string } }
	if err := json.Unmarshal(runHere(t, "inspect", location, "--leftovers"), &doc); err != nil {
		t.Fatal(err)
	}
	listed := make([]string, len(doc.Leftovers))
	for i, l := range doc.Leftovers {
		listed[i] = l.Path
	}
	if !slices.Equal(listed, left) {
		t.Errorf("%s: listed are\n%s\nnot used are\n%s", when, strings.Join(listed, "\n"), strings.Join(left, "\n"))
	}
}

// diskState is the files of a table, without what differs from run to run.
func diskState(t *testing.T, location string) string {
	t.Helper()
	var state []string
	err := filepath.WalkDir(location, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		state = append(state, fmt.Sprint(uniquePart.ReplaceAllString(p[len(location):], "X"), " ", info.Size()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(state)
	return strings.Join(state, "\n")
}

var uniquePart = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+\.tmp$`)

// runHere runs the command in this process, for which it must be a success.
func runHere(t *testing.T, args ...string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), fileio.Local{}, append(args, "-o", "json"), &stdout, &stderr); code != 0 {
		t.Fatalf("%v: exit code %d: %s%s", args, code, &stdout, &stderr)
	}
	return stdout.Bytes()
}

// latestOf finds the latest snapshot by its name alone.
func latestOf(t *testing.T, location string) *snapshot.Snapshot {
	t.Helper()
	tbl, err := table.Load(t.Context(), fileio.Local{}, location, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := snapshot.All(t.Context(), tbl)
	if err != nil || len(all) == 0 {
		t.Fatalf("no snapshots: %v", err)
	}
	return all[len(all)-1]
}

// notUsed finds the files that no snapshot reaches, without the code under test:
// whatever a snapshot's JSON or the rows of its manifests name is used.
func notUsed(t *testing.T, location string) []string {
	t.Helper()
	used, files := map[string]bool{}, map[string]string{}
	err := filepath.WalkDir(location, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(location, p)
			files[rel] = p
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for rel, p := range files {
		if ok, _ := path.Match("snapshot/snapshot-*", rel); !ok {
			continue
		}
		data, err := os.ReadFile(p)
		var members map[string]any
		if err = errors.Join(err, json.Unmarshal(data, &members)); err != nil {
			t.Fatalf("%s: %v", rel, err)
		}
		for _, v := range members {
			follow(t, location, v, used)
		}
	}
	var unused []string
	for _, rel := range slices.Sorted(maps.Keys(files)) {
		meta := strings.HasPrefix(rel, "schema/") || strings.HasPrefix(rel, "snapshot/") && !strings.HasPrefix(rel, "snapshot/.")
		if !meta && !used[path.Base(rel)] {
			unused = append(unused, rel)
		}
	}
	return unused
}

// follow adds the names in a value, and those in the manifests that it names.
func follow(t *testing.T, location string, v any, used map[string]bool) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			follow(t, location, member, used)
		}
	case []any:
		for _, element := range v {
			follow(t, location, element, used)
		}
	case string:
		if used[v] || v == "" || strings.ContainsAny(v, "/\x00") {
			return
		}
		used[v] = true
		f, err := os.Open(filepath.Join(location, "manifest", v))
		if errors.Is(err, fs.ErrNotExist) {
			return // the name of another file, or no name
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		in, err := ocf.NewReader(f)
		for err == nil {
			var row any
			if err = in.Decode(&row); err == nil {
				follow(t, location, row, used)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%s: %v", v, err)
		}
	}
}
