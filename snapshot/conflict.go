package snapshot

import (
	"context"
	"fmt"

	"tablectl/table"
)

// Lost is a message that was given up, since others changed its bucket.
type Lost struct {
	Index int   // in the messages of the commit
	Err   error // why; wraps ErrConflict
}

// giveUp gives up the messages that cannot be applied to the latest snapshot: a file
// that they delete is not live any more, one that they add is, the partition has
// another number of buckets, or keys of a level would overlap (reference:
// ConflictDetection). The others do not depend on them. What is given up stays so. It
// returns ErrConflict when nothing is left to commit.
//
// When a snapshot of an earlier attempt may have been seen by others, nothing is
// given up: it may be our own change that is in the way.
func (c *committer) giveUp(ctx context.Context, latest *Snapshot) error {
	live, err := c.touched(ctx, latest)
	if err != nil {
		return err
	}
	state := newLiveBuckets(live)
	lost := c.lost
	var kept []int
	for _, i := range c.pending {
		why, err := c.conflict(state, i, latest)
		if err != nil {
			return err
		}
		if why != nil {
			lost = append(lost, Lost{Index: i, Err: fmt.Errorf("%w: %w", why, ErrConflict)})
			continue
		}
		state.apply(&c.messages[i], c.entries[i])
		kept = append(kept, i)
	}
	switch {
	case len(kept) == len(c.pending):
		return nil
	case len(kept) == 0 || c.doubtful > 0:
		return lost[len(c.lost)].Err
	}
	c.lost, c.pending = lost, kept
	return c.dropDelta(ctx)
}

// checkDistinct makes sure that no file is in two messages: what others did is no
// reason for that, and giving one of them up would hide it.
func checkDistinct(entries [][]ManifestEntry) error {
	type use struct {
		kind Kind
		file FileIdentity
	}
	seen := map[use]bool{}
	for _, of := range entries {
		for i := range of {
			u := use{of[i].Kind, of[i].Identity()}
			if seen[u] {
				return fmt.Errorf("data file %s is in two compaction messages", of[i].File.FileName)
			}
			seen[u] = true
		}
	}
	return nil
}

// place is a bucket of a partition.
type place struct {
	partition string
	bucket    int32
}

func placeOf(m *CommitMessage) place { return place{string(m.Partition), m.Bucket} }

// liveBuckets are the live files of a snapshot, and what messages make of them.
type liveBuckets struct {
	files   map[FileIdentity]*ManifestEntry
	buckets map[place]map[FileIdentity]bool
	totals  map[string]map[int32]*ManifestEntry // one file for each number of buckets in a partition
}

func newLiveBuckets(live []*ManifestEntry) *liveBuckets {
	l := &liveBuckets{files: map[FileIdentity]*ManifestEntry{}, buckets: map[place]map[FileIdentity]bool{}, totals: map[string]map[int32]*ManifestEntry{}}
	for _, e := range live {
		l.add(e)
	}
	return l
}

func (l *liveBuckets) add(e *ManifestEntry) {
	id, at := e.Identity(), place{string(e.Partition), e.Bucket}
	l.files[id] = e
	if l.buckets[at] == nil {
		l.buckets[at] = map[FileIdentity]bool{}
	}
	l.buckets[at][id] = true
	if l.totals[at.partition] == nil {
		l.totals[at.partition] = map[int32]*ManifestEntry{}
	}
	l.totals[at.partition][e.TotalBuckets] = e
}

func (l *liveBuckets) apply(m *CommitMessage, entries []ManifestEntry) {
	for i := range entries {
		if e := &entries[i]; e.Kind == Delete {
			id := e.Identity()
			delete(l.files, id)
			delete(l.buckets[placeOf(m)], id)
		}
	}
	for i := range entries {
		if e := &entries[i]; e.Kind == Add {
			l.add(e)
		}
	}
}

// conflict says why a message cannot be applied, or nil. The error is one of
// reading what is live.
func (c *committer) conflict(l *liveBuckets, index int, latest *Snapshot) (why, err error) {
	m, deleted := &c.messages[index], map[FileIdentity]bool{}
	added := map[FileIdentity]*ManifestEntry{}
	for i := range c.entries[index] {
		e := &c.entries[index][i]
		id := e.Identity()
		if e.Kind == Delete {
			if _, ok := l.files[id]; !ok || deleted[id] {
				return fmt.Errorf("data file %s of %s is no longer live in snapshot %d",
					e.File.FileName, c.table.BucketName(m.Partition, m.Bucket), latest.ID), nil
			}
			deleted[id] = true
			continue
		}
		if _, ok := l.files[id]; (ok && !deleted[id]) || added[id] != nil {
			return fmt.Errorf("data file %s is added twice", e.File.FileName), nil
		}
		added[id] = e
	}
	for n := range l.totals[string(m.Partition)] {
		if n != m.TotalBuckets && n > 0 && m.TotalBuckets > 0 && len(added) > 0 {
			return fmt.Errorf("partition (%s) has files of %d and of %d buckets in snapshot %d",
				c.table.PartitionName(m.Partition), n, m.TotalBuckets, latest.ID), nil
		}
	}
	return c.keysOverlap(l, m, deleted, added, latest)
}

// keysOverlap makes sure that every level above 0 to which a message adds files
// still has disjoint keys, as readers rely on (reference:
// ConflictDetection.checkKeyRange): others may have moved files there meanwhile.
func (c *committer) keysOverlap(l *liveBuckets, m *CommitMessage, deleted map[FileIdentity]bool, added map[FileIdentity]*ManifestEntry, latest *Snapshot) (why, err error) {
	if len(c.table.Schema.PrimaryKeys) == 0 {
		return nil, nil
	}
	levels := map[int32][]*ManifestEntry{}
	for _, e := range added {
		if e.File.Level > 0 {
			levels[e.File.Level] = append(levels[e.File.Level], e)
		}
	}
	for id := range l.buckets[placeOf(m)] {
		if files, ok := levels[id.level]; ok && !deleted[id] {
			levels[id.level] = append(files, l.files[id])
		}
	}
	for level, files := range levels {
		keys, err := NewKeyRanges(c.table.Schema, files)
		if err != nil {
			return nil, err
		}
		keys.Sort(files)
		if a, b := keys.Overlap(files); a != nil {
			return fmt.Errorf("data files %s and %s of %s would overlap in level %d of snapshot %d", a.File.FileName, b.File.FileName,
				c.table.BucketName(m.Partition, m.Bucket), level, latest.ID+1), nil
		}
	}
	return nil, nil
}

// messageEntries are the changes of each message: its deletions, then its additions.
func messageEntries(t *table.Table, messages []CommitMessage) [][]ManifestEntry {
	all := make([][]ManifestEntry, len(messages))
	for i, m := range messages {
		entry := func(kind Kind, f DataFile) {
			if kind == Delete && t.Options.DeleteFileDropStats {
				f.ValueStats = emptyStats()
				f.ValueStatsCols = []string{}
			}
			all[i] = append(all[i], ManifestEntry{
				Version: manifestVersion, Kind: kind, Partition: m.Partition, Bucket: m.Bucket, TotalBuckets: m.TotalBuckets, File: f,
			})
		}
		for _, f := range m.CompactBefore {
			entry(Delete, f)
		}
		for _, f := range m.CompactAfter {
			entry(Add, f)
		}
	}
	return all
}

// each calls f with every entry of the messages that are not given up, in order:
// the delta of the commit.
func (c *committer) each(f func(*ManifestEntry) error) error {
	for _, i := range c.pending {
		for j := range c.entries[i] {
			if err := f(&c.entries[i][j]); err != nil {
				return err
			}
		}
	}
	return nil
}
