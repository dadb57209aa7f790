package compact_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"tablectl/compact"
	"tablectl/internal/faulttest"
	"tablectl/internal/fileio"
	"tablectl/internal/fileio/faultio"
	"tablectl/snapshot"
	"tablectl/table"
)

// The tests of cmd make every operation of whole commands go wrong. Those here need
// the library: tasks that run in parallel, other writers, the local store.

// result is a run with its end.
type result struct {
	*faulttest.Run
	report *compact.Report
	err    error
}

// run compacts a copy of the world.
func (w *world) run(t *testing.T, o compact.Options, hook func(r *faulttest.Run) faultio.Hook) result {
	return w.do(t, o, w.Start(hook))
}

// do does a run. In a bubble of synctest its time limit costs no time.
func (w *world) do(t *testing.T, o compact.Options, r *faulttest.Run) result {
	tbl := w.Table(t, r.Store)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	r.Cancel = cancel
	tbl.IO = r.FS
	report, err := compact.Table(ctx, tbl, o)
	return result{r, report, err}
}

// judge says what is wrong with the state that a run left, or with its report, or nil.
func (w *world) judge(t *testing.T, r result) error {
	e := faulttest.Ending{Status: faulttest.Failed, Leftovers: compact.Leftovers(r.err)}
	switch {
	case r.err == nil:
		e.Status = faulttest.Committed
		for _, warning := range r.report.Warnings {
			if p, ok := faulttest.LeftBehind(warning); ok {
				e.Leftovers = append(e.Leftovers, p)
			}
		}
	case errors.Is(r.err, snapshot.ErrCommitUnknown):
		e.Status = faulttest.Unknown
	}
	if err := w.Judge(t, r.Run, e); err != nil {
		return errors.Join(err, r.err)
	}
	if r.err == nil {
		return w.judgeReport(t, r)
	}
	if !slices.ContainsFunc([]error{faultio.ErrInjected, context.Canceled, context.DeadlineExceeded, snapshot.ErrConflict},
		func(cause error) bool { return errors.Is(r.err, cause) }) {
		return fmt.Errorf("the cause is lost: %w", r.err)
	}
	return nil
}

// judgeReport checks that the messages are what has been published.
func (w *world) judgeReport(t *testing.T, r result) error {
	if r.report.After == nil || r.report.After.ID != w.ID+1 {
		return errors.New("success, but no snapshot is reported")
	}
	want := maps.Clone(w.live)
	for _, m := range r.report.Messages {
		for _, f := range m.CompactBefore {
			if !want[f.FileName] {
				return fmt.Errorf("%s was not live, but was compacted", f.FileName)
			}
			delete(want, f.FileName)
		}
		for _, f := range m.CompactAfter {
			want[f.FileName] = true
		}
	}
	live, err := liveNames(t, w.Table(t, r.Store))
	if err != nil {
		return err
	}
	if !maps.Equal(live, want) {
		return fmt.Errorf("the files %v are live, want %v", live, want)
	}
	if len(r.report.Messages) != w.tasks {
		return fmt.Errorf("%d tasks, want %d", len(r.report.Messages), w.tasks)
	}
	return nil
}

func bucketsOf(t testing.TB, tbl *table.Table) []snapshot.Bucket {
	t.Helper()
	s, err := snapshot.Latest(t.Context(), tbl)
	buckets, liveErr := snapshot.LiveFiles(t.Context(), tbl, s, table.Filter{})
	if err := errors.Join(err, liveErr); err != nil {
		t.Fatal(err)
	}
	return buckets
}

// loop makes every run go wrong as planned, and judges each.
func (w *world) loop(t *testing.T, o compact.Options, p faulttest.Plan, judge func(*testing.T, result) error) {
	t.Helper()
	w.Loop(t, p, func(inside *testing.T, run *faulttest.Run) (func() error, error) {
		r := w.do(inside, o, run)
		return func() error { return judge(t, r) }, r.err
	})
}

// TestFaultsBesideOtherTasks runs tasks in turns: when one fails, others are at work,
// or done.
func TestFaultsBesideOtherTasks(t *testing.T) {
	w := openWorld(t, "append-partitioned", 2)
	for _, name := range []string{"error", "cancel and removal fails", "lost reply", "late hang"} {
		t.Run(name, func(t *testing.T) {
			w.loop(t, compact.Options{Parallelism: 4}, faulttest.Slowly(faulttest.Plans[name]), w.judge)
		})
	}
}

// TestFaultsAfterLostRace lets another writer publish first, so that what was
// written for the first attempt goes, and then something goes wrong.
func TestFaultsAfterLostRace(t *testing.T) {
	w := openWorld(t, "append-file-index", 2)
	files := w.commitOf(t, w.Files)
	after := newWorld(t, files)
	for _, name := range []string{"error", "lost reply", "cancel and removal fails"} {
		t.Run(name, func(t *testing.T) {
			w.loop(t, compact.Options{}, func(n int, r *faulttest.Run) faultio.Hook {
				return faultio.Chain(faultio.Call(1, faultio.On(faultio.Put, "/snapshot-3"), func(faultio.Op) faultio.Fault {
					r.Store.SetAll(files)
					return faultio.None
				}), faulttest.Plans[name](n, r))
			}, func(t *testing.T, r result) error {
				if s, err := snapshot.Latest(t.Context(), w.Table(t, r.Store)); err == nil && s.ID > w.ID {
					return after.judge(t, r)
				}
				return w.judge(t, r)
			})
		})
	}
}

// TestFaultsOnDisk kills runs on the local store and lets another one follow:
// nothing is in its way, and what was published is not compacted twice.
func TestFaultsOnDisk(t *testing.T) {
	w := openWorld(t, "append-file-index", 2)
	for n, touched := 1, true; touched; n++ {
		dir := t.TempDir()
		writeErr := faultio.WriteTree(dir, location, w.Files)
		tbl, err := table.Load(t.Context(), fileio.Local{}, dir, faulttest.Overrides)
		if err := errors.Join(writeErr, err); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := &faulttest.Run{Cancel: cancel}
		r.FS = faultio.New(fileio.Local{}, faulttest.CancelAt(n, r, []faultio.Fault{faultio.None, faultio.LostReply, faultio.Fail}[n%3]))
		tbl.IO = r.FS
		report, err := compact.Table(ctx, tbl, compact.Options{Parallelism: 1})
		touched = r.Stopped()
		cancel()
		files, treeErr := faultio.ReadTree(dir, location)
		r.Store = faultio.NewMemory(files)
		if err := errors.Join(treeErr, w.judge(t, result{r, report, err})); err != nil {
			t.Fatalf("run %d, hits %v: %v", n, r.FS.Hits(), err)
		}
		if _, err := compact.Table(t.Context(), w.Table(t, r.Store), compact.Options{}); err != nil {
			t.Fatalf("the run after run %d: %v", n, err)
		}
		if after := newWorld(t, r.Store.Files()); after.ID != w.ID+1 || after.tasks != 0 || !slices.Equal(after.Rows, w.Rows) {
			t.Fatalf("the run after run %d has left snapshot %d", n, after.ID)
		}
	}
}
