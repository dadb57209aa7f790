package snapshot

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"tablectl/internal/fileio/faultio"
)

const second = "/snapshot/snapshot-2"

// TestRolledBack lets others roll back the snapshot that a commit follows, before
// or while it publishes. What they commit then must stay, and what they rolled
// back must not come back.
func TestRolledBack(t *testing.T) {
	put, open := faultio.On(faultio.Put, third), faultio.On(faultio.Open, third)
	recommit := func(t *testing.T, store *faultio.Memory) {
		rollBackUnseen(t, store)
		others := faultio.NewMemory(store.Files()) // who do not see ours
		others.Remove(t.Context(), location+third)
		goOn(t, others, 1, 1, snapshots)
		for path, content := range others.Files() {
			store.Set(path, content)
		}
	}
	for _, c := range []struct {
		name     string
		others   func(t *testing.T, store *faultio.Memory)
		when     func(faultio.Op) bool // nil: before publishing begins
		n        int
		want     error
		ids      []int64
		has, not string // live in the end
	}{
		{"rolled back before", rollBackUnseen, nil, 0, nil, []int64{1, 2}, "x", ""},
		{"rolled back at the put", rollBackUnseen, put, 1, ErrCommitUnknown, []int64{1}, "", "x"},
		{"rolled back at the first look", rollBackUnseen, open, 2, ErrCommitUnknown, []int64{1}, "", "x"},
		{"rolled back at the last look", rollBackUnseen, open, 3, ErrCommitUnknown, []int64{1}, "", "x"},
		{"committed before", recommit, nil, 0, nil, []int64{1, 2, 3}, "other-2", ""},
		{"committed at the put", recommit, put, 1, ErrCommitUnknown, []int64{1, 2}, "other-2", "x"},
		{"committed at the last look", recommit, open, 3, ErrCommitUnknown, []int64{1, 2}, "other-2", "x"},
		{"committed, and others went on from ours", func(t *testing.T, store *faultio.Memory) {
			goOn(t, store, 1, 1, snapshots)
			recommit(t, store)
			store.Set(hint, "4")
		}, open, 3, ErrCommitUnknown, []int64{1, 2, 3, 4}, "x", "other-2"},
		{"without a hint", func(t *testing.T, store *faultio.Memory) {
			rollBackUnseen(t, store)
			store.Remove(t.Context(), hint)
		}, put, 1, ErrCommitUnknown, []int64{1, 3}, "x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, tbl := openTable(t, "append-partitioned", 2)
				base := must(Read(t.Context(), tbl, 1))
				b := firstLive(t, tbl, base)
				others := sync.OnceFunc(func() { c.others(t, store) })
				o := options("me")
				if c.when == nil {
					o.BeforePublish = func(int64) { others() }
				} else {
					tbl.IO = faultio.New(store, first(c.n, c.when, others))
				}
				_, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files, "x")}, o)
				if !errors.Is(err, c.want) || err != nil && c.want == nil {
					t.Errorf("got %v", err)
				}
				tbl = load(t, store)
				if ids := must(IDs(t.Context(), tbl)); !slices.Equal(ids, c.ids) {
					t.Errorf("snapshots %v, want %v", ids, c.ids)
				}
				live := liveNames(t, tbl, latest(t, tbl))
				if c.has != "" && !slices.Contains(live, c.has) || slices.Contains(live, c.not) {
					t.Errorf("live %v", live)
				}
			})
		})
	}
}

// rollBack does what Java does: first the hint, then the snapshots from the newest.
func rollBack(t *testing.T, store *faultio.Memory, to int64) {
	t.Helper()
	tbl := load(t, store)
	store.Set(hint, strconv.FormatInt(to, 10))
	for _, id := range slices.Backward(must(IDs(t.Context(), tbl))) {
		if id > to {
			store.Remove(t.Context(), tbl.SnapshotPath(id))
		}
	}
}

// rollBackUnseen is a rollback from snapshot 2 to 1 that has not seen ours.
func rollBackUnseen(t *testing.T, store *faultio.Memory) {
	t.Helper()
	store.Set(hint, "1")
	store.Remove(t.Context(), location+second)
}

// TestDropped drops the table while a commit publishes, and makes another one in its
// place: nothing of the commit may be left there.
func TestDropped(t *testing.T) {
	put, open := faultio.On(faultio.Put, third), faultio.On(faultio.Open, third)
	for _, c := range []struct {
		name  string
		when  func(faultio.Op) bool // nil: before publishing begins
		n     int
		after map[string]string
		want  error
	}{
		{"before", nil, 0, nil, ErrConflict},
		{"at the put", put, 1, nil, ErrConflict},
		{"at the put, and made anew", put, 1, map[string]string{location + "/schema/schema-0": "{}"}, ErrConflict},
		{"at the first look", open, 2, nil, ErrCommitUnknown},
		{"at the last look", open, 3, nil, ErrCommitUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, tbl := openTable(t, "append-partitioned", 2)
				base := latest(t, tbl)
				b := firstLive(t, tbl, base)
				others := sync.OnceFunc(func() {
					for p := range store.Files() {
						store.Remove(t.Context(), p)
					}
					store.SetAll(c.after)
				})
				o := options("me")
				if c.when == nil {
					o.BeforePublish = func(int64) { others() }
				} else {
					tbl.IO = faultio.New(store, first(c.n, c.when, others))
				}
				_, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files, "x")}, o)
				if !errors.Is(err, c.want) || len(store.Files()) != len(c.after) {
					t.Errorf("got %v; files %v", err, slices.Sorted(maps.Keys(store.Files())))
				}
			})
		})
	}
}

// TestConfirm lets others do two things while our snapshot, which has been written,
// is looked at: they may never lose one of their own, and what is not known to be in
// the table is no success.
func TestConfirm(t *testing.T) {
	put, open, list := faultio.On(faultio.Put, third), faultio.On(faultio.Open, third), faultio.On(faultio.List, "/snapshot")
	for _, c := range []struct {
		name     string
		hook     func(t *testing.T, store *faultio.Memory) faultio.Hook
		want     error
		ids      []int64
		has, not string // live in the end
	}{
		{"rolled back to the one before", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return first(3, open, func() { rollBack(t, store, 2) })
		}, ErrCommitUnknown, []int64{1, 2}, "", "x"},
		{"rolled back, and others use our id before it is taken back", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return then(3, open, func() { rollBack(t, store, 1); goOn(t, store, 1, 1, snapshots) }, list, func() { goOn(t, store, 1, 1, snapshots) })
		}, ErrCommitUnknown, []int64{1, 2, 3}, "other-3", "x"},
		{"rolled back, and others go beyond our id", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return then(3, open, func() { rollBack(t, store, 1) }, list, func() { goOn(t, store, 3, 1, snapshots) })
		}, ErrCommitUnknown, []int64{1, 2, 3, 4}, "other-4", "x"},
		{"rolled back, but only what was seen before ours and what follows it", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return first(3, open, func() {
				store.Set(hint, "1")
				goOn(t, store, 1, 1, snapshots)
				store.Remove(t.Context(), location+second)
			})
		}, ErrCommitUnknown, []int64{1, 3, 4}, "x", ""},
		{"rolled back to a tag", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return first(1, put, func() {
				rollBackUnseen(t, store)
				store.Remove(t.Context(), location+"/snapshot/snapshot-1")
			})
		}, ErrCommitUnknown, []int64{3}, "", ""},
		{"rolled back, and exchanged for a newer layout", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return first(1, put, func() {
				rollBack(t, store, 1)
				goOn(t, store, 1, 1, snapshots)
				store.Set(location+second, strings.Replace(store.Files()[location+second], `"version" : 3`, `"version" : 4`, 1))
			})
		}, ErrCommitUnknown, []int64{1, 2}, "", ""},
		{"rolled back, and removing ours fails", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return faultio.Chain(first(1, put, func() { rollBack(t, store, 1) }), faultio.From(1, faultio.On(faultio.Remove, third), faultio.Fail))
		}, ErrCommitUnknown, []int64{1, 3}, "", ""},
		{"expired, with an old hint", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return first(2, open, func() { goOn(t, store, 1, 3, snapshots); store.Set(hint, "1") })
		}, nil, []int64{3, 4}, "x", ""},
		{"all gone", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return first(3, open, func() { rollBack(t, store, 0) })
		}, ErrCommitUnknown, nil, "", ""},
		{"passed, and a look hangs", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return faultio.Chain(first(1, put, func() { goOn(t, store, 3, 5, snapshots) }), faultio.Nth(2, open, faultio.Hang))
		}, nil, []int64{5, 6}, "x", ""},
		{"passed, and the one before cannot be looked at", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return failing(1, put, func() { goOn(t, store, 3, 5, snapshots) }, faultio.On(faultio.Open, second))
		}, ErrCommitUnknown, []int64{3, 5}, "other-5", "x"},
		{"passed, and the snapshots cannot be listed", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return failing(1, put, func() { goOn(t, store, 3, 5, snapshots) }, list)
		}, ErrCommitUnknown, []int64{3, 5}, "other-5", "x"},
		{"passed, and the next is half expired", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return first(1, put, func() { goOn(t, store, 4, 5, snapshots); expire(t, store, 6, lists) })
		}, nil, []int64{5, 6, 7}, "x", ""},
		{"passed, and the next expires while it is read", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return then(1, put, func() { goOn(t, store, 3, 5, snapshots) }, faultio.On(faultio.Open, "/snapshot/snapshot-5"), func() {
				goOn(t, store, 1, 1, snapshots)
				dropLists(t, store, 5)
			})
		}, nil, []int64{5, 6, 7}, "x", ""},
		{"passed, and others removed the inputs", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return first(1, put, func() {
				tbl := load(t, store)
				b := firstLive(t, tbl, latest(t, tbl))
				commitAll(t, tbl, message(b, b.Files, "other-3"))
				goOn(t, store, 2, 5, snapshots)
			})
		}, ErrCommitUnknown, []int64{3, 5}, "other-3", "x"},
		{"others went on from ours, which was replaced before a lost reply was looked into", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			p := newPublishing(t)
			return faultio.Chain(first(2, open, func() {
				goOn(t, store, 1, 1, snapshots)
				replace(store, p.other)
			}), faultio.Nth(1, put, faultio.LostReply))
		}, ErrCommitUnknown, []int64{1, 2, 3, 4}, "x", ""},
		{"others went on from ours and replaced our outputs, and ours was replaced before a lost reply was looked into", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			p := newPublishing(t)
			return faultio.Chain(first(2, open, func() {
				tbl := load(t, store)
				b := firstLive(t, tbl, latest(t, tbl))
				commitAll(t, tbl, message(b, b.Files, "y"))
				replace(store, p.other)
			}), faultio.Nth(1, put, faultio.LostReply))
		}, ErrCommitUnknown, []int64{1, 2, 3, 4}, "y", ""},
		{"others go on from ours after it was replaced and its reply lost", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			p := newPublishing(t)
			var later map[string]string
			return faultio.Chain(first(2, open, func() {
				others := faultio.NewMemory(store.Files())
				goOn(t, others, 1, 1, snapshots)
				later = others.Files()
				replace(store, p.other)
			}), faultio.Nth(1, put, faultio.LostReply), first(1, faultio.On(faultio.Put, "/snapshot/snapshot-4"), func() { replace(store, later); replace(store, p.other) }))
		}, ErrCommitUnknown, []int64{1, 2, 3, 4}, "x", ""},
		{"replaced, and the last look fails once", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			p := newPublishing(t)
			return failing(3, open, func() { replace(store, p.other) }, once(open))
		}, ErrCommitUnknown, []int64{1, 2, 3}, "", "x"},
		{"rolled back to a tag, and the hint cannot be read once", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return failing(3, open, func() {
				rollBackUnseen(t, store)
				store.Remove(t.Context(), location+"/snapshot/snapshot-1")
			}, once(faultio.On(faultio.Open, "/LATEST")))
		}, ErrCommitUnknown, []int64{3}, "", ""},
		{"rolled back at the last look, and nothing can be listed", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return failing(3, open, func() { rollBackUnseen(t, store) }, list)
		}, ErrCommitUnknown, []int64{1, 3}, "", ""},
		{"rolled back and committed, and listing fails once", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return failing(1, put, func() { rollBack(t, store, 1); goOn(t, store, 1, 1, snapshots) }, once(list))
		}, ErrCommitUnknown, []int64{1, 2}, "other-2", "x"},
		{"rolled back with its manifests before a lost reply was looked into", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			before := store.Files()
			return faultio.Chain(first(2, open, func() {
				rollBack(t, store, 2)
				for path := range store.Files() {
					if _, ok := before[path]; !ok {
						store.Remove(t.Context(), path)
					}
				}
			}), faultio.Nth(1, put, faultio.LostReply))
		}, ErrCommitUnknown, []int64{1, 2}, "", "x"},
		{"passed, and the put takes all the time", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return faultio.Chain(first(1, put, func() { goOn(t, store, 3, 5, snapshots) }), faultio.Nth(1, put, faultio.LateHang))
		}, nil, []int64{5, 6}, "x", ""},
		{"others won with a lost reply of ours, and went on from theirs, with our inputs", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return faultio.Chain(first(1, put, func() { goOn(t, store, 1, 1, snapshots) }), faultio.Nth(1, put, faultio.Fail),
				first(1, faultio.On(faultio.Put, "/snapshot/snapshot-4"), func() {
					goOn(t, store, 1, 1, snapshots)
					tbl := load(t, store)
					b := firstLive(t, tbl, latest(t, tbl))
					commitAll(t, tbl, message(b, b.Files, "y"))
				}))
		}, ErrConflict, []int64{1, 2, 3, 4, 5}, "y", "x"},
		{"others won, and went on with what cannot be read, before a failed put was looked into", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return faultio.Chain(first(2, open, func() { goOn(t, store, 2, 1, snapshots) }), faultio.Nth(1, put, faultio.Fail),
				faultio.From(1, faultio.On(faultio.Open, "/snapshot/snapshot-4"), faultio.Fail))
		}, ErrCommitUnknown, []int64{1, 2, 3, 4}, "other-4", "x"},
		{"others won, and went on, before a failed put was looked into", func(t *testing.T, store *faultio.Memory) faultio.Hook {
			return faultio.Chain(first(2, open, func() { goOn(t, store, 2, 1, snapshots) }), faultio.Nth(1, put, faultio.Fail))
		}, nil, []int64{1, 2, 3, 4, 5}, "x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, tbl := openTable(t, "append-partitioned", 2)
				base := latest(t, tbl)
				b := firstLive(t, tbl, base)
				var mu sync.Mutex                                        // manifests are read at the same time
				removed, published, files := 0, false, map[string]bool{} // of the first attempt
				tbl.IO = faultio.New(store, faultio.Chain(c.hook(t, store), func(op faultio.Op) faultio.Fault {
					mu.Lock()
					defer mu.Unlock()
					switch published = published || put(op); {
					case op.Kind == faultio.Create && !published:
						files[op.Path] = true
					case op.Kind == faultio.Remove && files[op.Path]:
						removed++
					}
					return faultio.None
				}))
				_, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files, "x")}, options("me"))
				if !errors.Is(err, c.want) || err != nil && c.want == nil || errors.Is(err, ErrCommitUnknown) != errors.Is(c.want, ErrCommitUnknown) {
					t.Errorf("got %v", err)
				}
				if removed > 0 && errors.Is(err, ErrCommitUnknown) {
					t.Errorf("%d files were removed", removed)
				}
				tbl = load(t, store)
				ids := must(IDs(t.Context(), tbl))
				if !slices.Equal(ids, c.ids) {
					t.Errorf("snapshots %v, want %v", ids, c.ids)
				}
				if c.has == "" && c.not == "" {
					return
				}
				live := liveNames(t, tbl, must(Read(t.Context(), tbl, ids[len(ids)-1])))
				if c.has != "" && !slices.Contains(live, c.has) || slices.Contains(live, c.not) {
					t.Errorf("live %v", live)
				}
			})
		})
	}
}

// first lets others do something before our n-th operation of a kind.
func first(n int, match faultio.Match, others func()) faultio.Hook {
	return faultio.Call(n, match, func(faultio.Op) faultio.Fault { others(); return faultio.None })
}

// then lets others do something after what first lets them do, before the next
// operation of a kind.
func then(n int, match faultio.Match, others func(), next faultio.Match, more func()) faultio.Hook {
	armed := false
	return faultio.Chain(first(n, match, func() { others(); armed = true }), func(op faultio.Op) faultio.Fault {
		if armed && next(op) {
			armed = false
			more()
		}
		return faultio.None
	})
}

// replace sets files but the hint, as a careless writer does.
func replace(store *faultio.Memory, files map[string]string) {
	for path, content := range files {
		if path != hint {
			store.Set(path, content)
		}
	}
}

func once(match faultio.Match) faultio.Match {
	done := false
	return func(op faultio.Op) bool {
		is := !done && match(op)
		done = done || is
		return is
	}
}

// failing lets operations of a kind fail after what first lets others do.
func failing(n int, match faultio.Match, others func(), from faultio.Match) faultio.Hook {
	armed := false
	return faultio.Chain(first(n, match, func() { others(); armed = true }), func(op faultio.Op) faultio.Fault {
		if armed && from(op) {
			return faultio.Fail
		}
		return faultio.None
	})
}
