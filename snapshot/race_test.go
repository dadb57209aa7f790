package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"tablectl/internal/fileio"
	"tablectl/internal/fileio/faultio"
	"tablectl/table"
)

// TestCommitRace lets several writers commit to one table on the local store:
// ids have no gaps, and every commit that was acknowledged is there once.
func TestCommitRace(t *testing.T) {
	const writers, rounds = 8, 3
	dir := t.TempDir()
	if err := faultio.WriteTree(dir, location, tableFiles(t, "append-partitioned", 2)); err != nil {
		t.Fatal(err)
	}
	open := func() (*table.Table, error) {
		tbl, err := table.Load(t.Context(), fileio.Local{}, dir, map[string]string{"commit.max-retries": "1000", "commit.max-retry-wait": "20 ms"})
		return tbl, err
	}
	ids := make([][]int64, writers)
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			tbl, err := open()
			if err != nil {
				return err
			}
			b := Bucket{Partition: stringRow(fmt.Sprint("w", w)), TotalBuckets: -1}
			var before []*ManifestEntry
			for r := range rounds {
				base, err := Latest(t.Context(), tbl)
				if err != nil {
					return err
				}
				m := message(b, before, fmt.Sprintf("file-%d-%d", w, r))
				done, err := Commit(t.Context(), tbl, base, []CommitMessage{m}, options(fmt.Sprint("w", w)))
				if err != nil {
					return err
				}
				before = []*ManifestEntry{{File: m.CompactAfter[0]}}
				ids[w] = append(ids[w], done.Snapshot.ID)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	tbl, err := open()
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := slices.Sorted(slices.Values(slices.Concat(ids...)))
	for i, id := range acknowledged {
		if id != int64(i)+3 {
			t.Fatalf("acknowledged were %v", acknowledged)
		}
	}
	for w := range writers {
		for _, id := range ids[w] {
			if s, err := Read(t.Context(), tbl, id); err != nil || s.CommitUser != fmt.Sprint("w", w) {
				t.Errorf("snapshot %d of w%d is of %v: %v", id, w, s, err)
			}
		}
	}
	s := latest(t, tbl)
	entries, err := liveEntries(t.Context(), tbl, s, func(p []byte) (bool, error) { return len(p) > 0, nil })
	if err != nil || len(acknowledged) != writers*rounds || s.ID != 2+writers*rounds {
		t.Fatalf("the latest of %d is %d: %v", len(acknowledged), s.ID, err)
	}
	live := map[string]bool{}
	for _, e := range entries {
		live[e.File.FileName] = true
	}
	for w := range writers {
		for r := range rounds {
			if name := fmt.Sprintf("file-%d-%d", w, r); live[name] != (r == rounds-1) {
				t.Errorf("%s is live: %v", name, live[name])
			}
		}
	}
	files, err := faultio.ReadTree(dir+"/snapshot", "")
	if err != nil || len(files) != 1+2+writers*rounds {
		t.Errorf("files %v: %v", slices.Sorted(maps.Keys(files)), err)
	}
}

// TestRounds appends and compacts in turn, with manifests that are merged all
// the time. A file name that was compacted away comes back now and then.
func TestRounds(t *testing.T) {
	for _, c := range []struct {
		target, threshold int64
		rounds            int
	}{{1, 1, 30}, {1, 1 << 30, 5}, {3000, 6000, 30}, {1 << 20, 1 << 30, 10}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			_, tbl := openTable(t, "append-partitioned", 2)
			tbl.Options.ManifestMergeMinCount, tbl.Options.ManifestTargetSize, tbl.Options.ManifestFullThreshold = 2, c.target, c.threshold
			want := map[string]bool{}
			for _, name := range liveNames(t, tbl, latest(t, tbl)) {
				want[name] = true
			}
			for round := range c.rounds {
				b := firstLive(t, tbl, latest(t, tbl))
				m := message(b, nil, fmt.Sprint("append-", round%7), fmt.Sprint("append-", round%7, "-2"))
				if round%7 == 3 {
					m = message(b, nil, fmt.Sprint("append-", round, "-3"))
				}
				for _, f := range m.CompactAfter {
					want[f.FileName] = true
				}
				check(t, tbl, commitAll(t, tbl, m), want)
				b = firstLive(t, tbl, latest(t, tbl))
				m = message(b, b.Files, fmt.Sprint("compact-", round))
				for _, f := range m.CompactBefore {
					delete(want, f.FileName)
				}
				want[m.CompactAfter[0].FileName] = true
				check(t, tbl, commitAll(t, tbl, m), want)
			}
		})
	}
}

func check(t testing.TB, tbl *table.Table, s *Snapshot, want map[string]bool) {
	t.Helper()
	if got := liveNames(t, tbl, s); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("snapshot %d has %v, want %v", s.ID, got, want)
	}
	rows, err := manifests(t.Context(), tbl, s)
	size := int64(0)
	for _, r := range rows {
		size += r.FileSize
	}
	if err != nil || int64(len(rows)) > 2*size/tbl.Options.ManifestTargetSize+4 {
		t.Fatalf("snapshot %d has %d manifests of %d bytes: %v", s.ID, len(rows), size, err)
	}
}
