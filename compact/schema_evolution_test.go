package compact_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tablectl/compact"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// TestSchemaEvolutionTables rewrites the tables under testdata whose files were
// written under several schemas, all files at once: everything is under the latest
// schema afterwards, and its rows are the ones that Java reads.
func TestSchemaEvolutionTables(t *testing.T) {
	found := 0
	for _, name := range tabletest.Cases(t) {
		if !strings.HasPrefix(name, "append-schema-evolution") {
			continue
		}
		found++
		t.Run(name, func(t *testing.T) {
			location := tabletest.CopyTable(t, name)
			tbl := tabletest.Load(t, location, map[string]string{"compaction.force-rewrite-all-files": "true"})
			schemas := map[int64]bool{}
			for _, e := range liveOf(t, tbl, latestOf(t, tbl)) {
				schemas[e.File.SchemaID] = true
			}
			if len(schemas) < 2 {
				t.Fatalf("files of the schemas %v", schemas)
			}
			compactAndCheck(t, tbl, location, compact.Options{})
			for _, e := range liveOf(t, tbl, latestOf(t, tbl)) {
				if e.File.SchemaID != tbl.Schema.ID {
					t.Errorf("data file %s has the schema %d, the latest is %d", e.File.FileName, e.File.SchemaID, tbl.Schema.ID)
				}
			}
			_, want := tabletest.Expected(t, name)
			if diff := tabletest.Diff(rowsOf(t, tbl, latestOf(t, tbl)), want); diff != "" {
				t.Error(diff)
			}
		})
	}
	if found < 2 {
		t.Errorf("%d tables", found)
	}
}

// column makes a column of a scalar type.
func column(t *testing.T, id int, name, typ string) types.Field {
	t.Helper()
	f := tabletest.Columns(t, [2]string{name, typ})[0]
	f.ID = id
	return f
}

// TestSchemaEvolutionRecipe renames, drops, adds again under the old name, moves
// and widens columns, and members of a row, with files of every schema. The rows are
// spelled out.
func TestSchemaEvolutionRecipe(t *testing.T) {
	row := func(id int, name string, members ...types.Field) types.Field {
		return types.Field{ID: id, Name: name, Type: types.Type{Kind: types.Row, Fields: members}}
	}
	b := tabletest.NewTable(t, []types.Field{
		column(t, 0, "id", "INT NOT NULL"), column(t, 1, "a", "INT"), column(t, 2, "b", "STRING"), column(t, 3, "c", "DECIMAL(5, 2)"),
		row(4, "r", column(t, 5, "x", "INT"), column(t, 6, "y", "STRING")),
	}, nil, map[string]string{"compaction.min.file-num": "2"})
	unscaled := func(n int64) any { return types.Value{Unscaled: types.DecodeUnscaled([]byte{byte(n >> 8), byte(n)})} }
	b.Append(tabletest.Data{Rows: [][]any{
		{integer(1), integer(-7), text("dropped"), unscaled(-150), tabletest.Struct{integer(1), text("y1")}},
		{integer(2), nil, nil, nil, nil},
		{integer(3), integer(2147483647), text(""), unscaled(12345), tabletest.Struct{nil, nil}},
	}})
	// b is gone and its name taken by another column, a is renamed, r has a member more.
	b.Evolve([]types.Field{
		column(t, 0, "id", "INT NOT NULL"), column(t, 1, "a2", "INT"), column(t, 7, "b", "INT"), column(t, 3, "c", "DECIMAL(5, 2)"),
		row(4, "r", column(t, 8, "new", "INT"), column(t, 5, "x", "INT"), column(t, 6, "y", "STRING")),
	})
	b.Append(tabletest.Data{Rows: [][]any{
		{integer(4), integer(5), integer(6), unscaled(1), tabletest.Struct{integer(9), integer(1), text("y4")}},
	}})
	// Everything is moved and widened, and y is gone from r.
	b.Evolve([]types.Field{
		row(4, "s", column(t, 5, "x", "BIGINT"), column(t, 8, "new", "INT")), column(t, 3, "c", "DECIMAL(10, 4)"), column(t, 1, "a2", "BIGINT"),
		column(t, 9, "b2", "DOUBLE"), column(t, 7, "b", "STRING"), column(t, 0, "id", "INT NOT NULL"),
	})
	b.Append(tabletest.Data{Rows: [][]any{
		{tabletest.Struct{types.Value{Int: 1 << 40}, nil}, unscaled(-20000), integer(1), number(0.5), text("new"), integer(5)},
	}}, tabletest.Data{Schema: 1, Rows: [][]any{{integer(6), nil, text("late"), nil, nil}}})
	want := []string{
		`{"s":{"x":1,"new":null},"c":"-1.5000","a2":-7,"b2":null,"b":null,"id":1}`,
		`{"s":null,"c":null,"a2":null,"b2":null,"b":null,"id":2}`,
		`{"s":{"x":null,"new":null},"c":"123.4500","a2":2147483647,"b2":null,"b":null,"id":3}`,
		`{"s":{"x":1,"new":9},"c":"0.0100","a2":5,"b2":null,"b":"6","id":4}`,
		`{"s":{"x":1099511627776,"new":null},"c":"-2.0000","a2":1,"b2":"5e-01","b":"new","id":5}`,
		`{"s":null,"c":null,"a2":null,"b2":null,"b":null,"id":6}`,
	}
	slices.Sort(want)
	compactBuilt(t, b, nil)
	tbl := b.Load(nil)
	if diff := tabletest.Diff(rowsOf(t, tbl, latestOf(t, tbl)), want); diff != "" {
		t.Error(diff)
	}
	if live := liveOf(t, tbl, latestOf(t, tbl)); len(live) != 1 || live[0].File.SchemaID != 2 {
		t.Errorf("%d files, the first of schema %d", len(live), live[0].File.SchemaID)
	}
}

// refused compacts a table that cannot be: the error has the text, and the table
// is as it was.
func refused(t *testing.T, tbl *table.Table, part string) error {
	t.Helper()
	files := tabletest.TreeHash(t, tbl.Location)
	report, err := compact.Table(t.Context(), tbl, compact.Options{})
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
	if report == nil || report.After != nil {
		t.Errorf("the report has %+v", report)
	}
	checkUntouched(t, tbl.Location, files)
	return err
}

// TestNewerSchemaThanLoaded has a writer that changes the schema and writes a file
// under it after the table was opened: what the file's columns mean is not known.
func TestNewerSchemaThanLoaded(t *testing.T) {
	old := []types.Field{column(t, 0, "id", "INT"), column(t, 1, "v", "INT")}
	newer := append(slices.Clone(old), column(t, 2, "w", "INT"))
	b := tabletest.NewTable(t, old, nil, map[string]string{"compaction.min.file-num": "2"})
	for range 3 {
		b.Append(tabletest.Data{Rows: [][]any{{integer(1), integer(2)}}})
	}
	tbl := b.Load(nil)
	b.Evolve(newer)
	b.Append(tabletest.Data{Rows: [][]any{{integer(1), integer(2), integer(3)}}})

	t.Run("of the snapshot", func(t *testing.T) {
		if err := refused(t, tbl, "run again"); !errors.Is(err, snapshot.ErrConflict) {
			t.Errorf("%v is no conflict", err)
		}
	})

	t.Run("of a file", func(t *testing.T) {
		s := latestOf(t, tbl)
		s.SchemaID = 0
		data, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(tbl.SnapshotPath(s.ID), data, 0o666); err != nil {
			t.Fatal(err)
		}
		live := liveOf(t, tbl, s)
		if err := refused(t, tbl, live[len(live)-1].File.FileName+" has the schema 1"); !errors.Is(err, snapshot.ErrConflict) {
			t.Errorf("%v is no conflict", err)
		}
	})

	t.Run("opened again", func(t *testing.T) {
		compactBuilt(t, b, nil)
	})

	t.Run("of a file, and missing", func(t *testing.T) {
		b.Append(tabletest.Data{Rows: [][]any{{integer(1), integer(2), integer(3)}}})
		if err := os.Remove(tbl.SchemaDir() + "/schema-1"); err != nil {
			t.Fatal(err)
		}
		if err := refused(t, b.Load(nil), "snapshot 7: schema 1 is missing"); errors.Is(err, snapshot.ErrConflict) {
			t.Errorf("%v is a conflict", err)
		}
	})
}

// TestFilesThatCannotBeEvolved has files that no reader can show under the latest
// schema, or whose schema is lost.
func TestFilesThatCannotBeEvolved(t *testing.T) {
	build := func(t *testing.T, from, to string, cells ...any) *tabletest.Builder {
		t.Helper()
		b := tabletest.NewTable(t, []types.Field{column(t, 0, "id", "INT"), column(t, 1, "v", from)}, nil, map[string]string{"compaction.min.file-num": "2"})
		for _, c := range cells {
			b.Append(tabletest.Data{Rows: [][]any{{integer(1), c}}})
		}
		if to != "" {
			b.Evolve([]types.Field{column(t, 0, "id", "INT"), column(t, 1, "v", to)})
		}
		return b
	}
	t.Run("no such cast", func(t *testing.T) {
		err := refused(t, build(t, "BOOLEAN", "DATE", integer(1), nil).Load(nil), "no cast from BOOLEAN to DATE")
		if !errors.Is(err, table.ErrUnsupported) {
			t.Errorf("error %v does not wrap ErrUnsupported", err)
		}
	})
	t.Run("a cast that depends on the time zone", func(t *testing.T) {
		err := refused(t, build(t, "TIMESTAMP(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", integer(1), nil).Load(nil), "depends on the time zone")
		if !errors.Is(err, table.ErrUnsupported) {
			t.Errorf("error %v does not wrap ErrUnsupported", err)
		}
	})
	t.Run("a value without a result", func(t *testing.T) {
		refused(t, build(t, "STRING", "INT", text("1"), text("one")).Load(nil), `cast "one" from STRING to INT`)
	})
	t.Run("a null that is not allowed", func(t *testing.T) {
		refused(t, build(t, "STRING", "STRING NOT NULL", text("1"), nil).Load(nil), "NOT NULL")
	})
	t.Run("the schema is lost", func(t *testing.T) {
		b := build(t, "INT", "BIGINT", integer(1), integer(2))
		tbl := b.Load(nil)
		if err := os.Remove(filepath.Join(b.Location, "schema", "schema-0")); err != nil {
			t.Fatal(err)
		}
		refused(t, tbl, "schema 0")
	})
}
