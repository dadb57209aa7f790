package snapshot

import (
	"cmp"
	"fmt"
	"slices"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
	"tablectl/table"
)

// KeyRanges knows the lowest and the highest key of files of a table with primary
// keys.
type KeyRanges struct {
	kinds  []types.Kind
	ranges map[*ManifestEntry]keyRange
}

type keyRange struct{ min, max []types.Value }

// NewKeyRanges decodes the key ranges of files. They come from manifests and are
// not trusted: one that cannot be read, or ends before it begins, is an error.
func NewKeyRanges(s *table.Schema, files []*ManifestEntry) (*KeyRanges, error) {
	k := &KeyRanges{ranges: make(map[*ManifestEntry]keyRange, len(files))}
	var ts []types.Type
	for _, f := range s.KeyFields() {
		ts, k.kinds = append(ts, f.Type), append(k.kinds, f.Type.Kind)
	}
	for _, e := range files {
		low, err := binrow.Decode(e.File.MinKey, ts)
		if err != nil {
			return nil, fmt.Errorf("data file %s: lowest key: %w", e.File.FileName, err)
		}
		high, err := binrow.Decode(e.File.MaxKey, ts)
		if err != nil {
			return nil, fmt.Errorf("data file %s: highest key: %w", e.File.FileName, err)
		}
		if k.compare(low, high) > 0 {
			return nil, fmt.Errorf("data file %s: its lowest key is above its highest", e.File.FileName)
		}
		k.ranges[e] = keyRange{low, high}
	}
	return k, nil
}

func (k *KeyRanges) compare(a, b []types.Value) int {
	for i, kind := range k.kinds {
		if c := types.Compare(kind, a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// Before reports whether all keys of a are below all keys of b.
func (k *KeyRanges) Before(a, b *ManifestEntry) bool {
	return k.compare(k.ranges[a].max, k.ranges[b].min) < 0
}

// CompareEnds orders files by their highest keys.
func (k *KeyRanges) CompareEnds(a, b *ManifestEntry) int {
	return k.compare(k.ranges[a].max, k.ranges[b].max)
}

// Sort orders files by their lowest keys, then by their highest.
func (k *KeyRanges) Sort(files []*ManifestEntry) {
	slices.SortStableFunc(files, func(a, b *ManifestEntry) int {
		return cmp.Or(k.compare(k.ranges[a].min, k.ranges[b].min), k.CompareEnds(a, b))
	})
}

// Overlap returns two neighbours that are not disjoint among sorted files, or nils.
func (k *KeyRanges) Overlap(sorted []*ManifestEntry) (a, b *ManifestEntry) {
	for i := 1; i < len(sorted); i++ {
		if !k.Before(sorted[i-1], sorted[i]) {
			return sorted[i-1], sorted[i]
		}
	}
	return nil, nil
}
