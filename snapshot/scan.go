package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
	"tablectl/table"
)

// Bucket is the live files of one bucket of one partition.
type Bucket struct {
	Partition    []byte // serialized binary row, exactly as manifests hold it
	Values       []types.Value
	Number       int32
	TotalBuckets int32 // of the files, which counts, not the table's option
	Files        []*ManifestEntry
}

// LiveFiles returns the live files of a snapshot in the partitions that the
// filter selects, by bucket, in order of partition and bucket. Within a bucket,
// files are in the order in which they were added.
func LiveFiles(ctx context.Context, t *table.Table, s *Snapshot, filter table.Filter) ([]Bucket, error) {
	sel := newSelection(t, filter.Matches)
	entries, err := liveEntries(ctx, t, s, sel.selects)
	if err != nil {
		return nil, err
	}
	return groupBuckets(sel, entries)
}

// selection decides about partitions, each once.
type selection struct {
	table   *table.Table
	matches func([]types.Value) bool
	values  map[string][]types.Value
	chosen  map[string]bool
}

func newSelection(t *table.Table, matches func([]types.Value) bool) *selection {
	return &selection{table: t, matches: matches, values: map[string][]types.Value{}, chosen: map[string]bool{}}
}

func (s *selection) selects(partition []byte) (bool, error) {
	if chosen, ok := s.chosen[string(partition)]; ok {
		return chosen, nil
	}
	values, err := binrow.Decode(partition, s.table.Schema.PartitionTypes())
	if err != nil {
		return false, fmt.Errorf("read partition %x: %w", partition, err)
	}
	s.values[string(partition)] = values
	s.chosen[string(partition)] = s.matches(values)
	return s.chosen[string(partition)], nil
}

func groupBuckets(sel *selection, entries []*ManifestEntry) ([]Bucket, error) {
	type key struct {
		partition string
		bucket    int32
	}
	index := map[key]int{}
	var buckets []Bucket
	for _, e := range entries {
		k := key{string(e.Partition), e.Bucket}
		i, ok := index[k]
		if !ok {
			i = len(buckets)
			index[k] = i
			buckets = append(buckets, Bucket{
				Partition: e.Partition, Values: sel.values[k.partition], Number: e.Bucket, TotalBuckets: e.TotalBuckets,
			})
		}
		if b := buckets[i]; b.TotalBuckets != e.TotalBuckets {
			return nil, fmt.Errorf("%s has files of %d and of %d buckets",
				sel.table.BucketName(b.Partition, b.Number), b.TotalBuckets, e.TotalBuckets)
		}
		buckets[i].Files = append(buckets[i].Files, e)
	}
	partitionTypes := sel.table.Schema.PartitionTypes()
	slices.SortFunc(buckets, func(a, b Bucket) int {
		for i, typ := range partitionTypes {
			if c := types.Compare(typ.Kind, a.Values[i], b.Values[i]); c != 0 {
				return c
			}
		}
		return cmp.Or(bytes.Compare(a.Partition, b.Partition), cmp.Compare(a.Number, b.Number))
	})
	return buckets, nil
}

// manifests returns the manifests of a snapshot, those of its base before those
// of its delta.
func manifests(ctx context.Context, t *table.Table, s *Snapshot) ([]ManifestFile, error) {
	base, err := ReadManifestList(ctx, t, s.BaseManifestList)
	if err != nil {
		return nil, err
	}
	delta, err := ReadManifestList(ctx, t, s.DeltaManifestList)
	return append(base, delta...), err
}

// liveEntries merges all manifests of a snapshot, keeping entries of the selected
// partitions only.
func liveEntries(ctx context.Context, t *table.Table, s *Snapshot, selects func([]byte) (bool, error)) ([]*ManifestEntry, error) {
	files, err := manifests(ctx, t, s)
	if err != nil {
		return nil, err
	}
	m := newMerged()
	err = readInOrder(ctx, t, files, selects, func(i int, entries []*ManifestEntry) error {
		for _, e := range entries {
			if err := m.apply(e); err != nil {
				return fmt.Errorf("snapshot %d: manifest %s: %w", s.ID, files[i].FileName, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(m.deletes) > 0 {
		return nil, fmt.Errorf("snapshot %d deletes data file %s, which was never added", s.ID, m.dangling[m.deletes[0]].File.FileName)
	}
	live := m.entries()
	var all tally
	for _, e := range live {
		if err := all.add(&e.File); err != nil {
			return nil, fmt.Errorf("snapshot %d: %w", s.ID, err)
		}
	}
	return live, nil
}

// readInOrder reads manifests a few at a time and hands their selected entries
// over in the order of the manifests.
func readInOrder(ctx context.Context, t *table.Table, files []ManifestFile, selects func([]byte) (bool, error), each func(i int, entries []*ManifestEntry) error) error {
	window := 2 * runtime.GOMAXPROCS(0)
	for start := 0; start < len(files); start += window {
		batch := files[start:min(start+window, len(files))]
		results := make([][]*ManifestEntry, len(batch))
		g, gctx := errgroup.WithContext(ctx)
		for i, f := range batch {
			g.Go(func() error {
				return ReadManifest(gctx, t, f.FileName, func(e *ManifestEntry) error {
					results[i] = append(results[i], e)
					return nil
				})
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for i, entries := range results {
			selected := entries[:0]
			for _, e := range entries {
				ok, err := selects(e.Partition)
				if err != nil {
					return fmt.Errorf("manifest %s: %w", batch[i].FileName, err)
				}
				if ok {
					selected = append(selected, e)
				}
			}
			if err := each(start+i, selected); err != nil {
				return err
			}
		}
	}
	return nil
}

func everyPartition([]byte) (bool, error) { return true, nil }
