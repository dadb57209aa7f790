package snapshot

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tablectl/internal/fileio/faultio"
	"tablectl/table"
)

// pool are files whose identities differ in one thing each, in every thing that
// makes an identity.
var pool = func() []ManifestEntry {
	base := ManifestEntry{Version: manifestVersion, Partition: stringRow("a"), TotalBuckets: 4, File: newFile("f", 10)}
	entries := []ManifestEntry{base}
	for _, change := range []func(*ManifestEntry){
		func(e *ManifestEntry) { e.Partition = stringRow("b") },
		func(e *ManifestEntry) { e.Bucket = 3 },
		func(e *ManifestEntry) { e.File.Level = 1 },
		func(e *ManifestEntry) { e.File.FileName = "g" },
		func(e *ManifestEntry) { e.File.ExtraFiles = []string{"f.index"} },
		func(e *ManifestEntry) { e.File.ExtraFiles = []string{"f.index", "f.other"} },
		func(e *ManifestEntry) { e.File.EmbeddedFileIndex = []byte{} },
		func(e *ManifestEntry) { e.File.EmbeddedFileIndex = []byte{1} },
		func(e *ManifestEntry) { e.File.ExternalPath = ptr("") },
		func(e *ManifestEntry) { e.File.ExternalPath = ptr("/x/f") },
	} {
		e := base
		change(&e)
		entries = append(entries, e)
	}
	return entries
}()

func TestIdentity(t *testing.T) {
	seen := map[FileIdentity]int{}
	for i, e := range pool {
		if j, ok := seen[e.Identity()]; ok {
			t.Errorf("entries %d and %d have one identity", i, j)
		}
		seen[e.Identity()] = i
		other := e
		other.Kind, other.File.RowCount, other.File.SchemaID, other.TotalBuckets, other.File.ValueStats = Delete, 1, 7, 9, SimpleStats{}
		if other.Identity() != e.Identity() {
			t.Errorf("entry %d has another identity with other numbers", i)
		}
	}
}

// history is a table whose manifests are written without data files.
type history struct {
	table *table.Table
	store *faultio.Memory
	files []ManifestFile
	live  map[FileIdentity]int64 // rows, by file
}

func newHistory(t testing.TB) *history {
	store, tbl := openTable(t, "append-partitioned", 2)
	return &history{table: tbl, store: store, live: map[FileIdentity]int64{}}
}

func (h *history) writer() *fileWriter { return &fileWriter{table: h.table, uuid: uuid.NewString()} }

// commit writes a manifest that adds files which are not live, and deletes ones
// which are.
func (h *history) commit(t testing.TB, files ...int) {
	out := h.writer().manifests(t.Context())
	for _, i := range files {
		e := pool[i]
		e.File.RowCount = int64(len(h.files)*100 + i)
		if _, ok := h.live[e.Identity()]; ok {
			e.Kind = Delete
			delete(h.live, e.Identity())
		} else {
			h.live[e.Identity()] = e.File.RowCount
		}
		if err := out.add(&e); err != nil {
			t.Fatal(err)
		}
	}
	files2, err := out.close()
	if err != nil {
		t.Fatal(err)
	}
	h.files = append(h.files, files2...)
}

// check compares what manifests say with what is live, and what their rows say
// with their entries.
func (h *history) check(t rapidT) {
	m := newMerged()
	for _, f := range h.files {
		w, n := newManifestStats(h.table), 0
		if err := ReadManifest(context.Background(), h.table, f.FileName, func(e *ManifestEntry) error {
			n++
			if err := w.add(e); err != nil {
				return err
			}
			return m.apply(e)
		}); err != nil {
			t.Fatalf("%v", err)
		}
		if want := w.file(f.FileName, f.FileSize); n == 0 || !reflect.DeepEqual(f, want) {
			t.Fatalf("%d entries: the row is %+v, want %+v", n, f, want)
		}
	}
	live := map[FileIdentity]int64{}
	for _, e := range m.entries() {
		live[e.Identity()] = e.File.RowCount
	}
	if len(m.deletes) > 0 || !maps.Equal(live, h.live) {
		t.Fatalf("live are %v, want %v; deleted without an addition: %v", live, h.live, m.deletes)
	}
}

// merge merges the manifests and checks that the old ones were not touched and
// that the new ones are bounded.
func (h *history) merge(t rapidT) {
	before, files := h.files, h.store.Files()
	merged, err := mergeManifests(context.Background(), h.writer(), before)
	if err != nil {
		t.Fatalf("%v", err)
	}
	after := h.store.Files()
	for p, content := range files {
		if after[p] != content {
			t.Fatalf("%s was touched", p)
		}
	}
	sum := func(files []ManifestFile) (size int64) {
		for _, f := range files {
			size += f.FileSize
		}
		return size
	}
	for _, f := range merged {
		if i := slices.IndexFunc(before, func(o ManifestFile) bool { return o.FileName == f.FileName }); i >= 0 && !reflect.DeepEqual(before[i], f) {
			t.Fatalf("the row %+v became %+v", before[i], f)
		}
	}
	o := h.table.Options
	if bound := (sum(before)+sum(merged))/o.ManifestTargetSize + int64(o.ManifestMergeMinCount); int64(len(merged)) >= max(bound, 2) {
		t.Fatalf("%d manifests became %d, want less than %d", len(before), len(merged), bound)
	}
	h.files = merged
}

// rapidT is a testing.T or a rapid.T.
type rapidT interface {
	Fatalf(format string, args ...any)
}

func TestMergeManifests(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := newHistory(t)
		o := &h.table.Options
		o.ManifestTargetSize = rapid.SampledFrom([]int64{1, 3000, 7000, 1 << 20}).Draw(r, "target")
		o.ManifestFullThreshold = rapid.SampledFrom([]int64{1, 6000, 20_000, 1 << 30}).Draw(r, "threshold")
		o.ManifestMergeMinCount = rapid.IntRange(1, 6).Draw(r, "min count")
		for range rapid.IntRange(1, 12).Draw(r, "commits") {
			h.commit(t, rapid.SliceOfN(rapid.IntRange(0, len(pool)-1), 1, 6).Draw(r, "files")...)
			if rapid.Bool().Draw(r, "merge") {
				h.merge(r)
				h.check(r)
			}
		}
		h.merge(r)
		h.check(r)
	})
}

// TestMergeBounds makes many small commits and looks at how many manifests there
// are all the time.
func TestMergeBounds(t *testing.T) {
	for _, c := range []struct {
		target, threshold int64
		minCount, bound   int
	}{
		{1 << 20, 1 << 30, 5, 5},   // the trailing ones are joined
		{1 << 20, 1 << 14, 100, 8}, // all are rewritten
		{7000, 1 << 30, 3, 3},      // full ones stay
		{1, 1, 2, 8},               // every one is full: those with deletions are rewritten
		{3000, 6000, 2, 4},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			h := newHistory(t)
			o := &h.table.Options
			o.ManifestTargetSize, o.ManifestFullThreshold, o.ManifestMergeMinCount = c.target, c.threshold, c.minCount
			most := 0
			for i := range 60 {
				h.commit(t, i%len(pool), (i*3+1)%len(pool))
				h.merge(t)
				h.check(t)
				most = max(most, len(h.files))
			}
			if most > c.bound {
				t.Errorf("up to %d manifests", most)
			}
			t.Log(most)
		})
	}
}

// TestMergeAddDeleteAdd spreads the three over manifests in every way, with
// every subset merged.
func TestMergeAddDeleteAdd(t *testing.T) {
	for _, target := range []int64{1, 3000, 1 << 20} {
		for cut := range 4 {
			h := newHistory(t)
			h.table.Options.ManifestTargetSize, h.table.Options.ManifestFullThreshold, h.table.Options.ManifestMergeMinCount = target, 1<<30, 2
			order := []int{0, 0, 0}
			for _, part := range [][][]int{{order}, {order[:1], order[1:]}, {order[:2], order[2:]}, {order[:1], order[1:2], order[2:]}}[cut] {
				h.commit(t, append(part, 1)...)
			}
			h.files = append(h.files[:1:1], must(mergeMinor(t.Context(), h.writer(), h.files[1:]))...)
			h.check(t)
			h.table.Options.ManifestFullThreshold = 1
			h.merge(t)
			h.check(t)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestMergeTwice adds a file twice: that is no table, and must not become one.
func TestMergeTwice(t *testing.T) {
	h := newHistory(t)
	h.commit(t, 0)
	h.table.Options.ManifestMergeMinCount = 2
	_, err := mergeManifests(t.Context(), h.writer(), slices.Concat(h.files, h.files))
	if err == nil || !strings.Contains(err.Error(), "added twice") {
		t.Errorf("got %v", err)
	}
}
