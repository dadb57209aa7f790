package snapshot

import (
	"fmt"
	"slices"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
	"tablectl/table"
)

// checkKeyRanges makes sure that the files of each level above 0 of a bucket have
// disjoint keys, as readers rely on (reference: ConflictDetection.checkKeyRange).
// Others may have moved files to the level meanwhile.
func checkKeyRanges(t *table.Table, entries []*ManifestEntry, latest *Snapshot) error {
	if len(t.Schema.PrimaryKeys) == 0 {
		return nil
	}
	var ts []types.Type
	for _, f := range t.Schema.KeyFields() {
		ts = append(ts, f.Type)
	}
	compare := func(a, b []types.Value) int {
		for i, typ := range ts {
			if c := types.Compare(typ.Kind, a[i], b[i]); c != 0 {
				return c
			}
		}
		return 0
	}
	type place struct {
		partition     string
		bucket, level int32
	}
	type ranged struct {
		entry    *ManifestEntry
		min, max []types.Value
	}
	levels := map[place][]ranged{}
	for _, e := range entries {
		if e.File.Level < 1 {
			continue
		}
		low, err := binrow.Decode(e.File.MinKey, ts)
		if err != nil {
			return fmt.Errorf("data file %s: lowest key: %w", e.File.FileName, err)
		}
		high, err := binrow.Decode(e.File.MaxKey, ts)
		if err != nil {
			return fmt.Errorf("data file %s: highest key: %w", e.File.FileName, err)
		}
		p := place{string(e.Partition), e.Bucket, e.File.Level}
		levels[p] = append(levels[p], ranged{e, low, high})
	}
	for p, files := range levels {
		slices.SortFunc(files, func(a, b ranged) int { return compare(a.min, b.min) })
		for i, f := range files[1:] {
			if compare(files[i].max, f.min) >= 0 {
				return fmt.Errorf("data files %s and %s of %s would overlap in level %d of snapshot %d: %w", files[i].entry.File.FileName,
					f.entry.File.FileName, t.BucketName([]byte(p.partition), p.bucket), p.level, latest.ID+1, ErrConflict)
			}
		}
	}
	return nil
}
