//go:build interop

package interop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestWriterRace shows that compactions, several at a time, and a Java writer that commits all the while
// neither lose nor double a row or a snapshot: a compaction commits, loses the race, or says that Java has
// replaced its snapshot; every write commits, and each snapshot is by who says that it made it.
func TestWriterRace(t *testing.T) {
	const (
		writes      = 150
		rowsEach    = 20
		compactions = 50
		atOnce      = 4
		fewest      = 3 // compactions that must get through for the test to mean something
	)
	tbl := createTable(t, tableSpec{
		Fields:  numberedFields,
		Options: map[string]string{"target-file-size": "16 kb", "compaction.min.file-num": "2"},
	})
	batches := numberedBatches(writes, rowsEach)
	steps := make([]javaStep, writes)
	for i, rows := range batches {
		steps[i] = writeStep(t, tbl, rows)
	}

	// The first writes come before the compactions, which need something to compact.
	var writer javaPeer
	defer writer.stop()
	writeAll := func(steps []javaStep) error {
		failures, err := writer.run(steps...)
		return errors.Join(append(failures, err)...)
	}
	const head = 5
	if err := writeAll(steps[:head]); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- writeAll(steps[head:]) }()
	outcomes := compactInParallel(t, tbl, compactions, atOnce)
	if err := <-written; err != nil {
		t.Fatal(err)
	}

	committed := map[int64]string{} // users by snapshot
	var replaced []int64            // snapshots that Java put in the place of a compaction's
	for _, o := range outcomes {
		switch {
		case o.code == exitLostRace && o.result.Status == "failed":
		case o.code == exitDone && o.result.Status == "nothing_to_do":
		case o.code == exitUnknown && o.result.Status == "unknown":
			// Java looks whether a snapshot exists and then renames over it. tablectl
			// cannot prevent that, but must not say that it committed.
			id, ok := replacedID(o.result.Error.Message)
			if !ok {
				t.Errorf("%v, want a snapshot that was replaced", o)
				continue
			}
			replaced = append(replaced, id)
		case o.code == exitDone && o.result.Status == "committed" && o.result.SnapshotAfter != nil:
			id := *o.result.SnapshotAfter
			if other, ok := committed[id]; ok {
				t.Errorf("snapshot %d is claimed by %s and %s", id, other, o.result.CommitUser)
			}
			committed[id] = o.result.CommitUser
		default:
			t.Errorf("%v, want committed, nothing to do, or a lost race", o)
		}
	}
	t.Logf("%d of %d compactions committed, %d were replaced by Java", len(committed), compactions, len(replaced))
	if len(committed) < fewest {
		t.Errorf("%d compactions committed, want at least %d", len(committed), fewest)
	}
	checkCommitters(t, tbl, committed, writes)
	for _, s := range tbl.snapshots(t) {
		if slices.Contains(replaced, s.ID) && s.CommitKind != "APPEND" {
			t.Errorf("snapshot %d is a %s, want one by Java", s.ID, s.CommitKind)
		}
	}
	requireRows(t, dump(t, tbl), sortedRows(batches...))
}

// replacedID returns the snapshot that Java has put in the place of a compaction's: the one that the
// message is about, or the one that it followed.
func replacedID(message string) (int64, bool) {
	var ours, id int64
	if _, err := fmt.Sscanf(message, "snapshot %d was published, but then replaced by another writer", &id); err == nil {
		return id, true
	}
	_, err := fmt.Sscanf(message, "snapshot %d was published, but others rolled back snapshot %d", &ours, &id)
	return id, err == nil
}

// compactInParallel runs tablectl compact n times, atOnce at a time.
func compactInParallel(t *testing.T, tbl table, n, atOnce int) []outcome {
	t.Helper()
	outcomes, errs := make([]outcome, n), make([]error, n)
	turns := make(chan int)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := range turns {
				outcomes[i], errs[i] = runCompact(tbl, nil)
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// checkCommitters fails the test unless the snapshots are numbered without a gap and each is either one of
// the compactions, by its user, or one of the writes.
func checkCommitters(t *testing.T, tbl table, compactions map[int64]string, writes int) {
	t.Helper()
	var appends, compacts int
	for i, s := range tbl.snapshots(t) {
		if want := int64(i + 1); s.ID != want {
			t.Fatalf("snapshot %d is missing: the next is %d", want, s.ID)
		}
		ours := strings.HasPrefix(s.CommitUser, compactUserPrefix)
		switch {
		case s.CommitKind == "APPEND" && !ours:
			appends++
		case s.CommitKind == "COMPACT" && ours && compactions[s.ID] == s.CommitUser:
			compacts++
		default:
			t.Errorf("snapshot %d is a %s by %s, the result of a compaction says %q",
				s.ID, s.CommitKind, s.CommitUser, compactions[s.ID])
		}
	}
	if appends != writes {
		t.Errorf("%d APPEND snapshots, want %d, one for each write", appends, writes)
	}
	if compacts != len(compactions) {
		t.Errorf("%d COMPACT snapshots, but %d compactions say that they committed", compacts, len(compactions))
	}
}
