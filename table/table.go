// Package table opens a Paimon table and answers questions about its
// definition: its schemas, its options, where its files lie, and which of its
// partitions a filter selects.
//
// A table is a folder. The folder schema holds every version of its definition
// (Schema), of which the one with the highest id counts. Options are the
// table's settings, stored with the schema and overridden for one run by dynamic
// options. A branch shares the table's data and manifests, with schemas and
// snapshots of its own.
package table

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"tablectl/internal/fileio"
)

var (
	// ErrNotFound is wrapped when there is no table, or no such branch, at a location.
	ErrNotFound = errors.New("no such table")
	// ErrUnsupported is wrapped when a table needs something that is not supported.
	ErrUnsupported = errors.New("not supported")
	// ErrInvalid is wrapped when what the user gave (filter, option, location) is wrong.
	ErrInvalid = errors.New("invalid")
)

const maxSchemaFile = 64 << 20 // bytes

// Table is an open table. It is read once and never changes, so it can be used
// from several goroutines.
type Table struct {
	IO       fileio.FileIO
	Location string // the table's folder, absolute
	Branch   string // "" is the main branch
	Schema   *Schema
	Options  Options

	overrides map[string]string

	mu      sync.Mutex
	schemas map[int64]*Schema
}

// Load opens the table at location, which may end in "$branch_<name>". The
// overrides take precedence over stored options. ErrNotFound, ErrInvalid and
// ErrUnsupported are wrapped where they apply.
func Load(ctx context.Context, store fileio.FileIO, location string, overrides map[string]string) (*Table, error) {
	location, branch, err := SplitLocation(location)
	if err != nil {
		return nil, err
	}
	return open(ctx, &Table{IO: store, Location: location, Branch: branch, overrides: overrides, schemas: map[int64]*Schema{}})
}

// Reopen opens the table again, as it is now. The table itself stays as it was
// opened.
func (t *Table) Reopen(ctx context.Context) (*Table, error) {
	return open(ctx, &Table{IO: t.IO, Location: t.Location, Branch: t.Branch, overrides: t.overrides, schemas: map[int64]*Schema{}})
}

func open(ctx context.Context, t *Table) (*Table, error) {
	var err error
	if t.Schema, err = t.latestSchema(ctx); err != nil {
		return nil, err
	}
	if t.Options, err = ParseOptions(t.Schema.Options, t.overrides); err != nil {
		return nil, err
	}
	if len(t.Schema.PrimaryKeys) > 0 {
		t.Options = t.Options.forKeys()
	}
	if stored := t.Schema.Options["branch"]; stored != "" && stored != "main" && t.Branch == "" {
		return nil, fmt.Errorf("table %s has the option branch=%s: %w", t.Location, stored, ErrUnsupported)
	}
	return t, nil
}

// SplitLocation finds the absolute path of a table's folder and its branch, "" for
// the main one, in the location of a table. It does not look whether there is one.
// ErrInvalid and ErrUnsupported are wrapped where they apply.
func SplitLocation(location string) (dir, branch string, err error) {
	// Hadoop writes file:/wh/t, others file:///wh/t or file://localhost/wh/t.
	if scheme, rest, ok := strings.Cut(location, ":/"); ok && strings.EqualFold(scheme, "file") {
		if host, ok := strings.CutPrefix(rest, "/"); ok && !strings.HasPrefix(host, "/") {
			if host, rest, _ = strings.Cut(host, "/"); host != "localhost" {
				return "", "", fmt.Errorf("location %s is on the host %q: expected file:///path: %w", location, host, ErrInvalid)
			}
		}
		location = "/" + strings.TrimLeft(rest, "/")
	}
	if i := strings.Index(location, "://"); i >= 0 {
		return "", "", fmt.Errorf("location %s: the store %q: %w", location, location[:i], ErrUnsupported)
	}
	if trimmed := strings.TrimRight(location, "/"); trimmed != "" {
		location = trimmed
	}
	dir, branch, named := strings.Cut(location, "$branch_")
	if strings.Contains(filepath.Base(dir), "$") {
		return "", "", fmt.Errorf("location %s names a system table; only tables and branches can be opened: %w", location, ErrInvalid)
	}
	if named && !safeSegment(branch) {
		return "", "", fmt.Errorf("location %s: the branch name is not a file name: %w", location, ErrInvalid)
	}
	if branch == "main" {
		branch = ""
	}
	dir, err = filepath.Abs(dir)
	return filepath.ToSlash(dir), branch, err
}

// latestSchema finds the schema with the highest id by listing, since there is
// no hint for it.
func (t *Table) latestSchema(ctx context.Context) (*Schema, error) {
	infos, err := t.IO.List(ctx, t.SchemaDir())
	if err != nil {
		return nil, fmt.Errorf("list schemas: %w", err)
	}
	latest := int64(-1)
	for _, info := range infos {
		if id, ok := numbered(info.Name, "schema-"); ok {
			latest = max(latest, id)
		}
	}
	if latest < 0 {
		return nil, fmt.Errorf("%s holds no schema file: %w", t.SchemaDir(), ErrNotFound)
	}
	return t.SchemaByID(ctx, latest)
}

// numbered reads the number of a name such as snapshot-12.
func numbered(name, prefix string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, err == nil && id >= 0
}

// SchemaByID reads the schema of that id, once.
func (t *Table) SchemaByID(ctx context.Context, id int64) (*Schema, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.schemas[id]; ok {
		return s, nil
	}
	p := path.Join(t.SchemaDir(), fmt.Sprintf("schema-%d", id))
	data, err := fileio.ReadFile(ctx, t.IO, p, maxSchemaFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("schema %d is missing: %w", id, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read schema %d: %w", id, err)
	}
	s, err := ParseSchema(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	if s.ID != id {
		return nil, fmt.Errorf("%s holds the schema %d", p, s.ID)
	}
	t.schemas[id] = s
	return s, nil
}

// Name is the table's name for messages: database.table where the folders
// follow the layout of a warehouse, else the folder's name; with its branch.
func (t *Table) Name() string { return Name(t.Location, t.Branch) }

// Name is the name that the table has in that folder, without opening it.
func Name(dir, branch string) string {
	name := path.Base(dir)
	if db, ok := strings.CutSuffix(path.Base(path.Dir(dir)), ".db"); ok && db != "" {
		name = db + "." + name
	}
	if branch != "" {
		name += "$branch_" + branch
	}
	return name
}
