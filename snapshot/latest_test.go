package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tablectl/internal/fileio/faultio"
)

const hint = location + "/snapshot/LATEST"

// TestHint finds the latest snapshot whatever the hint says.
func TestHint(t *testing.T) {
	for name, content := range map[string]string{
		"right": "6", "blanks": " 6\n", "behind": "3", "ahead": "7", "far ahead": "99", "zero": "0", "negative": "-6", "empty": "",
		"garbage": "six", "two": "6 6", "huge": strings.Repeat("6", 2000), "absent": "absent", "hexadecimal": "0x6", "too large": "9223372036854775808",
	} {
		t.Run(name, func(t *testing.T) {
			store, tbl := openTable(t, "append-partitioned", 0)
			store.Set(hint, content)
			if content == "absent" {
				if err := store.Remove(t.Context(), hint); err != nil {
					t.Fatal(err)
				}
			}
			if s := latest(t, tbl); s == nil || s.ID != 6 {
				t.Errorf("found %+v", s)
			}
			if s := commitAll(t, tbl); s.ID != 7 || latest(t, tbl).ID != 7 || store.Files()[hint] != "7" {
				t.Errorf("committed %d, then the latest is %d and the hint %q", s.ID, latest(t, tbl).ID, store.Files()[hint])
			}
		})
	}
}

// TestHintSavesListing counts what a good hint costs.
func TestHintSavesListing(t *testing.T) {
	_, tbl := openTable(t, "append-partitioned", 0)
	counting := faultio.New(tbl.IO, func(op faultio.Op) faultio.Fault {
		if op.Kind == faultio.List {
			t.Errorf("listed %s", op.Path)
		}
		return faultio.None
	})
	tbl.IO = counting
	if s := latest(t, tbl); s.ID != 6 || counting.Ops() != 6 { // hint, 6, 7, and 6 again to read it
		t.Errorf("snapshot %d after %d operations", s.ID, counting.Ops())
	}
}

func TestHintCannotBeRead(t *testing.T) {
	_, tbl := openTable(t, "append-partitioned", 0)
	store := tbl.IO
	for _, path := range []string{"/LATEST", "/snapshot-7"} {
		for _, fault := range []faultio.Fault{faultio.Fail, faultio.NoSpace} {
			tbl.IO = faultio.New(store, faultio.From(1, faultio.On(faultio.Open, path), fault))
			if s := latest(t, tbl); s.ID != 6 {
				t.Errorf("%s: found %d", path, s.ID)
			}
		}
	}
}

func TestNoSnapshot(t *testing.T) {
	store, tbl := openTable(t, "empty-table", 0)
	if s := latest(t, tbl); s != nil {
		t.Errorf("found %+v", s)
	}
	store.Set(hint, "3")
	store.Set(location+"/snapshot/snapshot-", "")
	store.Set(location+"/snapshot/snapshot-x", "")
	store.Set(location+"/snapshot/snapshot-0", "")
	store.Set(location+"/snapshot/snapshot-9/x", "")
	store.Set(location+"/snapshot/.snapshot-5.tmp", "")
	if s := latest(t, tbl); s != nil {
		t.Errorf("found %+v", s)
	}
	if _, err := Commit(t.Context(), tbl, &Snapshot{ID: 1}, nil, options("me")); !errors.Is(err, ErrConflict) {
		t.Errorf("got %v", err)
	}
}

// TestLatestTriesAgain meets a snapshot that is half written, and one that
// expires before it is read.
func TestLatestTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, tbl := openTable(t, "append-partitioned", 0)
		content := store.Files()[tbl.SnapshotPath(6)]
		store.Set(tbl.SnapshotPath(6), content[:50])
		go func() {
			time.Sleep(5 * readPause / 2)
			store.Set(tbl.SnapshotPath(6), content)
		}()
		started := time.Now()
		if s := latest(t, tbl); s.ID != 6 || time.Since(started) != 3*readPause {
			t.Errorf("found %d after %v", s.ID, time.Since(started))
		}

		store.Set(hint, "garbage")
		tbl.IO = faultio.New(store, faultio.Call(1, faultio.On(faultio.Open, "/snapshot-6"), func(faultio.Op) faultio.Fault {
			store.Set(tbl.SnapshotPath(7), strings.Replace(content, `"id" : 6`, `"id" : 7`, 1))
			_ = store.Remove(t.Context(), tbl.SnapshotPath(6))
			return faultio.None
		}))
		if s := latest(t, tbl); s.ID != 7 {
			t.Errorf("found %d", s.ID)
		}

		store.Set(tbl.SnapshotPath(8), "{")
		started = time.Now()
		if _, err := Latest(t.Context(), tbl); err == nil || !strings.Contains(err.Error(), "snapshot-8") || time.Since(started) != (readAttempts-1)*readPause {
			t.Errorf("got %v after %v", err, time.Since(started))
		}
		ctx, cancel := context.WithTimeout(t.Context(), readPause*3/2)
		defer cancel()
		if _, err := Latest(ctx, tbl); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestReadSnapshot(t *testing.T) {
	store, tbl := openTable(t, "append-partitioned", 0)
	if _, err := Read(t.Context(), tbl, 7); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	store.Set(tbl.SnapshotPath(7), store.Files()[tbl.SnapshotPath(6)])
	if _, err := Read(t.Context(), tbl, 7); err == nil || !strings.Contains(err.Error(), "holds the snapshot 6") {
		t.Errorf("got %v", err)
	}
}

// TestAll leaves out what expires between listing and reading, and nothing else.
func TestAll(t *testing.T) {
	store, tbl := openTable(t, "append-partitioned", 0)
	tbl.IO = faultio.New(store, faultio.Call(1, faultio.On(faultio.Open, "/snapshot-2"), func(faultio.Op) faultio.Fault {
		_ = store.Remove(t.Context(), tbl.SnapshotPath(2))
		return faultio.None
	}))
	all, err := All(t.Context(), tbl)
	var ids []int64
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	if err != nil || !slices.Equal(ids, []int64{1, 3, 4, 5, 6}) {
		t.Errorf("got %v, %v", ids, err)
	}
	tbl.IO = faultio.New(store, faultio.Nth(1, faultio.On(faultio.Open, "/snapshot-3"), faultio.Fail))
	if all, err := All(t.Context(), tbl); !errors.Is(err, faultio.ErrInjected) {
		t.Errorf("got %v, %v", all, err)
	}
	for id := range int64(10) {
		store.Set(tbl.SnapshotPath(id+10), "")
	}
	if ids, err := IDs(t.Context(), tbl); err != nil || fmt.Sprint(ids) != "[1 3 4 5 6 10 11 12 13 14 15 16 17 18 19]" {
		t.Errorf("got %v, %v", ids, err)
	}
}
