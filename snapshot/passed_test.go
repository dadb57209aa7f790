package snapshot

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tablectl/internal/fileio"
	"tablectl/internal/fileio/faultio"
)

// what is removed of a snapshot that expires, lists first as in Java.
type what int

const (
	snapshots what = iota
	lists          // the process that expires them ends half way
	everything
)

// goOn lets other writers publish snapshots after the latest one and expire all
// before the one to keep.
func goOn(t *testing.T, store *faultio.Memory, commits int, keep int64, expired what) {
	t.Helper()
	tbl := load(t, store)
	b := firstLive(t, tbl, latest(t, tbl))
	for range commits {
		commitAll(t, tbl, message(b, nil, "other-"+strconv.FormatInt(latest(t, tbl).ID+1, 10)))
	}
	expire(t, store, keep, expired)
}

func expire(t *testing.T, store *faultio.Memory, keep int64, expired what) {
	t.Helper()
	tbl := load(t, store)
	for _, id := range must(IDs(t.Context(), tbl)) {
		if id >= keep {
			break
		}
		if expired != snapshots {
			dropLists(t, store, id)
		}
		if expired != lists {
			store.Remove(t.Context(), tbl.SnapshotPath(id))
		}
	}
}

func dropLists(t *testing.T, store *faultio.Memory, id int64) {
	t.Helper()
	tbl := load(t, store)
	s := must(Read(t.Context(), tbl, id))
	store.Remove(t.Context(), must(tbl.ManifestPath(s.BaseManifestList)))
	store.Remove(t.Context(), must(tbl.ManifestPath(s.DeltaManifestList)))
}

// TestIDUsedAndExpired lets others use the id that is about to be published, go
// on, and expire it: the id is free again, but a snapshot there would not be
// part of the table, and would lead readers back.
func TestIDUsedAndExpired(t *testing.T) {
	put := faultio.On(faultio.Put, third)
	for _, c := range []struct {
		name string
		hook func(others func()) faultio.Hook // nil: before publishing begins
	}{
		{"before publishing", nil},
		{"between the look and the put", func(others func()) faultio.Hook {
			return faultio.Call(1, put, func(faultio.Op) faultio.Fault { others(); return faultio.None })
		}},
		{"between a failed put and the next", func(others func()) faultio.Hook {
			return faultio.Chain(faultio.Nth(1, put, faultio.Fail), faultio.Call(2, put, func(faultio.Op) faultio.Fault { others(); return faultio.None }))
		}},
	} {
		for _, keep := range []int64{4, 5} {
			t.Run(c.name+", kept "+strconv.FormatInt(keep, 10), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store, tbl := openTable(t, "append-partitioned", 2)
					base := latest(t, tbl)
					b := firstLive(t, tbl, base)
					others := func() { goOn(t, store, 3, keep, snapshots) }
					o := options("me")
					if c.hook != nil {
						tbl.IO = faultio.New(store, c.hook(others))
					} else {
						o.BeforePublish = func(id int64) {
							if id == 3 {
								others()
							}
						}
					}
					done, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files, "x")}, o)
					if err != nil {
						t.Fatal(err)
					}
					tbl = load(t, store)
					ids := must(IDs(t.Context(), tbl))
					want := []int64{4, 5, 6}[keep-4:]
					if done.Snapshot.ID != 6 || !slices.Equal(ids, want) || store.Files()[hint] != "6" {
						t.Errorf("published %d; snapshots %v, want %v; hint %s", done.Snapshot.ID, ids, want, store.Files()[hint])
					}
					live := liveNames(t, tbl, latest(t, tbl))
					for _, name := range []string{"other-3", "other-4", "other-5", "x"} {
						if !slices.Contains(live, name) {
							t.Errorf("%s is not live: %v", name, live)
						}
					}
				})
			})
		}
	}
}

// stalled is a store that is at a standstill in the middle of the put of snapshot 3.
type stalled struct {
	fileio.FileIO
	meanwhile func()
}

func (s stalled) Put(ctx context.Context, path string, data []byte, mode fileio.Mode) error {
	if strings.HasSuffix(path, third) {
		s.meanwhile()
		ctx = context.WithoutCancel(ctx)
	}
	return s.FileIO.Put(ctx, path, data, mode)
}

// TestIDUsedWhileStalled has others use the id and expire it while the machine
// sleeps for longer than publishing may take.
func TestIDUsedWhileStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, tbl := openTable(t, "append-partitioned", 2)
		base := latest(t, tbl)
		b := firstLive(t, tbl, base)
		tbl.IO = stalled{store, func() {
			goOn(t, store, 3, 5, snapshots)
			time.Sleep(time.Hour)
		}}
		done, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files, "x")}, options("me"))
		if err != nil {
			t.Fatal(err)
		}
		tbl = load(t, store)
		ids, live := must(IDs(t.Context(), tbl)), liveNames(t, tbl, latest(t, tbl))
		if done.Snapshot.ID != 6 || !slices.Equal(ids, []int64{5, 6}) || !slices.Contains(live, "x") || !slices.Contains(live, "other-5") {
			t.Errorf("published %d; snapshots %v; live %v", done.Snapshot.ID, ids, live)
		}
	})
}

// TestPassedAfterUnclearPut cannot tell whether the first put has written the
// snapshot that others may have built on and expired.
func TestPassedAfterUnclearPut(t *testing.T) {
	put := faultio.On(faultio.Put, third)
	synctest.Test(t, func(t *testing.T) {
		store, tbl := openTable(t, "append-partitioned", 2)
		base := latest(t, tbl)
		b := firstLive(t, tbl, base)
		tbl.IO = faultio.New(store, faultio.Call(1, put, func(faultio.Op) faultio.Fault {
			goOn(t, store, 3, 5, snapshots)
			store.Remove(t.Context(), tbl.SnapshotPath(3))
			return faultio.Fail
		}))
		before := len(store.Files())
		_, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files, "x")}, options("me"))
		if !errors.Is(err, ErrCommitUnknown) || len(store.Files()) < before {
			t.Errorf("got %v", err)
		}
	})
}

// TestExpiredAfterPublishing lets others go on from our snapshot and expire what
// was before them, before we have looked at it again. The hint must stay theirs.
func TestExpiredAfterPublishing(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for _, keep := range []int64{3, 4, 5} {
			synctest.Test(t, func(t *testing.T) {
				store, tbl := openTable(t, "append-partitioned", 2)
				base := latest(t, tbl)
				b := firstLive(t, tbl, base)
				published := false
				open := faultio.On(faultio.Open, third)
				tbl.IO = faultio.New(store, faultio.Call(n+1, open, func(faultio.Op) faultio.Fault {
					if published = slices.Contains(must(IDs(t.Context(), load(t, store))), 3); published {
						goOn(t, store, 2, keep, snapshots)
					}
					return faultio.None
				}))
				done, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files, "x")}, options("me"))
				if err != nil || done.Snapshot.ID != 3 {
					t.Fatalf("%v, %+v", err, done)
				}
				if !published {
					return
				}
				tbl = load(t, store)
				if live := liveNames(t, tbl, latest(t, tbl)); store.Files()[hint] != "5" || !slices.Contains(live, "x") || !slices.Contains(live, "other-5") {
					t.Errorf("n %d, kept %d: hint %s; live %v", n, keep, store.Files()[hint], live)
				}
			})
		}
	}
}

// TestLatestExpiresWhileRead lets others go on while the commit reads the
// snapshot that it wants to follow: it must try again on theirs.
func TestLatestExpiresWhileRead(t *testing.T) {
	for _, removed := range []what{lists, everything} {
		for _, commits := range []int{1, 3} {
			testLatestExpiresWhileRead(t, commits, removed)
		}
	}
}

func testLatestExpiresWhileRead(t *testing.T, commits int, removed what) {
	reads := 0
	for n := 1; ; n++ {
		expired, failed := false, false
		synctest.Test(t, func(t *testing.T) {
			store, tbl := openTable(t, "append-partitioned", 2)
			base := latest(t, tbl)
			b := firstLive(t, tbl, base)
			list := func(op faultio.Op) bool {
				return op.Kind == faultio.Open && strings.Contains(op.Path, "/manifest-list-")
			}
			tbl.IO = faultio.New(store, faultio.Call(n, list, func(faultio.Op) faultio.Fault {
				expired = true
				goOn(t, store, commits, int64(2+commits), removed)
				return faultio.None
			}))
			done, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files, "x")}, options("me"))
			failed = err != nil
			if failed || done.Snapshot.ID != int64(3+commits) && expired || done.Warnings != nil {
				t.Fatalf("list %d: %v, %+v", n, err, done)
			}
			tbl = load(t, store)
			if live := liveNames(t, tbl, latest(t, tbl)); expired && (!slices.Contains(live, "other-3") || !slices.Contains(live, "x")) {
				t.Errorf("list %d: live %v", n, live)
			}
		})
		if !expired || failed {
			break
		}
		reads++
	}
	if reads < 4 {
		t.Errorf("only %d lists were read", reads)
	}
}

// TestPassedAndUnread has the id used and expired as in TestIDUsedAndExpired, and
// one of the looks at our snapshot fails, or others expire what it looks at.
func TestPassedAndUnread(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, again := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				store, tbl := openTable(t, "append-partitioned", 2)
				base := latest(t, tbl)
				b := firstLive(t, tbl, base)
				fault := faultio.Nth(n, faultio.On(faultio.Open, third), faultio.Fail)
				if again {
					fault = first(1, faultio.On(faultio.Open, "/snapshot/snapshot-5"), func() { goOn(t, store, 2, 7, snapshots) })
				}
				tbl.IO = faultio.New(store, faultio.Chain(first(1, faultio.On(faultio.Put, third), func() { goOn(t, store, 3, 5, snapshots) }), fault))
				done, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files, "x")}, options("me"))
				if err != nil {
					t.Fatal(err)
				}
				tbl = load(t, store)
				ids, live := must(IDs(t.Context(), tbl)), liveNames(t, tbl, latest(t, tbl))
				if done.Snapshot.ID != ids[len(ids)-1] || ids[0] < 5 || !slices.Contains(live, "x") || !slices.Contains(live, "other-5") {
					t.Errorf("look %d, expired again %v: published %d; snapshots %v; live %v", n, again, done.Snapshot.ID, ids, live)
				}
			})
		}
	}
}

// TestNewerLayoutWins loses against a snapshot that this version cannot read:
// that is no unclear outcome.
func TestNewerLayoutWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, tbl := openTable(t, "append-partitioned", 2)
		base := latest(t, tbl)
		b := firstLive(t, tbl, base)
		var before map[string]string
		o := options("me")
		o.BeforePublish = func(int64) {
			goOn(t, store, 1, 1, snapshots)
			data := store.Files()[tbl.SnapshotPath(3)]
			store.Set(tbl.SnapshotPath(3), strings.Replace(data, `"version" : 3`, `"version" : 4`, 1))
			before = store.Files()
		}
		_, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files, "x")}, o)
		if err == nil || errors.Is(err, ErrCommitUnknown) || !strings.Contains(err.Error(), "version") {
			t.Errorf("got %v", err)
		}
		if after := store.Files(); len(after) >= len(before) {
			t.Errorf("%d files, then %d", len(before), len(after))
		}
	})
}
