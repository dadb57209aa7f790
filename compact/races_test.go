package compact_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"tablectl/compact"
	"tablectl/internal/binrow"
	"tablectl/internal/faulttest"
	"tablectl/internal/fileio/faultio"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// world is a table in memory as it was before a run.
type world struct {
	*faulttest.World
	live  map[string]bool
	tasks int // that a run has
}

const location = faulttest.Location

// warmUp lets libraries make what they share outside of any bubble of synctest.
var warmUp sync.Once

// openWorld is a table of testdata as it was at a snapshot.
func openWorld(t *testing.T, name string, at int64) *world {
	t.Helper()
	w := faulttest.Open(t, name, at)
	warmUp.Do(func() {
		if _, err := compact.Table(t.Context(), w.Table(t, faultio.NewMemory(w.Files)), compact.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	return worldOf(t, w)
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	return worldOf(t, faulttest.New(t, files))
}

func worldOf(t *testing.T, w *faulttest.World) *world {
	t.Helper()
	tbl := w.Table(t, faultio.NewMemory(w.Files))
	live, err := liveNames(t, tbl)
	if err != nil {
		t.Fatal(err)
	}
	r, err := compact.Table(t.Context(), tbl, compact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &world{w, live, len(r.Plan.Tasks)}
}

// liveNames are the names of the live files of the latest snapshot.
func liveNames(t testing.TB, tbl *table.Table) (map[string]bool, error) {
	s, err := snapshot.Latest(t.Context(), tbl)
	if err != nil {
		return nil, err
	}
	live, err := faulttest.Live(t.Context(), tbl, s)
	names := map[string]bool{}
	for name := range live {
		names[name] = true
	}
	return names, err
}

// commitOf returns the files with what another writer has published on top of
// them: a snapshot with these changes, of the kind APPEND.
func (w *world) commitOf(t *testing.T, files map[string]string, messages ...snapshot.CommitMessage) map[string]string {
	t.Helper()
	store := faultio.NewMemory(files)
	tbl := w.Table(t, store)
	done, err := commit(t, tbl, messages)
	if err != nil {
		t.Fatal(err)
	}
	p := tbl.SnapshotPath(done.ID)
	store.Set(p, strings.Replace(store.Files()[p], `"COMPACT"`, `"APPEND"`, 1))
	return store.Files()
}

// exchangeLatest gives the latest snapshot the id of the one before it, as when others
// have rolled that back first.
func (w *world) exchangeLatest(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	store := faultio.NewMemory(files)
	tbl := w.Table(t, store)
	s, err := snapshot.Latest(t.Context(), tbl)
	if err != nil {
		t.Fatal(err)
	}
	_ = store.Remove(t.Context(), tbl.SnapshotPath(s.ID))
	s.ID--
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	store.Set(tbl.SnapshotPath(s.ID), string(data))
	store.Set(tbl.SnapshotDir()+"/LATEST", fmt.Sprint(s.ID))
	return store.Files()
}

func commit(t testing.TB, tbl *table.Table, messages []snapshot.CommitMessage) (*snapshot.Snapshot, error) {
	base, err := snapshot.Latest(t.Context(), tbl)
	if err != nil {
		return nil, err
	}
	o := snapshot.CommitOptions{User: uuid.NewString(), Now: time.Now, NewUUID: uuid.NewString}
	done, err := snapshot.Commit(t.Context(), tbl, base, messages, o)
	if err != nil {
		return nil, err
	}
	return done.Snapshot, nil
}

// copyOf adds a copy of a file, under another name, to a partition. The file is
// there, the message is yet to be committed.
func (w *world) copyOf(t testing.TB, store *faultio.Memory, e *snapshot.ManifestEntry, partition []byte) snapshot.CommitMessage {
	t.Helper()
	tbl, f := w.Table(t, store), e.File
	f.FileName = "data-" + uuid.NewString() + "-0.parquet"
	from, err1 := tbl.FilePath(e.Partition, int(e.Bucket), e.File.FileName)
	to, err2 := tbl.FilePath(partition, int(e.Bucket), f.FileName)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	store.Set(to, store.Files()[from])
	return snapshot.CommitMessage{Partition: partition, Bucket: e.Bucket, TotalBuckets: e.TotalBuckets, CompactAfter: []snapshot.DataFile{f}}
}

func partitionNamed(name string) []byte {
	return binrow.Encode([]types.Type{{Kind: types.Varchar}}, []types.Value{{Bytes: []byte(name)}})
}

func untouched(*faulttest.Run) faultio.Hook { return faultio.Chain() }

// runWith compacts a copy of the world and lets something happen at events.
func (w *world) runWith(t *testing.T, at func(compact.Event, *faultio.Memory)) result {
	var store *faultio.Memory
	return w.run(t, compact.Options{OnEvent: func(e compact.Event) { at(e, store) }}, func(r *faulttest.Run) faultio.Hook {
		store = r.Store
		return untouched(r)
	})
}

// TestOthersMeanwhile lets another writer commit while a run is planned, at work,
// or about to publish.
func TestOthersMeanwhile(t *testing.T) {
	w := openWorld(t, "append-partitioned", 2)
	store := faultio.NewMemory(w.Files)
	buckets := bucketsOf(t, w.Table(t, store))
	first := buckets[0].Files[0]
	dropped := snapshot.CommitMessage{Partition: buckets[0].Partition, TotalBuckets: buckets[0].TotalBuckets}
	for _, e := range buckets[0].Files {
		dropped.CompactBefore = append(dropped.CompactBefore, e.File)
	}
	one, two := w.copyOf(t, store, first, first.Partition), w.copyOf(t, store, first, partitionNamed("new"))
	files := store.Files()
	for _, c := range []struct {
		name  string
		files map[string]string
		lost  int // tasks
	}{
		{"append", w.commitOf(t, w.commitOf(t, files, one), two), 0},
		{"drop of the partition", w.commitOf(t, files, dropped), 1},
		{"the same compaction", w.run(t, compact.Options{}, untouched).Store.Files(), w.tasks},
	} {
		for when, happens := range map[string]func(compact.Event) bool{
			"planned":    func(e compact.Event) bool { return e.Planned != nil },
			"at work":    func(e compact.Event) bool { return e.TaskDone != nil && e.TaskDone.Done == 1 },
			"publishing": func(e compact.Event) bool { return e.Committing != nil && e.Committing.SnapshotID == w.ID+1 },
		} {
			t.Run(c.name+", "+when, func(t *testing.T) {
				r := w.runWith(t, func(e compact.Event, store *faultio.Memory) {
					if happens(e) {
						store.SetAll(c.files)
					}
				})
				if want := c.lost == w.tasks; errors.Is(r.err, snapshot.ErrConflict) != want || (r.err == nil) == want {
					t.Errorf("got %v, want a conflict: %v", r.err, want)
				}
				for _, l := range r.report.Lost {
					if !errors.Is(l.Err, snapshot.ErrConflict) || !strings.Contains(l.Err.Error(), "p=") {
						t.Errorf("lost %v", l.Err)
					}
				}
				if n := len(r.report.Lost); r.err == nil && n != c.lost {
					t.Errorf("%d tasks were lost, want %d", n, c.lost)
				}
				after := newWorld(t, c.files)
				after.tasks = w.tasks - c.lost
				if err := after.judge(t, r); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestInputsExpire removes the files of a partition before they are read: after it
// was dropped, which is a race that was lost, or just so, which is not.
func TestInputsExpire(t *testing.T) {
	w := openWorld(t, "append-partitioned", 2)
	buckets := bucketsOf(t, w.Table(t, faultio.NewMemory(w.Files)))
	b := buckets[slices.IndexFunc(buckets, func(b snapshot.Bucket) bool { return bytes.Equal(b.Partition, partitionNamed("b")) })]
	dropped := snapshot.CommitMessage{Partition: b.Partition, Bucket: b.Number, TotalBuckets: b.TotalBuckets}
	for _, e := range b.Files {
		dropped.CompactBefore = append(dropped.CompactBefore, e.File)
	}
	for name, files := range map[string]map[string]string{
		"dropped": w.commitOf(t, w.Files, dropped),
		"dropped by a snapshot of the planned one's id": w.exchangeLatest(t, w.commitOf(t, w.Files, dropped)),
		"missing": w.commitOf(t, w.Files),
		"at once": w.Files,
	} {
		t.Run(name, func(t *testing.T) {
			r := w.runWith(t, func(e compact.Event, store *faultio.Memory) {
				if e.Planned == nil {
					return
				}
				store.SetAll(files)
				for p := range files {
					if strings.Contains(p, "/p=b/") {
						_ = store.Remove(t.Context(), p)
					}
				}
			})
			if strings.HasPrefix(name, "dropped") {
				after := newWorld(t, files)
				after.tasks = w.tasks - 1
				if lost := r.report.Lost; len(lost) != 1 || !errors.Is(lost[0].Err, snapshot.ErrConflict) || !strings.Contains(lost[0].Err.Error(), "p=b") {
					t.Errorf("lost %v", lost)
				}
				maps.DeleteFunc(after.Files, func(p, _ string) bool { return strings.Contains(p, "/p=b/") })
				if err := after.judge(t, r); err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(r.err, fs.ErrNotExist) || !strings.Contains(r.err.Error(), "p=b") || errors.Is(r.err, snapshot.ErrConflict) {
				t.Errorf("got %v", r.err)
			}
			for p := range r.Store.Files() {
				if _, ok := files[p]; !ok {
					t.Errorf("%s was left behind", p)
				}
			}
		})
	}
}

// TestDropped drops the table after it was planned: the race is lost, and nothing is
// left.
func TestDropped(t *testing.T) {
	w := openWorld(t, "append-partitioned", 2)
	r := w.runWith(t, func(e compact.Event, store *faultio.Memory) {
		if e.Planned != nil {
			for p := range store.Files() {
				_ = store.Remove(t.Context(), p)
			}
		}
	})
	if files := r.Store.Files(); !errors.Is(r.err, snapshot.ErrConflict) || len(files) > 0 {
		t.Errorf("got %v; files %v", r.err, files)
	}
}

// TestTwoRunners starts two runs with the same plan.
func TestTwoRunners(t *testing.T) {
	w := openWorld(t, "append-partitioned", 2)
	for range 10 {
		store := faultio.NewMemory(w.Files)
		var planned, done sync.WaitGroup
		planned.Add(2)
		meet := func(e compact.Event) {
			if e.Planned != nil {
				planned.Done()
				planned.Wait()
			}
		}
		results := make([]result, 2)
		for i := range results {
			done.Go(func() {
				fs := faultio.New(store, nil)
				report, err := compact.Table(t.Context(), w.Table(t, fs), compact.Options{OnEvent: meet})
				results[i] = result{&faulttest.Run{Store: store, FS: fs}, report, err}
			})
		}
		done.Wait()
		if results[0].err != nil {
			slices.Reverse(results)
		}
		if err := w.judge(t, results[0]); err != nil || !errors.Is(results[1].err, snapshot.ErrConflict) {
			t.Fatalf("got %v and %v, want one conflict: %v", results[0].err, results[1].err, err)
		}
	}
}

// TestManyWriters appends to and compacts one partition in each of several
// goroutines: no snapshot is lost or written twice.
func TestManyWriters(t *testing.T) {
	const writers, rounds = 8, 2
	w := openWorld(t, "append-partitioned", 2)
	store := faultio.NewMemory(w.Files)
	first := bucketsOf(t, w.Table(t, store))[0].Files[0]
	var published sync.Map // users, by id
	var all errgroup.Group
	for i := range writers {
		all.Go(func() error {
			tbl, p := w.Table(t, store), partitionNamed(fmt.Sprint("w", i))
			tbl.Options.CommitMaxRetries, tbl.Options.CommitMaxRetryMillis = 10_000, 20
			filter, err := table.ParseWhere(tbl.Schema, fmt.Sprintf("p = 'w%d'", i))
			for range rounds {
				appended, commitErr := commit(t, tbl, []snapshot.CommitMessage{w.copyOf(t, store, first, p), w.copyOf(t, store, first, p)})
				if err = errors.Join(err, commitErr); err != nil {
					return err
				}
				r, err := compact.Table(t.Context(), tbl, compact.Options{Filter: filter})
				if err != nil {
					return err
				}
				published.Store(appended.ID, appended.CommitUser)
				published.Store(r.After.ID, r.After.CommitUser)
			}
			return nil
		})
	}
	err := all.Wait()
	tbl := w.Table(t, store)
	for id := w.ID + 1; id <= w.ID+2*writers*rounds; id++ {
		s, readErr := snapshot.Read(t.Context(), tbl, id)
		if user, _ := published.Load(id); err != nil || readErr != nil || s.CommitUser != user {
			t.Fatalf("snapshot %d of %v: %v, %v", id, user, err, readErr)
		}
	}
	for _, b := range bucketsOf(t, tbl)[3:] {
		if len(b.Files) != 1 || b.Files[0].File.RowCount != 2*rounds*first.File.RowCount {
			t.Errorf("%s has %d files", tbl.PartitionName(b.Partition), len(b.Files))
		}
	}
}

// TestBucketOptionChanged compacts after the number of buckets was changed, but
// not that of the files.
func TestBucketOptionChanged(t *testing.T) {
	w := openWorld(t, "append-bucketed", 3)
	schema := strings.Replace(w.Files[location+"/schema/schema-0"], `"id" : 0`, `"id" : 1`, 1)
	w.Files[location+"/schema/schema-1"] = strings.Replace(schema, `"bucket" : "2"`, `"bucket" : "4"`, 1)
	r := w.run(t, compact.Options{}, untouched)
	if err := w.judge(t, r); err != nil {
		t.Fatal(err)
	}
	if tbl := w.Table(t, r.Store); tbl.Options.Bucket != 4 || r.report.After.SchemaID != 1 {
		t.Fatalf("%d buckets, schema %d", tbl.Options.Bucket, r.report.After.SchemaID)
	}
	for _, b := range bucketsOf(t, w.Table(t, r.Store)) {
		if b.TotalBuckets != 2 {
			t.Errorf("bucket %d has files of %d buckets", b.Number, b.TotalBuckets)
		}
	}
}

// TestNamesTaken runs twice with the same names for its files: those that are
// there already are not its own.
func TestNamesTaken(t *testing.T) {
	w := openWorld(t, "append-file-index", 2)
	o := compact.Options{NewUUID: func() string { return "same" }}
	for _, p := range []string{"/manifest/manifest-same-0", "/bucket-0/data-same-0.parquet", "/bucket-0/data-same-0.parquet.index"} {
		w.Files[location+p] = "of another"
		r := w.run(t, o, untouched)
		if !errors.Is(r.err, fs.ErrExist) || !maps.Equal(r.Store.Files(), w.Files) {
			t.Errorf("%s: got %v", p, r.err)
		}
		delete(w.Files, location+p)
	}
}

// TestFixedUser runs twice in the name of one user: the second run is not taken
// for the first.
func TestFixedUser(t *testing.T) {
	w := openWorld(t, "append-partitioned", 2)
	var users []string
	for range 2 {
		r := w.run(t, compact.Options{CommitUser: "fixed"}, untouched)
		if r.err != nil || r.report.After == nil {
			t.Fatalf("nothing was published: %v", r.err)
		}
		users = append(users, r.report.After.CommitUser)
		e := bucketsOf(t, w.Table(t, r.Store))[0].Files[0]
		m := w.copyOf(t, r.Store, e, e.Partition)
		w = newWorld(t, w.commitOf(t, r.Store.Files(), m))
	}
	if users[0] == users[1] || !strings.HasPrefix(users[0], "fixed") {
		t.Errorf("the users were %v", users)
	}
}
