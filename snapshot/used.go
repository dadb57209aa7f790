package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tablectl/internal/fileio"
	"tablectl/table"
)

// usage takes the files that something uses out of the candidates. Only the names
// of metadata files are kept, so that a table of any size fits.
type usage struct {
	table *table.Table
	files *candidates

	mu   sync.Mutex
	read map[string]bool // manifest lists, manifests and index manifests that were read
}

// collect reads every version of every branch and reports whether there was
// anything new. Within a branch, versions are listed only when those that they can
// be made of have been read: a tag keeps a snapshot that may expire meanwhile, and
// so does a changelog.
func (u *usage) collect(ctx context.Context) (bool, error) {
	before := len(u.read)
	branches, err := openBranches(ctx, u.table)
	if err != nil {
		return false, err
	}
	for _, b := range branches {
		for _, folder := range []struct {
			dir, prefix string
			changelog   bool
		}{{b.SnapshotDir(), "snapshot-", false}, {b.TagDir(), "tag-", false}, {b.ChangelogDir(), "changelog-", true}} {
			infos, err := u.table.IO.List(ctx, folder.dir)
			if err != nil {
				return false, fmt.Errorf("list %s: %w", folder.dir, err)
			}
			for _, info := range infos {
				if info.Dir || !strings.HasPrefix(info.Name, folder.prefix) || temporaryKind(info.Name) != "" {
					continue
				}
				if err := u.version(ctx, path.Join(folder.dir, info.Name), folder.changelog); err != nil {
					return false, err
				}
			}
		}
	}
	return len(u.read) > before, nil
}

// version marks what a snapshot, a tag or a changelog uses. One that is gone by now
// has expired or was dropped. What cannot be read is tried again, since metadata
// goes before the snapshot that it belongs to, and tags are overwritten.
func (u *usage) version(ctx context.Context, p string, changelog bool) error {
	var last error
	for attempt := range readAttempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(readPause):
			}
		}
		data, err := fileio.ReadFile(ctx, u.table.IO, p, maxSnapshotFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		var s *Snapshot
		if err == nil {
			s, err = ParseSnapshot(data)
		}
		if err == nil {
			err = u.snapshot(ctx, s, changelog)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		last = err
		if errors.Is(err, table.ErrUnsupported) {
			break // it stays so
		}
	}
	hint := ""
	if errors.Is(last, fs.ErrNotExist) {
		hint = "; if it is expiring just now, run again"
	}
	return fmt.Errorf("cannot tell what %s uses%s: %w", p, hint, last)
}

// snapshot marks what a version of the table uses. A changelog is kept for the
// changes alone: the lists of data files and the index of its snapshot may have
// expired (reference: SnapshotDeletion), and what is gone uses nothing.
func (u *usage) snapshot(ctx context.Context, s *Snapshot, changelog bool) error {
	if s.Statistics != nil {
		u.use(*s.Statistics)
	}
	missing := func(err error) error {
		if changelog && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if s.ChangelogManifestList != nil {
		if err := u.list(ctx, *s.ChangelogManifestList); err != nil {
			return err
		}
	}
	for _, name := range []string{s.DeltaManifestList, s.BaseManifestList} {
		if err := missing(u.list(ctx, name)); err != nil {
			return err
		}
	}
	if s.IndexManifest != nil {
		return missing(u.indexes(ctx, *s.IndexManifest))
	}
	return nil
}

func (u *usage) use(names ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range names {
		delete(u.files.byName, name)
	}
}

// once marks a metadata file as used and reads it unless it was read before.
func (u *usage) once(name string, read func() error) error {
	u.use(name)
	u.mu.Lock()
	done := u.read[name]
	u.mu.Unlock()
	if done {
		return nil
	}
	if err := read(); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.read[name] = true
	return nil
}

// list marks a manifest list and everything below it.
func (u *usage) list(ctx context.Context, name string) error {
	return u.once(name, func() error {
		rows, err := ReadManifestList(ctx, u.table, name)
		if err != nil {
			return err
		}
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(runtime.GOMAXPROCS(0))
		for _, row := range rows {
			u.use(row.ExtraFiles...)
			g.Go(func() error { return u.manifest(gctx, row.FileName) })
		}
		return g.Wait()
	})
}

// manifest marks a manifest and every data file that it names, deleted ones too:
// an older snapshot may still use them.
func (u *usage) manifest(ctx context.Context, name string) error {
	return u.once(name, func() error {
		return ReadManifest(ctx, u.table, name, func(e *ManifestEntry) error {
			u.use(e.File.FileName)
			u.use(e.File.ExtraFiles...)
			return nil
		})
	})
}

func (u *usage) indexes(ctx context.Context, name string) error {
	return u.once(name, func() error {
		return readIndexManifest(ctx, u.table, name, func(e *indexEntry) error {
			u.use(e.FileName)
			return nil
		})
	})
}
