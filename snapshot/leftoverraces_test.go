package snapshot

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"tablectl/internal/fileio/faultio"
)

// split parts the files of a table into those that were there before snapshot 6 was
// published, its own data and manifests included, and its snapshot file and hint.
func split(t *testing.T) (before, after map[string]string) {
	t.Helper()
	before, after = tableFiles(t, "append-partitioned", 0), map[string]string{}
	for _, name := range []string{"snapshot-6", "LATEST"} {
		p := location + "/snapshot/" + name
		after[p] = before[p]
		delete(before, p)
	}
	return before, after
}

// TestCommitMeanwhile has a writer publish at every operation of the listing, as
// one whose files were there before it began. From the reading of snapshots on, the
// files are used; before, they certainly are.
func TestCommitMeanwhile(t *testing.T) {
	t.Parallel()
	before, after := split(t)
	wantFiles := 4 // of the writer: a data file, a manifest, two lists
	if got := leftovers(t, faultio.NewMemory(before)); len(got) != wantFiles {
		t.Fatalf("got %v", got)
	}
	rounds := 0
	for n := 1; ; n++ {
		memory := faultio.NewMemory(before)
		published := false
		store := faultio.New(memory, faultio.Call(n, openOrList, func(faultio.Op) faultio.Fault {
			memory.SetAll(after)
			published = true
			return faultio.None
		}))
		tbl := load(t, memory)
		tbl.IO = store
		got, err := Leftovers(t.Context(), tbl)
		if !published {
			rounds = n - 1
			break
		}
		// After the last listing of the folder snapshot nobody can notice.
		late := len(got) == wantFiles && n > lastList(t, before)
		if err != nil || len(got) > 0 && !late {
			t.Errorf("published at operation %d: %v, %v", n, got, err)
		}
	}
	if rounds < 40 {
		t.Errorf("only %d operations", rounds)
	}
}

// TestCommitAfterListing publishes when the snapshots have been listed.
func TestCommitAfterListing(t *testing.T) {
	before, after := split(t)
	memory := faultio.NewMemory(before)
	tbl := load(t, memory)
	tbl.IO = faultio.New(memory, faultio.Call(1, faultio.On(faultio.Open, "snapshot-5"), func(faultio.Op) faultio.Fault {
		memory.SetAll(after)
		return faultio.None
	}))
	if got, err := Leftovers(t.Context(), tbl); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

var openOrList = faultio.Of(faultio.Open, faultio.List)

// lastList is the number of the last of those operations that lists snapshots.
func lastList(t *testing.T, files map[string]string) int {
	t.Helper()
	memory, n, last := faultio.NewMemory(files), 0, 0
	tbl := load(t, memory)
	tbl.IO = faultio.New(memory, func(op faultio.Op) faultio.Fault {
		if openOrList(op) {
			n++
		}
		if op.Kind == faultio.List && strings.HasSuffix(op.Path, "/snapshot") {
			last = n
		}
		return faultio.None
	})
	if _, err := Leftovers(t.Context(), tbl); err != nil {
		t.Fatal(err)
	}
	return last
}

// TestExpiredMeanwhile expires the oldest snapshot at every operation, metadata
// first as writers do, with and without a tag or a changelog made of it just before.
func TestExpiredMeanwhile(t *testing.T) {
	t.Parallel()
	files := tableFiles(t, "pk-changelog-input", 0)
	oldest := readSnapshotIn(t, files, 1)
	name := location + "/snapshot/snapshot-1"
	lists := []string{oldest.BaseManifestList, oldest.DeltaManifestList, *oldest.ChangelogManifestList}
	for _, kept := range []string{"", "tag/tag-x", "changelog/changelog-1"} {
		for n, done := 1, false; !done; n++ {
			memory := faultio.NewMemory(files)
			done = true
			store := faultio.New(memory, faultio.Call(n, openOrList, func(faultio.Op) faultio.Fault {
				done = false
				if kept != "" {
					memory.Set(location+"/"+kept, files[name])
				} else {
					for _, l := range lists {
						_ = memory.Remove(t.Context(), location+"/manifest/"+l)
					}
				}
				_ = memory.Remove(t.Context(), name)
				return faultio.None
			}))
			tbl := load(t, memory)
			tbl.IO = store
			synctest.Test(t, func(t *testing.T) {
				got, err := Leftovers(t.Context(), tbl)
				for _, l := range got {
					// What only an expired snapshot has used is about to be removed.
					if kept != "" || strings.HasPrefix(string(l.Kind), "manifest_list") {
						t.Errorf("kept as %q, expired at operation %d: %+v", kept, n, l)
					}
				}
				if err != nil {
					t.Errorf("kept as %q, expired at operation %d: %v", kept, n, err)
				}
			})
		}
	}
}

// TestRemovedMeanwhile does not list what others have removed by then, and goes on
// where a branch is dropped.
func TestRemovedMeanwhile(t *testing.T) {
	files := tableFiles(t, "with-branch", 0)
	stray := location + "/bucket-0/data-x-0.parquet"
	files[stray] = "x"
	drop := func(memory *faultio.Memory, prefix string) func(faultio.Op) faultio.Fault {
		return func(faultio.Op) faultio.Fault {
			for p := range memory.Files() {
				if strings.HasPrefix(p, prefix) {
					_ = memory.Remove(t.Context(), p)
				}
			}
			return faultio.None
		}
	}
	memory := faultio.NewMemory(files)
	tbl := load(t, memory)
	tbl.IO = faultio.New(memory, faultio.Call(1, faultio.On(faultio.Open, "snapshot-1"), drop(memory, stray)))
	if got, err := Leftovers(t.Context(), tbl); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
	memory = faultio.NewMemory(files)
	tbl = load(t, memory)
	tbl.IO = faultio.New(memory, faultio.Call(1, faultio.On(faultio.List, "branch-b1/schema"), drop(memory, location+"/branch/branch-b1/")))
	if got, err := Leftovers(t.Context(), tbl); err != nil || len(got) < 2 {
		t.Errorf("a branch was dropped: got %v, %v", got, err)
	}
}

// TestNeverStill gives up on a table that is never the same when it is read again.
func TestNeverStill(t *testing.T) {
	files := tableFiles(t, "append-few-files", 0)
	memory, n := faultio.NewMemory(files), 0
	s := readSnapshotIn(t, files, 1)
	tbl := load(t, memory)
	tbl.IO = faultio.New(memory, func(op faultio.Op) faultio.Fault {
		if op.Kind == faultio.List && strings.HasSuffix(op.Path, "/tag") {
			n++
			added := map[string]string{}
			list := fmt.Sprintf("manifest-list-%d", n)
			added[location+"/manifest/"+list] = files[location+"/manifest/"+s.DeltaManifestList]
			added[fmt.Sprintf("%s/tag/tag-%d", location, n)] = strings.ReplaceAll(files[location+"/snapshot/snapshot-1"], s.DeltaManifestList, list)
			memory.SetAll(added)
		}
		return faultio.None
	})
	if got, err := Leftovers(t.Context(), tbl); err == nil || got != nil || !strings.Contains(err.Error(), "run again") {
		t.Errorf("got %v, %v", got, err)
	}
}
