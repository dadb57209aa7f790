package compact_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tablectl/compact"
	"tablectl/internal/fileio"
	"tablectl/internal/fileio/faultio"
	"tablectl/snapshot"
	"tablectl/table"
)

// running is what a hook may use of the run.
type running struct {
	store  *faultio.Memory
	cancel func()
}

// result is what a run left.
type result struct {
	store     *faultio.Memory
	fs        *faultio.FS
	report    *compact.Report
	err       error
	cancelled bool
}

// run compacts a copy of the world. In a bubble of synctest its time limit costs
// no time.
func (w *world) run(t *testing.T, o compact.Options, hook func(r *running) faultio.Hook) result {
	store := faultio.NewMemory(w.files)
	tbl := w.table(t, store)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	fs := faultio.New(store, hook(&running{store, cancel}))
	tbl.IO = fs
	report, err := compact.Table(ctx, tbl, o)
	return result{store, fs, report, err, ctx.Err() != nil}
}

// judge says what is wrong with the state that a run left, or nil. Whatever
// happened to the run, the table is as before or as after, and nothing lies around
// that the error does not name.
func (w *world) judge(t *testing.T, r result) error {
	files := r.store.Files()
	extra := map[string]bool{}
	for p := range files {
		if _, ok := w.files[p]; !ok {
			extra[p] = true
		}
	}
	for p, content := range w.files {
		if got, ok := files[p]; !ok || got != content && !strings.HasSuffix(p, "/LATEST") {
			return fmt.Errorf("%s of before the run was changed or removed", p)
		}
	}
	if n := r.fs.Handles(); n != 0 {
		return fmt.Errorf("%d files are still open", n)
	}
	next := w.table(t, r.store).SnapshotPath(w.id + 1)
	_, published := files[next]
	switch {
	case r.err == nil:
		if !published || r.report.After == nil || r.report.After.ID != w.id+1 {
			return errors.New("success, but no snapshot")
		}
		return w.judgePublished(t, r, files, extra, true)
	case errors.Is(r.err, snapshot.ErrCommitUnknown):
		if !mayBeUnknown(r.fs.Hits()) {
			return fmt.Errorf("the outcome is called unknown, but can be found out: %w", r.err)
		}
		if strings.HasSuffix(files[next], "}") {
			return w.judgePublished(t, r, files, extra, false)
		}
		for _, p := range w.outputs(t, r) {
			if !extra[p] {
				return fmt.Errorf("the outcome is unknown, but %s was removed", p)
			}
			delete(extra, p)
		}
		return onlyMetadata(extra)
	}
	if published {
		return fmt.Errorf("published, but the run says: %w", r.err)
	}
	if !slices.ContainsFunc([]error{faultio.ErrInjected, context.Canceled, context.DeadlineExceeded, snapshot.ErrConflict},
		func(cause error) bool { return errors.Is(r.err, cause) }) {
		return fmt.Errorf("the cause is lost: %w", r.err)
	}
	for _, p := range compact.Leftovers(r.err) {
		if _, old := w.files[p]; old {
			return fmt.Errorf("%s, a file of before the run, is named as left behind", p)
		}
		if !slices.ContainsFunc(r.fs.Hits(), func(h faultio.Hit) bool {
			return h.Kind == faultio.Remove && (h.Path == p || h.Fault == faultio.Hang) // one that hangs takes the time of all
		}) {
			return fmt.Errorf("%s is named as left behind, but could be removed: %w", p, r.err)
		}
		delete(extra, p)
	}
	if len(extra) > 0 {
		return fmt.Errorf("stray files %v: %w", slices.Sorted(maps.Keys(extra)), r.err)
	}
	return nil
}

// mayBeUnknown reports whether the put of a snapshot went wrong until the time
// was up, or left a part.
func mayBeUnknown(hits []faultio.Hit) bool {
	n := 0
	for _, h := range hits {
		if h.Kind == faultio.Put && strings.Contains(h.Path, "/snapshot-") {
			n++
			if h.Fault == faultio.Partial || h.Fault == faultio.Hang || h.Fault == faultio.LateHang {
				return true
			}
		}
	}
	return n > 1
}

// onlyMetadata checks what an unknown commit may leave next to the outputs.
func onlyMetadata(extra map[string]bool) error {
	for p := range extra {
		if !strings.Contains(p, "/manifest/manifest-") && !strings.Contains(p, "/snapshot/") {
			return fmt.Errorf("stray file %s", p)
		}
	}
	return nil
}

// outputs are the paths of all files that the messages add.
func (w *world) outputs(t *testing.T, r result) []string {
	var paths []string
	for _, m := range r.report.Messages {
		for _, f := range m.CompactAfter {
			for _, name := range append([]string{f.FileName}, f.ExtraFiles...) {
				p, _ := w.table(t, r.store).FilePath(m.Partition, int(m.Bucket), name)
				paths = append(paths, p)
			}
		}
	}
	return paths
}

// judgePublished checks the new snapshot against the messages, and every row,
// and, where strict, that it refers to every new file.
func (w *world) judgePublished(t *testing.T, r result, files map[string]string, extra map[string]bool, strict bool) error {
	tbl := w.table(t, r.store)
	s, err := snapshot.Read(t.Context(), tbl, w.id+1)
	if err != nil {
		return err
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
	if len(r.report.Messages) != w.tasks {
		return fmt.Errorf("%d tasks, want %d", len(r.report.Messages), w.tasks)
	}
	live, rows, err := readTable(t, tbl, s)
	if err != nil {
		return err
	}
	if !maps.Equal(live, want) || s.CommitKind != snapshot.Compact || s.TotalRecordCount != int64(len(w.rows)) {
		return fmt.Errorf("snapshot %+v has the files %v, want %v", s, live, want)
	}
	if !slices.Equal(rows, w.rows) {
		return errors.New("the rows differ")
	}
	used, err := metadataOf(t, tbl, s)
	if err != nil {
		return err
	}
	for _, p := range append(w.outputs(t, r), used...) {
		if _, ok := files[p]; !ok {
			return fmt.Errorf("%s is referred to, but missing", p)
		}
		delete(extra, p)
	}
	delete(extra, tbl.SnapshotPath(s.ID))
	for p := range extra {
		if slices.ContainsFunc(r.report.Warnings, func(text string) bool { return strings.Contains(text, p) }) {
			delete(extra, p)
		}
	}
	if len(extra) > 0 && strict {
		return fmt.Errorf("stray files %v", slices.Sorted(maps.Keys(extra)))
	}
	return onlyMetadata(extra)
}

// metadataOf lists the manifest lists and manifests of a snapshot.
func metadataOf(t testing.TB, tbl *table.Table, s *snapshot.Snapshot) (paths []string, err error) {
	for _, list := range []string{s.BaseManifestList, s.DeltaManifestList} {
		rows, listErr := snapshot.ReadManifestList(t.Context(), tbl, list)
		err = errors.Join(err, listErr)
		paths = append(paths, location+"/manifest/"+list)
		for _, r := range rows {
			paths = append(paths, location+"/manifest/"+r.FileName)
		}
	}
	return paths, err
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

// readColumn appends the values of a column to the text of the rows.
func readColumn[T any](rows []string, read func(int64, []T, []int16, []int16) (int64, int, error)) error {
	values, levels := make([]T, len(rows)), make([]int16, len(rows))
	for row := 0; row < len(rows); {
		n, _, err := read(int64(len(rows)-row), values, levels, nil)
		if err != nil || n == 0 {
			return fmt.Errorf("read at row %d: %w", row, err)
		}
		next := 0
		for _, level := range levels[:n] {
			text := "null;"
			if level > 0 {
				text = fmt.Sprint(values[next], ";")
				next++
			}
			rows[row] += text
			row++
		}
	}
	return nil
}

// plan makes the hook of the n-th run of a loop.
type plan func(n int, r *running) faultio.Hook

// loop runs for n = 1, 2, … until a run completes untouched, and judges each.
func (w *world) loop(t *testing.T, o compact.Options, p plan, judge func(*testing.T, result) error) {
	t.Helper()
	var wrong []string
	n := 0
	for touched := true; touched && len(wrong) < 5; {
		n++
		synctest.Test(t, func(t *testing.T) {
			r := w.run(t, o, func(r *running) faultio.Hook { return p(n, r) })
			touched = len(r.fs.Hits()) > 0 || r.cancelled
			err := judge(t, r)
			if !touched {
				err = errors.Join(err, r.err)
			}
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("run %d, hits %v, cancelled %v: %v", n, r.fs.Hits(), r.cancelled, err))
			}
		})
	}
	for _, text := range wrong {
		t.Error(text)
	}
	t.Logf("%d runs", n)
}

func nth(match faultio.Match, fault faultio.Fault) plan {
	return func(n int, _ *running) faultio.Hook { return faultio.Nth(n, match, fault) }
}

// cancelAt cancels before an operation, with which something may go wrong too.
func (r *running) cancelAt(n int, match faultio.Match, fault faultio.Fault) faultio.Hook {
	return faultio.Call(n, match, func(faultio.Op) faultio.Fault {
		r.cancel()
		return fault
	})
}

var (
	notReads = func(op faultio.Op) bool { return op.Kind != faultio.Read }
	writing  = faultio.Of(faultio.Create, faultio.Write, faultio.Close, faultio.Put)
)

// plans are the kinds of faults. Where one does not look at reads, they go wrong
// in another one.
var plans = map[string]plan{
	"error":        nth(faultio.Any, faultio.Fail),
	"lost reply":   nth(faultio.Changing, faultio.LostReply),
	"exists":       nth(faultio.Of(faultio.Put), faultio.Exists),
	"partial":      nth(faultio.Of(faultio.Write, faultio.Put), faultio.Partial),
	"no space":     nth(writing, faultio.NoSpace),
	"hang":         nth(notReads, faultio.Hang),
	"late hang":    nth(faultio.Changing, faultio.LateHang),
	"broken store": func(n int, _ *running) faultio.Hook { return faultio.From(n, faultio.Changing, faultio.Fail) },
	"full disk":    func(n int, _ *running) faultio.Hook { return faultio.From(n, writing, faultio.NoSpace) },
	"cancel":       func(n int, r *running) faultio.Hook { return r.cancelAt(n, notReads, faultio.None) },
	"cancel and removal fails": func(n int, r *running) faultio.Hook {
		fault := []faultio.Fault{faultio.Fail, faultio.Hang, faultio.LostReply}[n%3]
		return faultio.Chain(r.cancelAt(n, faultio.Changing, faultio.None), faultio.Nth(1+n%2, faultio.Of(faultio.Remove), fault))
	},
	"cancel with an error":     func(n int, r *running) faultio.Hook { return r.cancelAt(n, faultio.Changing, faultio.Fail) },
	"cancel with a lost reply": func(n int, r *running) faultio.Hook { return r.cancelAt(n, faultio.Of(faultio.Put), faultio.LostReply) },
	"error, then cancel": func(n int, r *running) faultio.Hook {
		return faultio.Chain(faultio.Nth(n, faultio.Changing, faultio.Fail), r.cancelAt(n+1, faultio.Changing, faultio.None))
	},
	"cancel, then lost reply": func(n int, r *running) faultio.Hook {
		return faultio.Chain(r.cancelAt(n, faultio.Changing, faultio.None), faultio.Nth(n+1, faultio.Changing, faultio.LostReply))
	},
}

func TestFaults(t *testing.T) {
	some := []string{"error", "lost reply", "broken store", "cancel", "cancel and removal fails"}
	for _, c := range []struct {
		table string
		at    int64
		plans []string
	}{
		{"append-file-index", 2, slices.Sorted(maps.Keys(plans))},
		{"append-partitioned", 2, some},
		{"append-bucketed", 3, some},
	} {
		t.Run(c.table, func(t *testing.T) {
			w := openWorld(t, c.table, c.at)
			t.Parallel()
			for _, name := range c.plans {
				t.Run(name, func(t *testing.T) { w.loop(t, compact.Options{Parallelism: 1}, plans[name], w.judge) })
			}
		})
	}
	t.Run("parallel tasks", func(t *testing.T) {
		w := openWorld(t, "append-partitioned", 2)
		for _, name := range []string{"cancel and removal fails", "lost reply"} {
			w.loop(t, compact.Options{Parallelism: 4}, plans[name], w.judge)
		}
	})
}

// TestFaultsAfterLostRace lets another writer publish first, so that what was
// written for the first attempt goes, and then something goes wrong.
func TestFaultsAfterLostRace(t *testing.T) {
	w := openWorld(t, "append-file-index", 2)
	files := w.commitOf(t, w.files)
	after := newWorld(t, files)
	for _, name := range []string{"error", "lost reply", "cancel and removal fails"} {
		t.Run(name, func(t *testing.T) {
			w.loop(t, compact.Options{}, func(n int, r *running) faultio.Hook {
				return faultio.Chain(faultio.Call(1, faultio.On(faultio.Put, "/snapshot-3"), func(faultio.Op) faultio.Fault {
					r.store.SetAll(files)
					return faultio.None
				}), plans[name](n, r))
			}, func(t *testing.T, r result) error {
				if s, err := snapshot.Latest(t.Context(), w.table(t, r.store)); err == nil && s.ID > w.id {
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
		writeErr := faultio.WriteTree(dir, location, w.files)
		tbl, err := table.Load(t.Context(), fileio.Local{}, dir, overrides)
		if err := errors.Join(writeErr, err); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := &running{cancel: cancel}
		fs := faultio.New(fileio.Local{}, r.cancelAt(n, faultio.Changing, []faultio.Fault{faultio.None, faultio.LostReply, faultio.Fail}[n%3]))
		tbl.IO = fs
		report, err := compact.Table(ctx, tbl, compact.Options{Parallelism: 1})
		touched = ctx.Err() != nil
		cancel()
		files, treeErr := faultio.ReadTree(dir, location)
		store := faultio.NewMemory(files)
		if err := errors.Join(treeErr, w.judge(t, result{store, fs, report, err, touched})); err != nil {
			t.Fatalf("run %d, hits %v: %v", n, fs.Hits(), err)
		}
		if _, err := compact.Table(t.Context(), w.table(t, store), compact.Options{}); err != nil {
			t.Fatalf("the run after run %d: %v", n, err)
		}
		if after := newWorld(t, store.Files()); after.id != w.id+1 || after.tasks != 0 || !slices.Equal(after.rows, w.rows) {
			t.Fatalf("the run after run %d has left snapshot %d", n, after.id)
		}
	}
}
