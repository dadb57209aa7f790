// Package faulttest makes runs on a table go wrong at one operation after the other,
// and judges what each of them leaves. A run may be the library's or the whole
// command's: the judge looks at the store, and at what the run said of itself.
package faulttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tablectl/internal/fileio"
	"tablectl/internal/fileio/faultio"
	"tablectl/internal/tabletest"
	"tablectl/snapshot"
	"tablectl/table"
)

// Location is where the table of a World lies.
const Location = "/warehouse/t"

// Overrides make the tables small enough to be quick.
var Overrides = map[string]string{
	"file.compression":        "none", // pooled encoders cannot go from bubble to bubble of synctest
	"compaction.min.file-num": "2",
}

// World is a table in memory as it was before a run.
type World struct {
	Files map[string]string
	ID    int64    // of the latest snapshot
	Rows  []string // as readers see them, which no run changes
}

// Open is a table of testdata as it was at a snapshot. What later snapshots refer to
// lies around in it, as the files of writers that have not committed do. A table with
// primary keys is taken as it is.
func Open(t *testing.T, name string, at int64) *World {
	t.Helper()
	files, err := faultio.ReadTree(tabletest.File(t, name, "wh.db/t"), Location)
	if err != nil {
		t.Fatal(err)
	}
	tbl := (&World{}).Table(t, faultio.NewMemory(files))
	if len(tbl.Schema.PrimaryKeys) > 0 {
		w := &World{Files: files, ID: latest(t, tbl).ID}
		rows, _ := tabletest.Expected(t, name)
		if w.Rows, err = tabletest.SortSets(tbl.Schema.Options, rows); err != nil {
			t.Fatal(err)
		}
		return w
	}
	for id := at + 1; ; id++ {
		p := tbl.SnapshotPath(id)
		if _, ok := files[p]; !ok {
			break
		}
		delete(files, p)
	}
	files[Location+"/snapshot/LATEST"] = fmt.Sprint(at)
	return New(t, files)
}

// New is an append table of these files.
func New(t *testing.T, files map[string]string) *World {
	t.Helper()
	w := &World{Files: files}
	tbl := w.Table(t, faultio.NewMemory(files))
	s := latest(t, tbl)
	w.ID = s.ID
	var err error
	if w.Rows, err = tabletest.Rows(t.Context(), tbl, s); err != nil {
		t.Fatal(err)
	}
	return w
}

func latest(t *testing.T, tbl *table.Table) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Latest(t.Context(), tbl)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Table opens the table in a store.
func (w *World) Table(t testing.TB, store fileio.FileIO) *table.Table {
	t.Helper()
	tbl, err := table.Load(t.Context(), store, Location, Overrides)
	if err != nil {
		t.Fatal(err)
	}
	return tbl
}

// Run is one run on a copy of a World.
type Run struct {
	Store *faultio.Memory
	FS    *faultio.FS // the store with its faults
	// Cancel is what makes the run stop. Whoever starts the run says how.
	Cancel func()

	cancelled atomic.Bool
	mu        sync.Mutex
	removed   []string // what the run tried to remove
	putAt     int      // the number of the operation that put a snapshot first
}

// Start prepares a run. The hook decides what goes wrong with it.
func (w *World) Start(hook func(r *Run) faultio.Hook) *Run {
	r := &Run{Store: faultio.NewMemory(w.Files), Cancel: func() {}}
	r.FS = faultio.New(r.Store, faultio.Chain(r.note, hook(r)))
	return r
}

func (r *Run) note(op faultio.Op) faultio.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case op.Kind == faultio.Remove:
		r.removed = append(r.removed, op.Path)
	case putsSnapshot(op) && r.putAt == 0:
		r.putAt = op.N
	}
	return faultio.None
}

func putsSnapshot(op faultio.Op) bool {
	return op.Kind == faultio.Put && strings.Contains(op.Path, "/snapshot-")
}

// Stop cancels the run.
func (r *Run) Stop() {
	r.cancelled.Store(true)
	r.Cancel()
}

// Stopped reports whether it was cancelled.
func (r *Run) Stopped() bool { return r.cancelled.Load() }

// Loop makes a run go wrong as planned for n = 1, 2, … until one completes
// untouched, and judges each. One does a run, in a bubble of synctest, and returns
// how to judge it and its error, if it had one.
func (w *World) Loop(t *testing.T, p Plan, one func(t *testing.T, r *Run) (judge func() error, err error)) {
	t.Helper()
	wrong, n := 0, 0
	for touched := true; touched && wrong < 5; {
		n++
		r := w.Start(func(r *Run) faultio.Hook { return p(n, r) })
		var judge func() error
		var failed error
		ops := 0
		synctest.Test(t, func(t *testing.T) {
			judge, failed = one(t, r)
			ops = r.FS.Ops()
		})
		touched = len(r.FS.Hits()) > 0 || r.Stopped()
		err := judge()
		if !touched {
			err = errors.Join(err, failed)
		}
		if late := r.FS.Ops() - ops; late > 0 {
			err = errors.Join(err, fmt.Errorf("%d operations after the end of the run", late))
		}
		if err != nil {
			wrong++
			t.Errorf("run %d, hits %v, cancelled %v: %v", n, r.FS.Hits(), r.Stopped(), err)
		}
	}
	if n == 1 {
		t.Error("nothing went wrong in any run")
	}
	t.Logf("%d runs", n)
}

// Live are the live files of a snapshot, by name. Each has the path of the file
// itself, and of those beside it.
func Live(ctx context.Context, tbl *table.Table, s *snapshot.Snapshot) (map[string][]string, error) {
	buckets, err := snapshot.LiveFiles(ctx, tbl, s, table.Filter{})
	if err != nil {
		return nil, err
	}
	live := map[string][]string{}
	for _, b := range buckets {
		for _, e := range b.Files {
			for _, name := range append([]string{e.File.FileName}, e.File.ExtraFiles...) {
				p, err := tbl.FilePath(e.Partition, int(e.Bucket), name)
				if err != nil {
					return nil, err
				}
				live[e.File.FileName] = append(live[e.File.FileName], p)
			}
		}
	}
	return live, nil
}

// metadataOf lists the manifest lists and manifests of a snapshot.
func metadataOf(ctx context.Context, tbl *table.Table, s *snapshot.Snapshot) (paths []string, err error) {
	for _, list := range []string{s.BaseManifestList, s.DeltaManifestList} {
		rows, listErr := snapshot.ReadManifestList(ctx, tbl, list)
		err = errors.Join(err, listErr)
		paths = append(paths, Location+"/manifest/"+list)
		for _, r := range rows {
			paths = append(paths, Location+"/manifest/"+r.FileName)
		}
	}
	return paths, err
}
