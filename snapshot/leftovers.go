package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"tablectl/table"
)

// LeftoverKind says what a file was written as.
type LeftoverKind string

// The kinds of files that writers leave behind.
const (
	LeftoverData          LeftoverKind = "data"
	LeftoverChangelog     LeftoverKind = "changelog"
	LeftoverFileIndex     LeftoverKind = "file_index" // beside a data file
	LeftoverSidecar       LeftoverKind = "sidecar"    // another file that belongs to a data file
	LeftoverManifest      LeftoverKind = "manifest"
	LeftoverManifestList  LeftoverKind = "manifest_list"
	LeftoverIndexManifest LeftoverKind = "index_manifest"
	LeftoverIndex         LeftoverKind = "index"
	LeftoverStatistics    LeftoverKind = "statistics"
	LeftoverTemporary     LeftoverKind = "temporary" // was to be renamed
)

// Leftover is a file that nothing in the table uses.
type Leftover struct {
	Path    string // inside the table's folder
	Kind    LeftoverKind
	Size    int64     // bytes
	ModTime time.Time // as the store has it
}

// leftoverRounds is how often the table is looked at again because others changed
// it meanwhile.
const leftoverRounds = 20

// Leftovers lists the files that no snapshot, tag or changelog of any branch uses,
// by path (reference: OrphanFilesClean). Files are compared by name alone, so that
// one which any manifest names, even as deleted, counts as used. Files whose names
// follow no pattern of Paimon's writers and folders that are not the table's are
// not looked at.
//
// A file of a writer that has not committed yet is listed too; only its age tells.
// What is not wholly understood, such as a branch without a schema or a snapshot
// that cannot be read, is an error: its files would be taken for leftovers.
func Leftovers(ctx context.Context, t *table.Table) ([]Leftover, error) {
	branches, err := openBranches(ctx, t)
	if err != nil {
		return nil, err
	}
	// Files come first, and only then what uses them: the files of a commit in
	// between are used by the time that snapshots are read.
	files := candidates{table: t, byName: map[string][]candidate{}}
	if err := files.list(ctx, branches); err != nil {
		return nil, err
	}
	used := usage{table: t, files: &files, read: map[string]bool{}}
	for range leftoverRounds {
		more, err := used.collect(ctx)
		if err != nil {
			return nil, err
		}
		if !more {
			return files.rest(ctx)
		}
	}
	return nil, fmt.Errorf("table %s got new snapshots, tags or branches each of the %d times it was read: run again when fewer writers are at work",
		t.Location, leftoverRounds)
}

// openBranches opens every branch, the main one included.
func openBranches(ctx context.Context, t *table.Table) ([]*table.Table, error) {
	names, err := t.Branches(ctx)
	if err != nil {
		return nil, err
	}
	var all []*table.Table
	for _, name := range append([]string{""}, names...) {
		branch, err := t.OnBranch(ctx, name)
		if errors.Is(err, table.ErrNotFound) && name != "" {
			now, listErr := t.Branches(ctx)
			if listErr == nil && !slices.Contains(now, name) {
				continue // deleted since it was listed
			}
			// The table itself is there, so this is not ErrNotFound.
			return nil, fmt.Errorf("branch %s of %s has no schema, so what it uses cannot be known: drop the branch, or restore its folder schema (%s)",
				name, t.Location, err.Error())
		}
		if err != nil {
			return nil, fmt.Errorf("open branch %s of %s: %w", cmp.Or(name, "main"), t.Location, err)
		}
		all = append(all, branch)
	}
	return all, nil
}

// candidates are the files of the table that may be leftovers, by name.
type candidates struct {
	table  *table.Table
	byName map[string][]candidate
}

// candidate is a file whose name is known already.
type candidate struct {
	dir     string
	kind    LeftoverKind
	size    int64
	modTime time.Time
}

// list finds the files in all folders that the branches write to.
func (c *candidates) list(ctx context.Context, branches []*table.Table) error {
	for _, folder := range []struct {
		dir  string
		kind func(string) LeftoverKind
	}{
		{c.table.ManifestDir(), manifestKind}, {c.table.IndexDir(), indexKind}, {c.table.StatisticsDir(), statisticsKind},
	} {
		if err := c.folder(ctx, folder.dir, folder.kind); err != nil {
			return err
		}
	}
	walked := map[string]bool{}
	for _, b := range branches {
		for _, dir := range []string{b.SnapshotDir(), b.ChangelogDir()} {
			if err := c.folder(ctx, dir, temporaryKind); err != nil {
				return err
			}
		}
		for _, root := range []string{b.Location, path.Join(b.Location, b.Options.DataFilePath)} {
			if walked[root] {
				continue
			}
			walked[root] = true
			if err := c.buckets(ctx, root, len(b.Schema.PartitionKeys)); err != nil {
				return err
			}
		}
	}
	return nil
}

// buckets walks down the folders of partitions, so many levels of them, to those of
// buckets. Other folders are someone else's.
func (c *candidates) buckets(ctx context.Context, dir string, levels int) error {
	infos, err := c.table.IO.List(ctx, dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, info := range infos {
		sub := path.Join(dir, info.Name)
		switch {
		case !info.Dir:
		case levels == 0 && strings.HasPrefix(info.Name, "bucket-"):
			err = c.folder(ctx, sub, c.dataKind)
		case levels > 0 && strings.Contains(info.Name, "="):
			err = c.buckets(ctx, sub, levels-1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folder adds the files of a folder whose names the writers give.
func (c *candidates) folder(ctx context.Context, dir string, kindOf func(string) LeftoverKind) error {
	infos, err := c.table.IO.List(ctx, dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, info := range infos {
		if kind := kindOf(info.Name); kind != "" && !info.Dir {
			c.byName[info.Name] = append(c.byName[info.Name], candidate{dir, kind, info.Size, info.ModTime})
		}
	}
	return nil
}

// rest lists the candidates that are left, but for those that others have removed
// since.
func (c *candidates) rest(ctx context.Context) ([]Leftover, error) {
	dirs := map[string]map[string]bool{}
	var rest []Leftover
	for name, files := range c.byName {
		for _, f := range files {
			if dirs[f.dir] == nil {
				infos, err := c.table.IO.List(ctx, f.dir)
				if err != nil {
					return nil, fmt.Errorf("list %s: %w", f.dir, err)
				}
				dirs[f.dir] = map[string]bool{}
				for _, info := range infos {
					if len(c.byName[info.Name]) > 0 {
						dirs[f.dir][info.Name] = true
					}
				}
			}
			if dirs[f.dir][name] {
				inside := strings.TrimPrefix(path.Join(f.dir, name), strings.TrimSuffix(c.table.Location, "/")+"/")
				rest = append(rest, Leftover{Path: inside, Kind: f.kind, Size: f.size, ModTime: f.modTime})
			}
		}
	}
	slices.SortFunc(rest, func(a, b Leftover) int { return strings.Compare(a.Path, b.Path) })
	return rest, nil
}
