package snapshot

import (
	"context"
	"errors"

	"tablectl/table"
)

// mergeManifests keeps the number of manifests bounded: it returns manifests
// that say the same as the given ones, of which small ones and ones with
// deletions are rewritten when it pays (reference: ManifestFileMerger). Files that
// are given are never touched.
func mergeManifests(ctx context.Context, w *fileWriter, files []ManifestFile) ([]ManifestFile, error) {
	if merged, ok, err := mergeFull(ctx, w, files); err != nil || ok {
		return merged, err
	}
	return mergeMinor(ctx, w, files)
}

// mergeFull drops every deleted file with its deletion, once the manifests that
// would change for it are large enough together.
func mergeFull(ctx context.Context, w *fileWriter, files []ManifestFile) ([]ManifestFile, bool, error) {
	o := w.table.Options
	mustChange := func(f ManifestFile) bool { return f.NumDeletedFiles > 0 || f.FileSize < o.ManifestTargetSize }
	var size int64
	for _, f := range files {
		if mustChange(f) {
			size += f.FileSize
		}
	}
	if size < o.ManifestFullThreshold {
		return nil, false, nil
	}
	deleted, err := deletedIdentities(ctx, w.table, files)
	if err != nil {
		return nil, false, err
	}
	var keep, rewrite []ManifestFile
	for _, f := range files {
		change := mustChange(f)
		if !change && len(deleted) > 0 {
			if change, err = holdsAny(ctx, w.table, f, deleted); err != nil {
				return nil, false, err
			}
		}
		if change {
			rewrite = append(rewrite, f)
		} else {
			keep = append(keep, f)
		}
	}
	if len(rewrite) <= 1 {
		return nil, false, nil
	}
	// Every deletion and every file it speaks of is in rewrite, so nothing is left
	// of a pair. An entry is held back only while a deletion may follow.
	out := w.manifests(ctx)
	held := newMerged()
	err = readInOrder(ctx, w.table, rewrite, everyPartition, func(_ int, entries []*ManifestEntry) error {
		for _, e := range entries {
			apply := out.add
			if deleted[e.Identity()] {
				apply = held.apply
			}
			if err := apply(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	for _, e := range held.entries() {
		if err := out.add(e); err != nil {
			return nil, false, err
		}
	}
	rewritten, err := out.close()
	return append(keep, rewritten...), true, err
}

func deletedIdentities(ctx context.Context, t *table.Table, files []ManifestFile) (map[FileIdentity]bool, error) {
	var with []ManifestFile
	for _, f := range files {
		if f.NumDeletedFiles > 0 {
			with = append(with, f)
		}
	}
	deleted := map[FileIdentity]bool{}
	err := readInOrder(ctx, t, with, everyPartition, func(_ int, entries []*ManifestEntry) error {
		for _, e := range entries {
			if e.Kind == Delete {
				deleted[e.Identity()] = true
			}
		}
		return nil
	})
	return deleted, err
}

func holdsAny(ctx context.Context, t *table.Table, f ManifestFile, ids map[FileIdentity]bool) (bool, error) {
	errFound := errors.New("found")
	err := ReadManifest(ctx, t, f.FileName, func(e *ManifestEntry) error {
		if ids[e.Identity()] {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// mergeMinor joins neighbours into manifests of about the target size. A
// deletion whose file is in an earlier manifest is kept.
func mergeMinor(ctx context.Context, w *fileWriter, files []ManifestFile) ([]ManifestFile, error) {
	o := w.table.Options
	var result, batch []ManifestFile
	var size int64
	for _, f := range files {
		batch = append(batch, f)
		size += f.FileSize
		if size >= o.ManifestTargetSize {
			merged, err := joinManifests(ctx, w, batch)
			if err != nil {
				return nil, err
			}
			result = append(result, merged...)
			batch, size = nil, 0
		}
	}
	if len(batch) >= o.ManifestMergeMinCount {
		merged, err := joinManifests(ctx, w, batch)
		return append(result, merged...), err
	}
	return append(result, batch...), nil
}

func joinManifests(ctx context.Context, w *fileWriter, batch []ManifestFile) ([]ManifestFile, error) {
	if len(batch) == 1 {
		return batch, nil
	}
	m := newMerged()
	err := readInOrder(ctx, w.table, batch, everyPartition, func(_ int, entries []*ManifestEntry) error {
		for _, e := range entries {
			if err := m.apply(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := w.manifests(ctx)
	// Deletions go first: a file that is deleted by them and is live again was
	// added after the deletion.
	for _, id := range m.deletes {
		if err := out.add(m.dangling[id]); err != nil {
			return nil, err
		}
	}
	for _, e := range m.entries() {
		if err := out.add(e); err != nil {
			return nil, err
		}
	}
	return out.close()
}
