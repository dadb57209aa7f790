// Package tabletest is what tests of tables have in common: the tables under
// testdata, a builder of small ones, and a reader of rows that shares no code
// with the one under test.
//
// The reader (Rows, ReadFile, on internal/readback) and the writer of input files
// (WriteFile) stand on parquet-go, while the product writes with arrow-go. What a
// file's columns mean (physical types, units, levels) is spelled out there a second
// time on purpose. Two things are shared with the product: its metadata layer finds the
// live files of a snapshot, and internal/cast converts scalars whose type has changed,
// since a second implementation of the casts would prove nothing about the files.
//
// # Rows in memory
//
// A row is a []any with one cell per column, as Cell describes.
//
// # Canonical text
//
// Rows are compared as text: one JSON object per row, without blanks, members in
// the order of the schema, the lines of a table sorted by their bytes. What a cell
// looks like depends on its type alone:
//
//   - null for every null;
//   - BOOLEAN and integers bare;
//   - FLOAT and DOUBLE in quotes, as strconv.FormatFloat does with 'e', the
//     shortest precision and 32 or 64 bits, so that NaN, the infinities and -0
//     have a text too;
//   - DECIMAL in quotes with all digits of its scale;
//   - CHAR and VARCHAR in quotes; the escapes are \" \\ \b \f \n \r \t, and \u00xx
//     with lower-case digits for what else is below U+0020; everything from there on
//     is as it is in UTF-8;
//   - BINARY and VARBINARY in quotes as lower-case hexadecimal digits;
//   - DATE as "2024-02-29", TIME as "23:59:59.999", always with milliseconds;
//   - TIMESTAMP as "2024-01-01T00:00:00.000000000", always with nanoseconds, and
//     TIMESTAMP_LTZ the same in UTC with a Z behind;
//   - ARRAY as an array, ROW as an object;
//   - MAP and MULTISET as an array of [key,value], sorted by the bytes of the
//     text of the pairs;
//   - VARIANT in quotes, as the text of the JSON that Paimon makes of it.
//
// A VARIANT's JSON is implemented for the values that tests use; what is not
// known is printed as hexadecimal digits of its bytes, which serves to compare a
// table before and after.
package tabletest

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tablectl/internal/fileio"
	"tablectl/table"
)

// root is the folder of the repository, found from where this file was compiled.
func root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if dir := filepath.Join(filepath.Dir(file), "..", ".."); ok && filepath.IsAbs(dir) {
		return dir
	}
	// Paths are trimmed: walk up from where the test runs.
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("no repository around this test: %v", err)
	return ""
}

// File is the path of a file of a case under testdata/tables.
func File(t testing.TB, caseName, name string) string {
	t.Helper()
	return filepath.Join(root(t), "testdata", "tables", caseName, name)
}

// Cases lists the cases under testdata/tables.
func Cases(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root(t), "testdata", "tables", "*", "wh.db"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no tables under testdata: %v", err)
	}
	for i, d := range dirs {
		dirs[i] = filepath.Base(filepath.Dir(d))
	}
	return dirs
}

// CopyTable copies the table of a case and returns the path of the copy.
func CopyTable(t testing.TB, caseName string) string {
	t.Helper()
	from, to := File(t, caseName, "wh.db/t"), filepath.Join(t.TempDir(), "wh.db", "t")
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(target, 0o777)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o666)
	})
	if err != nil {
		t.Fatalf("copy %s: %v", caseName, err)
	}
	return to
}

// Load opens a table on this machine.
func Load(t testing.TB, location string, overrides map[string]string) *table.Table {
	t.Helper()
	tbl, err := table.Load(t.Context(), fileio.Local{}, location, overrides)
	if err != nil {
		t.Fatalf("open table %s: %v", location, err)
	}
	return tbl
}

// TreeHash is the content of every file below a folder, by its path in there.
// Folders count as files without content, so that an empty one does not go
// unnoticed.
func TreeHash(t testing.TB, dir string) map[string][32]byte {
	t.Helper()
	tree := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			tree[filepath.ToSlash(name)+"/"] = [32]byte{}
			return nil
		}
		data, err := os.ReadFile(path)
		tree[filepath.ToSlash(name)] = sha256.Sum256(data)
		return err
	})
	if err != nil {
		t.Fatalf("read the files of %s: %v", dir, err)
	}
	return tree
}

// Expected returns the rows of a case, before and after compaction.
func Expected(t testing.TB, caseName string) (before, after []string) {
	t.Helper()
	before = Lines(t, File(t, caseName, "expected.jsonl"))
	path := File(t, caseName, "expected_after.jsonl")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return before, before
	}
	return before, Lines(t, path)
}

// Lines reads the lines of a file.
func Lines(t testing.TB, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read rows: %v", err)
	}
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// Diff tells the first difference between two lists of rows, or returns "".
func Diff(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return difference(i, got[i], want[i])
		}
	}
	switch {
	case len(got) > len(want):
		return difference(len(want), got[len(want)], "(no more rows)")
	case len(got) < len(want):
		return difference(len(got), "(no more rows)", want[len(got)])
	}
	return ""
}
