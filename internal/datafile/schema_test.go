package datafile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"tablectl/internal/datafile"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// printedSchema is the schema of a file, with field ids, as the other Parquet
// library prints it: the one that reads files in the tests drops the id 0.
func printedSchema(t *testing.T, data []byte) string {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out strings.Builder
	schema.PrintSchema(r.MetaData().Schema.Root(), &out, 2)
	return out.String()
}

// TestSchemaIsThatOfJava rewrites files that Java wrote: names, ids, types and
// annotations stay as they are, but for the old annotation within maps.
func TestSchemaIsThatOfJava(t *testing.T) {
	for _, name := range []string{"append-all-types", "append-multiset", "append-variant", "append-not-null-default", "append-partitioned"} {
		t.Run(name, func(t *testing.T) {
			tbl := tabletest.Load(t, tabletest.File(t, name, "wh.db/t"), nil)
			var path string
			err := filepath.WalkDir(tbl.Location, func(p string, _ os.DirEntry, err error) error {
				if strings.HasSuffix(p, ".parquet") {
					path = p
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := tabletest.ReadFile(data, tbl.Schema.Fields)
			if err != nil {
				t.Fatal(err)
			}
			fields := tbl.Schema.Fields
			_, store, _, err := concat(t.Context(), []datafile.Input{input(path, fields, data, len(rows))}, plainSpec(fields))
			if err != nil {
				t.Fatal(err)
			}
			got, want := printedSchema(t, store.files[0].Bytes()), printedSchema(t, data)
			want = strings.ReplaceAll(want, "key_value (Map) {", "key_value {") // see node
			if diff := tabletest.Diff(strings.Split(got, "\n"), strings.Split(want, "\n")); diff != "" {
				t.Errorf("%s\n%s", diff, got)
			}
			if !strings.Contains(want, "field_id=0 ") {
				t.Errorf("no field id 0 in %s", want)
			}
		})
	}
}

// TestFieldIDs checks ids that no table under testdata has: of parts of nested
// types in nested types.
func TestFieldIDs(t *testing.T) {
	integer := types.Type{Kind: types.Int}
	array := func(e types.Type) types.Type { return types.Type{Kind: types.Array, Element: &e} }
	text := types.Type{Kind: types.Varchar, Length: types.MaxLength}
	fields := []types.Field{
		{ID: 0, Name: "aa", Type: array(array(integer))},
		{ID: 7, Name: "m", Type: types.Type{Kind: types.Map, Key: &text, Element: ptr(array(integer))}},
		{ID: 8, Name: "r", Type: array(types.Type{Kind: types.Row, Fields: []types.Field{{ID: 9, Name: "x", Type: array(integer)}}})},
	}
	_, store, _, err := concat(t.Context(), []datafile.Input{written(t, 0, fields, [][]any{{nil, nil, nil}}, tabletest.FileOptions{})}, plainSpec(fields))
	if err != nil {
		t.Fatal(err)
	}
	const base = 536870911
	want := map[string]int32{
		"aa": 0, "aa.list": -1, "aa.list.element": base + 1, "aa.list.element.list": -1, "aa.list.element.list.element": base + 2,
		"m": 7, "m.key_value": -1, "m.key_value.key": base - 7*1024 - 1, "m.key_value.value": base + 7*1024 + 1,
		"m.key_value.value.list": -1, "m.key_value.value.list.element": base + 7*1024 + 2,
		"r": 8, "r.list": -1, "r.list.element": base + 8*1024 + 1, "r.list.element.x": 9, "r.list.element.x.list": -1,
		"r.list.element.x.list.element": base + 9*1024 + 1,
	}
	r, err := file.NewParquetReader(bytes.NewReader(store.files[0].Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := 0
	var walk func(path string, n schema.Node)
	walk = func(path string, n schema.Node) {
		if path != "" {
			seen++
			if id, ok := want[path]; !ok || n.FieldID() != id {
				t.Errorf("%s has the id %d, want %d", path, n.FieldID(), id)
			}
			path += "."
		}
		if g, ok := n.(*schema.GroupNode); ok {
			for i := range g.NumFields() {
				walk(path+g.Field(i).Name(), g.Field(i))
			}
		}
	}
	walk("", r.MetaData().Schema.Root())
	if seen != len(want) {
		t.Errorf("%d nodes, want %d", seen, len(want))
	}
}

func ptr[T any](v T) *T { return &v }
