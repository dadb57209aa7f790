//go:build !race

package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"tablectl/internal/binrow"
	"tablectl/internal/fileio"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// attempts of a commit while seven others commit as fast as they can.
const manyAttempts = "commit.max-retries=10000"

// compactProcess runs the program and returns the exit code and the result.
func compactProcess(program, location string, flags ...string) (code int, status string, id int64, err error) {
	args := append([]string{
		"compact", location, "-o", "json", "--lock", "none", "--parallelism", "1",
		"--table-option", "compaction.min.file-num=2", "--table-option", manyAttempts,
	}, flags...)
	out, err := exec.Command(program, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code, err = exit.ExitCode(), nil
	}
	var r struct {
		Status string
		After  int64 `json:"snapshot_after"`
	}
	err = errors.Join(err, json.Unmarshal(out, &r))
	return code, r.Status, r.After, err
}

// TestManyProcesses lets eight processes compact eight partitions of one table, again
// and again, with appends between: no snapshot is missing, none is there twice, and
// no row is lost. PROCESS_ROUNDS says how often; 50 takes some minutes.
func TestManyProcesses(t *testing.T) {
	const processes = 8
	rounds := 3
	if text := os.Getenv("PROCESS_ROUNDS"); text != "" {
		rounds, _ = strconv.Atoi(text)
	}
	program := build(t)
	location := tabletest.CopyTable(t, "append-partitioned")
	base := latestOf(t, location)
	before, rows := notUsed(t, location), rowsAt(t, location)
	tbl := tabletest.Load(t, location, map[string]string{"commit.max-retries": "10000"})
	buckets, err := snapshot.LiveFiles(t.Context(), tbl, base, table.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	source := buckets[0].Files[0]
	var all errgroup.Group
	ids := make([][]int64, processes)
	for i := range processes {
		name := fmt.Sprint("w", i)
		all.Go(func() error {
			for range rounds {
				appended, err := appendCopies(t, tbl, source, name, 2)
				if err != nil {
					return err
				}
				code, status, id, err := compactProcess(program, location, "--where", "p="+name)
				if err != nil || code != 0 || status != statusCommitted {
					return fmt.Errorf("exit code %d, %s: %w", code, status, err)
				}
				ids[i] = append(ids[i], appended, id)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	last := latestOf(t, location)
	checkIDs(t, tbl, slices.Concat(ids...))
	if want := base.ID + int64(2*processes*rounds); last.ID != want {
		t.Errorf("the last snapshot is %d, want %d", last.ID, want)
	}
	if buckets, err = snapshot.LiveFiles(t.Context(), tbl, last, table.Filter{}); err != nil {
		t.Fatal(err)
	}
	for _, b := range buckets {
		if p := string(b.Values[0].Bytes); p[0] == 'w' && (len(b.Files) != 1 || b.Files[0].File.RowCount != int64(2*rounds)*source.File.RowCount) {
			t.Errorf("partition %s has %d files, the first of %d rows", p, len(b.Files), b.Files[0].File.RowCount)
		}
	}
	if left := notUsed(t, location); len(left) != len(before) {
		t.Errorf("left behind: %v", left)
	}
	checkCopies(t, rows, rowsAt(t, location), 2*rounds, 2*processes*rounds*int(source.File.RowCount))
}

// checkIDs makes sure that each snapshot was reported once, and that no two have the
// same user.
func checkIDs(t *testing.T, tbl *table.Table, ids []int64) {
	t.Helper()
	seen, users := map[int64]bool{}, map[string]bool{}
	for _, id := range ids {
		s, err := snapshot.Read(t.Context(), tbl, id)
		if err != nil || seen[id] || users[s.CommitUser] {
			t.Fatalf("snapshot %d: there already, or its user, or %v", id, err)
		}
		seen[id], users[s.CommitUser] = true, true
	}
}

// checkCopies makes sure that the rows are those of before and so many more, each of
// them that many times.
func checkCopies(t *testing.T, before, after []string, times, more int) {
	t.Helper()
	count := map[string]int{}
	for _, row := range after {
		count[row]++
	}
	for _, row := range before {
		count[row]--
	}
	for row, n := range count {
		if n < 0 || n%times != 0 {
			t.Errorf("row %s is there %d times more, want a multiple of %d", row, n, times)
		}
	}
	if len(after) != len(before)+more {
		t.Errorf("%d rows after %d, want %d more", len(after), len(before), more)
	}
}

// appendCopies adds copies of a file to a partition, as a writer would, and returns the
// id of the snapshot.
func appendCopies(t *testing.T, tbl *table.Table, e *snapshot.ManifestEntry, partition string, n int) (int64, error) {
	p := binrow.Encode([]types.Type{{Kind: types.Varchar}}, []types.Value{{Bytes: []byte(partition)}})
	m := snapshot.CommitMessage{Partition: p, Bucket: e.Bucket, TotalBuckets: e.TotalBuckets}
	from, err := tbl.FilePath(e.Partition, int(e.Bucket), e.File.FileName)
	if err != nil {
		return 0, err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return 0, err
	}
	for range n {
		f := e.File
		f.FileName = "data-" + uuid.NewString() + "-0.parquet"
		to, err := tbl.FilePath(p, int(e.Bucket), f.FileName)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o777)
		}
		if err == nil {
			err = os.WriteFile(to, data, 0o666)
		}
		if err != nil {
			return 0, err
		}
		m.CompactAfter = append(m.CompactAfter, f)
	}
	base, err := snapshot.Latest(t.Context(), tbl)
	if err != nil {
		return 0, err
	}
	done, err := snapshot.Commit(t.Context(), tbl, base, []snapshot.CommitMessage{m},
		snapshot.CommitOptions{User: uuid.NewString(), Now: time.Now, NewUUID: uuid.NewString})
	if err != nil {
		return 0, err
	}
	return done.Snapshot.ID, nil
}

// TestTwiceAtOnce starts the same command twice: one run commits, the other finds
// nothing to do or has lost, and each removes only files of its own.
func TestTwiceAtOnce(t *testing.T) {
	program := build(t)
	lost := 0
	for range 20 {
		location := tabletest.CopyTable(t, "append-unpartitioned")
		base := latestOf(t, location)
		_, rows := tabletest.Expected(t, "append-unpartitioned")
		var both errgroup.Group
		codes, states := make([]int, 2), make([]string, 2)
		for i := range codes {
			both.Go(func() (err error) {
				codes[i], states[i], _, err = compactProcess(program, location)
				return err
			})
		}
		if err := both.Wait(); err != nil {
			t.Fatal(err)
		}
		for i, code := range codes {
			ok := code == outcomeOK.code && (states[i] == statusCommitted || states[i] == statusNothing) || code == outcomeConflict.code && states[i] == statusFailed
			if !ok || states[i] != statusCommitted && states[1-i] != statusCommitted {
				t.Fatalf("the runs ended with %v, %v", codes, states)
			}
			if code == outcomeConflict.code {
				lost++
			}
		}
		if after := latestOf(t, location); after.ID != base.ID+1 {
			t.Errorf("snapshot %d after %d", after.ID, base.ID)
		}
		if diff := tabletest.Diff(rowsAt(t, location), rows); diff != "" {
			t.Errorf("the rows differ: %s", diff)
		}
		if left := notUsed(t, location); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	t.Logf("%d runs have lost against the other one", lost)
}

func rowsAt(t *testing.T, location string) []string {
	t.Helper()
	tbl, err := table.Load(t.Context(), fileio.Local{}, location, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tabletest.Rows(t.Context(), tbl, latestOf(t, location))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
