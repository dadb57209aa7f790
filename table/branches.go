package table

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// The folders that all branches share, and those that each has for itself
// (reference: FileStorePathFactory, TagManager, ChangelogManager, BranchManager).

// ManifestDir is the folder of manifests, manifest lists and index manifests.
func (t *Table) ManifestDir() string { return path.Join(t.Location, "manifest") }

// IndexDir is the folder of index files.
func (t *Table) IndexDir() string { return path.Join(t.Location, "index") }

// StatisticsDir is the folder of statistics files.
func (t *Table) StatisticsDir() string { return path.Join(t.Location, "statistics") }

// TagDir is the folder of the branch's tags.
func (t *Table) TagDir() string { return path.Join(t.root(), "tag") }

// ChangelogDir is the folder of what expired snapshots of the branch left behind for
// readers of changes.
func (t *Table) ChangelogDir() string { return path.Join(t.root(), "changelog") }

// Branches lists the branches of the table beside the main one, by name.
func (t *Table) Branches(ctx context.Context) ([]string, error) {
	infos, err := t.IO.List(ctx, path.Join(t.Location, "branch"))
	if err != nil {
		return nil, fmt.Errorf("list branches: %w", err)
	}
	var names []string
	for _, info := range infos {
		if name, ok := strings.CutPrefix(info.Name, "branch-"); ok && info.Dir && name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// OnBranch opens the table on another branch, "" being the main one. A branch
// without a schema is ErrNotFound.
func (t *Table) OnBranch(ctx context.Context, branch string) (*Table, error) {
	if branch != "" && !safeSegment(branch) {
		return nil, fmt.Errorf("branch name %q is not a file name: %w", branch, ErrInvalid)
	}
	return open(ctx, &Table{IO: t.IO, Location: t.Location, Branch: branch, overrides: t.overrides, schemas: map[int64]*Schema{}})
}
