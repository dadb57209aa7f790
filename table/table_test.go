package table

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tablectl/internal/fileio"
	"tablectl/internal/types"
)

// makeTable writes schema files, relative to a new folder wh/db.db/t, and returns
// the folder. A content without a brace is an id: a schema with that id.
func makeTable(t *testing.T, files map[string]string) string {
	t.Helper()
	location := filepath.Join(t.TempDir(), "wh", "db.db", "t")
	for name, content := range files {
		if !strings.Contains(content, "{") {
			content = schemaText(content, "")
		}
		file := filepath.Join(location, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return location
}

func schemaText(id, options string) string {
	return fmt.Sprintf(`{"version": 3, "id": %s, "fields": [{"id": 0, "name": "a", "type": "INT"}], "options": {%s}}`, id, options)
}

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name      string
		files     map[string]string
		location  string // behind the folder
		overrides map[string]string
		id        int64
		is        error // nil: no error, or any if want is set
		want      string
	}{
		{"one schema", map[string]string{"schema/schema-0": "0"}, "", nil, 0, nil, ""},
		{"the highest id, as a number", map[string]string{"schema/schema-9": "9", "schema/schema-10": "10", "schema/schema-0": "0"}, "", nil, 10, nil, ""},
		{"other files", map[string]string{
			"schema/schema-1": "1", "schema/schema-x": "x", "schema/schema--2": "2", "schema/.schema-3.tmp": "3", "schema/schema-4.bak": "4", "schema/Schema-5": "5",
		}, "", nil, 1, nil, ""},
		{"a slash at the end", map[string]string{"schema/schema-0": "0"}, "/", nil, 0, nil, ""},
		{"no folder", nil, "", nil, 0, ErrNotFound, "holds no schema file"},
		{"no schema folder", map[string]string{"snapshot/snapshot-1": "1"}, "", nil, 0, ErrNotFound, "holds no schema file"},
		{"no schema file", map[string]string{"schema/README": "0"}, "", nil, 0, ErrNotFound, "holds no schema file"},
		{"a branch", map[string]string{"schema/schema-0": "0", "branch/branch-b1/schema/schema-2": "2"}, "$branch_b1", nil, 2, nil, ""},
		{"the main branch by name", map[string]string{"schema/schema-0": "0", "branch/branch-main/schema/schema-2": "2"}, "$branch_main", nil, 0, nil, ""},
		{"no such branch", map[string]string{"schema/schema-0": "0"}, "$branch_b2", nil, 0, ErrNotFound, "branch-b2"},
		{"another id inside", map[string]string{"schema/schema-0": "1"}, "", nil, 0, nil, "schema-0 holds the schema 1"},
		{"no JSON", map[string]string{"schema/schema-0": "{"}, "", nil, 0, nil, "schema-0: parse schema: unexpected end of JSON input"},
		{"an empty file", map[string]string{"schema/schema-0": " {"}, "", nil, 0, nil, "schema-0"},
		{"a version of the future", map[string]string{"schema/schema-0": `{"version": 9, "id": 0, "fields": []}`}, "", nil, 0, ErrUnsupported, "version 9"},
		{"a stored option that is wrong", map[string]string{"schema/schema-0": schemaText("0", `"bucket": "x"`)}, "", nil, 0, ErrInvalid, "option bucket=x"},
		{"an override that is wrong", map[string]string{"schema/schema-0": "0"}, "", map[string]string{"target-file-size": "x"}, 0, ErrInvalid, "option target-file-size=x"},
		{"an override that is forbidden", map[string]string{"schema/schema-0": "0"}, "", map[string]string{"bucket": "2"}, 0, ErrInvalid, "option bucket cannot"},
		{"an override that repairs", map[string]string{"schema/schema-0": schemaText("0", `"target-file-size": "x"`)}, "", map[string]string{"target-file-size": "1 mb"}, 0, nil, ""},
		{"a branch in the options", map[string]string{"schema/schema-0": schemaText("0", `"branch": "b1"`)}, "", nil, 0, ErrUnsupported, "branch=b1"},
		{"the main branch in the options", map[string]string{"schema/schema-0": schemaText("0", `"branch": "main"`)}, "", nil, 0, nil, ""},
		{"system table", map[string]string{"schema/schema-0": "0"}, "$snapshots", nil, 0, ErrInvalid, "names a system table"},
		{"system table of a branch", map[string]string{"schema/schema-0": "0"}, "$files$branch_b1", nil, 0, ErrInvalid, "names a system table"},
		{"branch that leaves the table", map[string]string{"schema/schema-0": "0"}, "$branch_../../schema", nil, 0, ErrInvalid, "the branch name is not a file name"},
		{"branch without a name", map[string]string{"schema/schema-0": "0"}, "$branch_", nil, 0, ErrInvalid, "the branch name is not a file name"},
		{"branch named ..", map[string]string{"schema/schema-0": "0"}, "$branch_..", nil, 0, ErrInvalid, "the branch name is not a file name"},
		{"branch with a backslash", map[string]string{"schema/schema-0": "0"}, `$branch_a\b`, nil, 0, ErrInvalid, "the branch name is not a file name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tbl, err := Load(t.Context(), fileio.Local{}, makeTable(t, c.files)+c.location, c.overrides)
			switch {
			case c.want != "":
				if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
					t.Fatalf("got %v, want %s", err, c.want)
				}
				for _, other := range []error{ErrNotFound, ErrUnsupported, ErrInvalid} {
					if !errors.Is(c.is, other) && errors.Is(err, other) {
						t.Errorf("%v wraps %v too", err, other)
					}
				}
			case err != nil:
				t.Fatal(err)
			case tbl.Schema.ID != c.id:
				t.Errorf("opened schema %d, want %d", tbl.Schema.ID, c.id)
			}
		})
	}
}

func TestLocations(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	here = filepath.ToSlash(here)
	for _, c := range []struct {
		location, dir, branch string
		is                    error
	}{
		{"/wh/db.db/t", "/wh/db.db/t", "", nil},
		{"file:///wh/db.db/t", "/wh/db.db/t", "", nil},
		{"file:///wh/db.db/t$branch_b1", "/wh/db.db/t", "b1", nil},
		{"/wh/db.db/t$branch_b1", "/wh/db.db/t", "b1", nil},
		{"/wh/db.db/t$branch_ünï b", "/wh/db.db/t", "ünï b", nil},
		{"/wh/db.db/t$branch_main", "/wh/db.db/t", "", nil},
		{"/wh/db.db/../x.db/./t//", "/wh/x.db/t", "", nil},
		{"/wh/100%/a b", "/wh/100%/a b", "", nil},
		{"/wh/$x/t", "/wh/$x/t", "", nil},
		{"t", here + "/t", "", nil},
		{".", here, "", nil},
		{"../x", filepath.ToSlash(filepath.Dir(here)) + "/x", "", nil},
		{"s3://bucket/wh/db.db/t", "", "", ErrUnsupported},
		{"s3a://bucket/t$branch_b1", "", "", ErrUnsupported},
		{"oss://bucket/t", "", "", ErrUnsupported},
		{"hdfs://host:8020/t", "", "", ErrUnsupported},
		{"/wh/db.db/t$snapshots", "", "", ErrInvalid},
		{"/wh/db.db/t$files", "", "", ErrInvalid},
		{"file:///wh/t$options", "", "", ErrInvalid},
		{"/wh/db.db/t$", "", "", ErrInvalid},
		{"/wh/db.db/t$Branch_b1", "", "", ErrInvalid},
		{"/wh/db.db/t$branch_a/b", "", "", ErrInvalid},
		{"/wh/db.db/t$branch_.", "", "", ErrInvalid},
		{"/wh/db.db/t$branch_\x00", "", "", ErrInvalid},
	} {
		dir, branch, err := SplitLocation(c.location)
		switch {
		case c.is != nil:
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.location) && !strings.Contains(c.location, "file:") {
				t.Errorf("%s: got %q, %q, %v, want an error that is %v and names the location", c.location, dir, branch, err, c.is)
			}
		case err != nil || dir != c.dir || branch != c.branch:
			t.Errorf("%s: got %q, %q, %v, want %q, %q", c.location, dir, branch, err, c.dir, c.branch)
		}
	}
	if _, _, err := SplitLocation("s3://bucket/t"); err == nil || !strings.Contains(err.Error(), `the store "s3"`) {
		t.Errorf("the message does not name the store: %v", err)
	}
}

func TestTableName(t *testing.T) {
	for _, c := range []struct{ location, branch, want string }{
		{"/wh/db.db/t", "", "db.t"}, {"/wh/db.db/t", "b1", "db.t$branch_b1"}, {"/wh/x/t", "", "t"}, {"/t", "", "t"}, {"/wh/.db/t", "", "t"}, {"/wh/a.b.db/t", "", "a.b.t"},
	} {
		if got := (&Table{Location: c.location, Branch: c.branch}).Name(); got != c.want {
			t.Errorf("%s is called %s, want %s", c.location, got, c.want)
		}
	}
}

func TestSchemaByID(t *testing.T) {
	location := makeTable(t, map[string]string{"schema/schema-0": "0", "schema/schema-1": "1"})
	tbl, err := Load(t.Context(), fileio.Local{}, location, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := tbl.SchemaByID(t.Context(), 0); err != nil || s.ID != 0 {
		t.Errorf("schema 0 is %v, %v", s, err)
	}
	if _, err := tbl.SchemaByID(t.Context(), 2); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "schema 2") {
		t.Errorf("schema 2: %v", err)
	}
	// The table keeps its schema when another one comes.
	if err := os.WriteFile(filepath.Join(location, "schema", "schema-2"), []byte(schemaText("2", "")), 0o666); err != nil {
		t.Fatal(err)
	}
	if now, err := tbl.Reopen(t.Context()); err != nil || now.Schema.ID != 2 || tbl.Schema.ID != 1 {
		t.Errorf("opened again: %v, %v; the table has schema %d", now, err, tbl.Schema.ID)
	}
	// What was read is not read again.
	if err := os.RemoveAll(location); err != nil {
		t.Fatal(err)
	}
	if s, err := tbl.SchemaByID(t.Context(), 0); err != nil || s.ID != 0 {
		t.Errorf("schema 0, again, is %v, %v", s, err)
	}
}

// TestCheckSupported has the smallest table for each feature that is refused.
func TestCheckSupported(t *testing.T) {
	integer := types.Type{Kind: types.Int}
	columns := func(kinds ...types.Kind) func(*Schema) {
		return func(s *Schema) {
			for i, k := range kinds {
				s.Fields = append(s.Fields, types.Field{ID: 10 + i, Name: fmt.Sprintf("x%d", i), Type: types.Type{Kind: k, Element: &integer}})
			}
		}
	}
	nested := func(inner types.Type) func(*Schema) {
		return func(s *Schema) {
			array := types.Type{Kind: types.Array, Element: &inner}
			s.Fields = append(s.Fields, types.Field{ID: 9, Name: "x", Type: types.Type{Kind: types.Row, Fields: []types.Field{
				{ID: 10, Name: "m", Type: types.Type{Kind: types.Map, Key: &integer, Element: &array}},
			}}})
		}
	}
	option := func(keysAndValues ...string) func(*Schema) {
		return func(s *Schema) {
			for i := 0; i < len(keysAndValues); i += 2 {
				s.Options[keysAndValues[i]] = keysAndValues[i+1]
			}
		}
	}
	keyed := func(keysAndValues ...string) func(*Schema) {
		return func(s *Schema) {
			s.PrimaryKeys = []string{"a"}
			option(keysAndValues...)(s)
		}
	}
	named := map[string]bool{}
	for _, c := range []struct {
		feature string // "" is a table that can be compacted
		change  func(*Schema)
	}{
		{"", option()},
		{"", option("type", "table")},
		{"a table of type other than table (option type)", option("type", "format-table")},
		{"a table of type other than table (option type)", option("type", " Object-Table ")},
		{"", keyed()},
		{"", keyed("merge-engine", "aggregation", "changelog-producer", "input")},
		{"the merge engine first-row (merge-engine)", keyed("merge-engine", "first-row")},
		{"a changelog that compaction writes (changelog-producer)", keyed("changelog-producer", "lookup")},
		{"a changelog that compaction writes (changelog-producer)", keyed("changelog-producer", "full-compaction")},
		{"lookups while merging (force-lookup)", keyed("force-lookup", "true")},
		{"", option("merge-engine", "first-row", "changelog-producer", "lookup", "force-lookup", "true")},
		{"clustering of primary-key tables (pk-clustering-override)", keyed("pk-clustering-override", "true")},
		{"sequence numbers from snapshots (sequence.snapshot-ordering)", keyed("sequence.snapshot-ordering", "true")},
		{"orc files (file.format)", keyed("file.format", "orc", "file.format.per.level", "0:avro")},
		{"", keyed("file.format", "orc", "file.format.per.level", "5:parquet")},
		{"data evolution (data-evolution.enabled)", option("data-evolution.enabled", "true", "row-tracking.enabled", "true")},
		{"row tracking (row-tracking.enabled)", option("row-tracking.enabled", "TRUE")},
		{"", option("row-tracking.enabled", "false")},
		{"deletion vectors (deletion-vectors.enabled)", option("deletion-vectors.enabled", "true")},
		{"BLOB columns", columns(types.Blob)},
		{"BLOB columns", nested(types.Type{Kind: types.Blob})},
		{"VECTOR columns", columns(types.Vector)},
		{"GEOMETRY and GEOGRAPHY columns", columns(types.Geometry)},
		{"GEOMETRY and GEOGRAPHY columns", nested(types.Type{Kind: types.Geography})},
		{"", columns(types.Variant, types.Array, types.Multiset)},
		{"incremental clustering (clustering.incremental)", option("clustering.incremental", " true")},
		{"", option("clustering.incremental", "false", "clustering.columns", "a")},
		{"chain tables (chain-table.enabled)", option("chain-table.enabled", "true")},
		{"shredded maps (map.storage-layout)", option("map.storage-layout", "shredded")},
		{"", option("map.storage-layout", "DEFAULT")},
		{"shredded variants (parquet.variant.shreddingSchema)", option("parquet.variant.shreddingSchema", "{}")},
		{"shredded variants (variant.shreddingSchema)", option("variant.shreddingSchema", "{}")},
		{"shredded variants (variant.inferShreddingSchema)", option("variant.inferShreddingSchema", "true")},
		{"postpone buckets (bucket = -2)", option("bucket", "-2")},
		{"", option("bucket", "4")},
		{"manifests that are not Avro (manifest.format)", option("manifest.format", "orc")},
		{"", option("manifest.format", "Avro")},
		{"external data paths (data-file.external-paths)", option("data-file.external-paths", "file:///x", "data-file.external-paths.strategy", "round-robin")},
		{"", option("data-file.external-paths", "file:///x")},
		{"", option("data-file.external-paths", "file:///x", "data-file.external-paths.strategy", "none")},
		{"sequence numbers from snapshots (write.sequence-number-init-mode)", option("write.sequence-number-init-mode", "snapshot")},
		{"", option("write.sequence-number-init-mode", "scan")},
		{"encrypted Parquet files (parquet.encryption.*)", option("parquet.encryption.footer.key", "k")},
		{"orc files (file.format)", option("file.format", "orc")},
		{"avro files (file.format)", option("file.format", "AVRO")},
	} {
		s := &Schema{Version: 3, Fields: []types.Field{{ID: 0, Name: "a", Type: integer}}, Options: map[string]string{}}
		c.change(s)
		o, err := ParseOptions(s.Options, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = (&Table{Location: "/wh/db.db/t", Schema: s, Options: o}).CheckSupported()
		named[c.feature] = true
		switch {
		case c.feature == "" && err != nil:
			t.Errorf("%v is refused: %v", s.Options, err)
		case c.feature != "" && (!errors.Is(err, ErrUnsupported) || !strings.HasPrefix(err.Error(), "table db.t ") || !strings.Contains(err.Error(), c.feature)):
			t.Errorf("%v: got %v, want a refusal of %s", s.Options, err, c.feature)
		}
	}
	for _, r := range refusals {
		if !named[r.feature] {
			t.Errorf("no case for %s", r.feature)
		}
	}
}

// TestRealRefusals opens tables that Java wrote with features that are refused.
func TestRealRefusals(t *testing.T) {
	for name, want := range map[string]string{
		"pk-first-row": "first-row", "pk-changelog-lookup": "changelog-producer", "pk-deletion-vectors": "deletion vectors", "append-blob": "", "append-deletion-vectors": "deletion vectors", "append-row-tracking": "row tracking",
		"append-data-evolution": "data evolution", "append-manifest-orc": "manifest.format", "append-orc": "orc files", "append-avro": "avro files",
		"pk-postpone-bucket": "postpone buckets", "written-by-java-0.8-orc": "orc files", "append-row-tracking-deletion-vectors": "row tracking",
	} {
		tbl, err := Load(t.Context(), fileio.Local{}, filepath.Join("../testdata/tables", name, "wh.db", "t"), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := tbl.CheckSupported(); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a refusal of %s", name, err, want)
		}
	}
}
