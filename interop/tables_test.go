//go:build interop || bench

package interop

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A table is a table, or a branch of one, that a test may change.
type table struct {
	path   string // <warehouse>/<db>.db/<table>
	branch string // empty for the main branch
}

// location is the table as tablectl takes it.
func (tbl table) location() string {
	if tbl.branch == "" {
		return tbl.path
	}
	return tbl.path + "$branch_" + tbl.branch
}

// metaDir is where the schemas and the snapshots are.
func (tbl table) metaDir() string {
	if tbl.branch == "" {
		return tbl.path
	}
	return filepath.Join(tbl.path, "branch", "branch-"+tbl.branch)
}

// A snapshot is a snapshot file, as far as the tests look at it.
type snapshot struct {
	ID         int64  `json:"id"`
	CommitUser string `json:"commitUser"`
	CommitKind string `json:"commitKind"`
}

// snapshots are the snapshots of a table, oldest first.
func (tbl table) snapshots(t *testing.T) []snapshot {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(tbl.metaDir(), "snapshot", "snapshot-*"))
	if err != nil {
		t.Fatalf("listing snapshots: %v", err)
	}
	all := make([]snapshot, len(paths))
	for i, path := range paths {
		readJSON(t, path, &all[i])
	}
	slices.SortFunc(all, func(a, b snapshot) int { return int(a.ID - b.ID) })
	return all
}

// A schema is a schema file, as far as the tests look at it.
type schema struct {
	Fields []struct {
		Name string          `json:"name"`
		Type json.RawMessage `json:"type"`
	} `json:"fields"`
	PrimaryKeys []string          `json:"primaryKeys"`
	Options     map[string]string `json:"options"`
}

// latestSchema is the schema of a table with the greatest id.
func (tbl table) latestSchema(t *testing.T) schema {
	t.Helper()
	dir := filepath.Join(tbl.metaDir(), "schema")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("listing schemas: %v", err)
	}
	latest := -1
	for _, e := range entries {
		if id, err := strconv.Atoi(strings.TrimPrefix(e.Name(), "schema-")); err == nil {
			latest = max(latest, id)
		}
	}
	var s schema
	readJSON(t, filepath.Join(dir, fmt.Sprintf("schema-%d", latest)), &s)
	return s
}

// copyTable copies the warehouse folder of a case into a temporary folder.
func copyTable(t *testing.T, from, branch string) table {
	t.Helper()
	db := filepath.Join(t.TempDir(), "wh.db")
	if err := os.CopyFS(db, os.DirFS(filepath.Join(from, "wh.db"))); err != nil {
		t.Fatalf("copying %s: %v", from, err)
	}
	return table{path: filepath.Join(db, "t"), branch: branch}
}

// clone copies a table, with all its branches, into a temporary folder.
func (tbl table) clone(t *testing.T) table {
	t.Helper()
	return copyTable(t, filepath.Dir(filepath.Dir(tbl.path)), tbl.branch)
}

// A tree holds the hash of every file under a folder, by relative path.
type tree map[string][sha256.Size]byte

// hashTree hashes the files of a table.
func hashTree(t *testing.T, tbl table) tree {
	t.Helper()
	files := tree{}
	fsys := os.DirFS(tbl.path)
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, path)
		files[path] = sha256.Sum256(data)
		return err
	})
	if err != nil {
		t.Fatalf("hashing %s: %v", tbl.path, err)
	}
	return files
}

// requireSameTree fails the test when a file was added, removed or changed.
func requireSameTree(t *testing.T, before, after tree) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if hash, ok := after[path]; !ok {
			t.Errorf("%s was removed", path)
		} else if hash != before[path] {
			t.Errorf("%s was changed", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[path]; !ok {
			t.Errorf("%s was added", path)
		}
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("decoding %s: %v", path, err)
	}
}

// readRows reads a file of rows, one a line.
func readRows(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return splitRows(string(data))
}

func splitRows(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// sortedRows are all the rows in the order that readers print them.
func sortedRows(batches ...[]string) []string {
	return slices.Sorted(slices.Values(slices.Concat(batches...)))
}
