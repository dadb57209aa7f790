package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tablectl/internal/types"
)

func TestParseSchema(t *testing.T) {
	comment, description := "a table", "the key"
	got, err := ParseSchema([]byte(`{
		"version": 3, "id": 7, "highestFieldId": 9, "comment": "a table", "timeMillis": 1796184624430,
		"fields": [
			{"id": 0, "name": "k", "type": "BIGINT NOT NULL", "description": "the key"},
			{"id": 4, "name": "p", "type": "string"},
			{"id": 2, "name": "r", "type": {"type": "ROW", "fields": [{"id": 9, "name": "k", "type": "INT"}]}}
		],
		"partitionKeys": ["p"], "primaryKeys": ["k", "p"], "options": {"bucket": "-1", "Some.Key": "V"}, "something new": {"a": [1]}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Schema{
		Version: 3, ID: 7, HighestFieldID: 9, Comment: &comment, TimeMillis: 1796184624430,
		Fields: []types.Field{
			{ID: 0, Name: "k", Type: types.Type{Kind: types.BigInt, NotNull: true}, Description: &description},
			{ID: 4, Name: "p", Type: types.Type{Kind: types.Varchar, Length: types.MaxLength}},
			{ID: 2, Name: "r", Type: types.Type{Kind: types.Row, Fields: []types.Field{{ID: 9, Name: "k", Type: types.Type{Kind: types.Int}}}}},
		},
		PartitionKeys: []string{"p"}, PrimaryKeys: []string{"k", "p"}, Options: map[string]string{"bucket": "-1", "Some.Key": "V"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if f, ok := got.Field("p"); !ok || f.ID != 4 {
		t.Errorf("Field(p) is %v, %v", f, ok)
	}
	if f, ok := got.Field("P"); ok {
		t.Errorf("Field(P) is %v", f)
	}
	if fields := got.PartitionFields(); len(fields) != 1 || fields[0].ID != 4 {
		t.Errorf("PartitionFields is %v", fields)
	}
}

// TestSchemaVersions checks the defaults that changed from one version to the next.
func TestSchemaVersions(t *testing.T) {
	for _, c := range []struct{ version, options, bucket, format string }{
		{``, ``, "1", "orc"},
		{`"version": null,`, ``, "1", "orc"},
		{`"version": 1,`, ``, "1", "orc"},
		{`"version": 1,`, `"bucket": "-1", "file.format": "parquet"`, "-1", "parquet"},
		{`"version": 2,`, ``, "", "orc"},
		{`"version": 2,`, `"bucket": "4"`, "4", "orc"},
		{`"version": 3,`, ``, "", ""},
	} {
		s, err := ParseSchema([]byte(`{` + c.version + `"id": 0, "fields": [{"id": 0, "name": "a", "type": "INT"}], "options": {` + c.options + `}}`))
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Options["bucket"] != c.bucket || s.Options["file.format"] != c.format {
			t.Errorf("{%s %s}: bucket %q, file.format %q, want %q and %q", c.version, c.options, s.Options["bucket"], s.Options["file.format"], c.bucket, c.format)
		}
	}
}

// schemaErrors are schemas that are refused, with the message. FIELDS stands for
// a sound list of fields.
var schemaErrors = []struct{ schema, want string }{
	{``, "parse schema: unexpected end of JSON input"},
	{`{"id": 0, "fields": FIELDS`, "parse schema: unexpected end of JSON input"},
	{`{"id": 0, "fields": FIELDS} {}`, "parse schema: invalid character '{' after top-level value"},
	{`{}`, `parse schema: member "id" or "fields" is missing`},
	{`{"fields": FIELDS}`, `parse schema: member "id" or "fields" is missing`},
	{`{"id": null, "fields": FIELDS}`, `parse schema: member "id" or "fields" is missing`},
	{`{"id": 0}`, `parse schema: member "id" or "fields" is missing`},
	{`{"id": "0", "fields": FIELDS}`, "parse schema: json: cannot unmarshal string"},
	{`{"id": 0.5, "fields": FIELDS}`, "parse schema: json: cannot unmarshal number 0.5"},
	{`{"id": 0, "fields": FIELDS, "options": {"bucket": 1}}`, "parse schema: json: cannot unmarshal number"},
	{`{"id": 0, "fields": FIELDS, "options": []}`, "parse schema: json: cannot unmarshal array"},
	{`{"id": 0, "fields": FIELDS, "partitionKeys": "a"}`, "parse schema: json: cannot unmarshal string"},
	{`{"id": 0, "fields": {}}`, "parse schema: parse fields: json: cannot unmarshal object"},
	{`{"id": 0, "fields": ["a"]}`, "parse schema: parse fields: json: cannot unmarshal string"},
	{`{"id": 0, "fields": [{"name": "a", "type": "INT"}]}`, `parse schema: field 0 lacks one of "id", "name", "type"`},
	{`{"id": 0, "fields": [{"id": 0, "type": "INT"}]}`, `parse schema: field 0 lacks one of "id", "name", "type"`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a"}]}`, `parse schema: field 0 lacks one of "id", "name", "type"`},
	{`{"id": 0, "fields": [{"id": -1, "name": "a", "type": "INT"}]}`, `parse schema: field "a" has the id -1, which is out of range`},
	{`{"id": 0, "fields": [{"id": 2147483648, "name": "a", "type": "INT"}]}`, `parse schema: field "a" has the id 2147483648, which is out of range`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": "TEXT"}]}`, `parse schema: field "a": unknown type "TEXT"`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": ""}]}`, `parse schema: field "a": unknown type ""`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": "INT NULLABLE"}]}`, `parse schema: field "a": type "INT NULLABLE": unexpected "NULLABLE"`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": "DECIMAL(39, 0)"}]}`, `parse schema: field "a": type "DECIMAL(39, 0)": precision must be 1 to 38`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": "DECIMAL(5, 6)"}]}`, `parse schema: field "a": type "DECIMAL(5, 6)": precision must be 1 to 38`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": "TIMESTAMP(10)"}]}`, `parse schema: field "a": type "TIMESTAMP(10)": precision must be 0 to 9`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": "VARCHAR(-1)"}]}`, `parse schema: field "a": type "VARCHAR(-1)": bad number in parentheses`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": "CHAR(3"}]}`, `parse schema: field "a": type "CHAR(3": expected )`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": 5}]}`, `parse schema: field "a": parse type 5:`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": {"element": "INT"}}]}`, `parse schema: field "a": type {"element": "INT"} has no member "type"`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": {"type": "ARRAY"}}]}`, `parse schema: field "a": ARRAY type has no member "element"`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": {"type": "MAP", "key": "INT"}}]}`, `parse schema: field "a": MAP type has no member "value"`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": {"type": "ROW"}}]}`, `parse schema: field "a": ROW type has no member "fields"`},
	{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": {"type": "SET", "element": "INT"}}]}`, `parse schema: field "a": unknown type "SET"`},
	{`{"id": 3, "fields": [{"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "a", "type": "INT"}]}`, `schema 3 names the column "a" or its id 1 twice`},
	{`{"id": 3, "fields": [{"id": 0, "name": "a", "type": "INT"}, {"id": 0, "name": "b", "type": "INT"}]}`, `schema 3 names the column "b" or its id 0 twice`},
	{`{"id": 3, "fields": FIELDS, "partitionKeys": ["b"]}`, `schema 3 has no column for its key "b"`},
	{`{"id": 3, "fields": FIELDS, "primaryKeys": ["a", "A"]}`, `schema 3 has no column for its key "A"`},
}

func TestSchemaErrors(t *testing.T) {
	for _, c := range schemaErrors {
		text := strings.ReplaceAll(c.schema, "FIELDS", `[{"id": 0, "name": "a", "type": "INT"}]`)
		s, err := ParseSchema([]byte(text))
		if err == nil {
			t.Errorf("%s is read as %+v", text, s)
		} else if !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s…", text, err, c.want)
		}
	}
}

func TestSchemasThatAreNotSupported(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"version": 4, "id": 0, "fields": []}`, "schema 0 has the version 4, newer than 3"},
		{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": "VARIANT"}], "partitionKeys": ["a"]}`, `schema 0 is partitioned by "a", a column of type VARIANT`},
		{`{"id": 0, "fields": [{"id": 0, "name": "a", "type": "INT ARRAY"}], "partitionKeys": ["a"]}`, `schema 0 is partitioned by "a", a column of type ARRAY<INT>`},
	} {
		if _, err := ParseSchema([]byte(c.schema)); !errors.Is(err, ErrUnsupported) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.schema, err, c.want)
		}
	}
}

// TestSchemaNesting makes sure that a hostile file is an error and not a stack
// that overflows.
func TestSchemaNesting(t *testing.T) {
	for _, c := range []struct {
		open, end string
		n         int
		ok        bool
	}{
		{`{"type": "ARRAY", "element": `, `}`, 60, true},
		{`{"type": "ARRAY", "element": `, `}`, 65, false},
		{`{"type": "ARRAY", "element": `, `}`, 9_000, false},
		{`{"type": "ARRAY", "element": `, `}`, 100_000, false},
		{`{"type": "MAP", "key": "INT", "value": `, `}`, 65, false},
		{`{"type": "ROW", "fields": [{"id": 1, "name": "x", "type": `, `}]}`, 60, true},
		{`{"type": "ROW", "fields": [{"id": 1, "name": "x", "type": `, `}]}`, 2_000, false},
	} {
		text := `{"id": 0, "fields": [{"id": 0, "name": "a", "type": ` + strings.Repeat(c.open, c.n) + `"INT"` + strings.Repeat(c.end, c.n) + `}]}`
		if _, err := ParseSchema([]byte(text)); (err == nil) != c.ok {
			t.Errorf("%d times %s: got the error %v", c.n, c.open, err)
		} else if err != nil && len(err.Error()) > 10_000 {
			t.Errorf("%d times %s: the message has %d bytes", c.n, c.open, len(err.Error()))
		}
	}
	if _, err := ParseSchema([]byte(`{"id": 0, "fields": [{"id": 0, "name": "a", "type": "INT` + strings.Repeat(" ARRAY", 1000) + `"}]}`)); err == nil {
		t.Error("INT ARRAY ARRAY … is accepted")
	}
}

// schemaFiles are the schemas of all tables in testdata.
func schemaFiles(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../testdata/tables/*/wh.db/t/schema/schema-*")
	if err != nil || len(files) < 50 {
		t.Fatalf("found %d schemas: %v", len(files), err)
	}
	schemas := map[string][]byte{}
	for _, f := range files {
		if schemas[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return schemas
}

// TestRealSchemas reads every schema file of real tables and finds in it what a
// plain JSON reader finds.
func TestRealSchemas(t *testing.T) {
	for file, data := range schemaFiles(t) {
		s, err := ParseSchema(data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var raw struct {
			ID      int64
			Fields  []struct{ Name string }
			Options map[string]string
		}
		if err := json.Unmarshal(data, &raw); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) != fmt.Sprintf("schema-%d", s.ID) || raw.ID != s.ID || len(raw.Fields) != len(s.Fields) {
			t.Errorf("%s is read as schema %d with %d fields", file, s.ID, len(s.Fields))
		}
		for i, f := range s.Fields {
			if f.Name != raw.Fields[i].Name {
				t.Errorf("%s: column %d is %q, want %q", file, i, f.Name, raw.Fields[i].Name)
			}
		}
		for k, v := range raw.Options {
			if s.Options[k] != v {
				t.Errorf("%s: option %s is %q, want %q", file, k, s.Options[k], v)
			}
		}
		if _, err := ParseOptions(s.Options, nil); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
