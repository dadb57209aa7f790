package types

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestParse shows every spelling of the reference's grammar (DataTypeJsonParser)
// and how the type is spelled back.
func TestParse(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"BOOLEAN", "BOOLEAN"},
		{"TINYINT", "TINYINT"},
		{"SMALLINT", "SMALLINT"},
		{"INT", "INT"},
		{"INTEGER", "INT"},
		{"BIGINT", "BIGINT"},
		{"FLOAT", "FLOAT"},
		{"DOUBLE", "DOUBLE"},
		{"DOUBLE PRECISION", "DOUBLE"},
		{"DOUBLE PRECISION NOT NULL", "DOUBLE NOT NULL"},
		{"DATE", "DATE"},
		{"VARIANT", "VARIANT"},
		{"BLOB", "BLOB"},
		{"GEOMETRY(OGC:CRS84)", "GEOMETRY"},

		{"CHAR", "CHAR(1)"},
		{"CHAR(33)", "CHAR(33)"},
		{"VARCHAR", "VARCHAR(1)"},
		{"VARCHAR(33)", "VARCHAR(33)"},
		{"VARCHAR(2147483647)", "STRING"},
		{"STRING", "STRING"},
		{"BINARY", "BINARY(1)"},
		{"BINARY(33)", "BINARY(33)"},
		{"VARBINARY", "VARBINARY(1)"},
		{"VARBINARY(33)", "VARBINARY(33)"},
		{"VARBINARY(2147483647)", "BYTES"},
		{"BYTES", "BYTES"},

		{"DECIMAL", "DECIMAL(10, 0)"},
		{"DEC", "DECIMAL(10, 0)"},
		{"NUMERIC", "DECIMAL(10, 0)"},
		{"DEC(12)", "DECIMAL(12, 0)"},
		{"NUMERIC(10,3)", "DECIMAL(10, 3)"},
		{"DECIMAL ( 38 , 38 )", "DECIMAL(38, 38)"},

		{"TIME", "TIME(0)"},
		{"TIME(3)", "TIME(3)"},
		{"TIME WITHOUT TIME ZONE", "TIME(0)"},
		{"TIME(9) WITHOUT TIME ZONE NOT NULL", "TIME(9) NOT NULL"},
		{"TIMESTAMP", "TIMESTAMP(6)"},
		{"TIMESTAMP(0)", "TIMESTAMP(0)"},
		{"TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"},
		{"TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE"},
		{"TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL", "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL"},
		{"TIMESTAMP_LTZ", "TIMESTAMP(6) WITH LOCAL TIME ZONE"},
		{"TIMESTAMP_LTZ(9)", "TIMESTAMP(9) WITH LOCAL TIME ZONE"},

		{"INT NULL", "INT"},
		{"int not null", "INT NOT NULL"},
		{" \tDecimal(5,2)\n Not  Null ", "DECIMAL(5, 2) NOT NULL"},
		{"INT ARRAY", "ARRAY<INT>"},
		{"INT NOT NULL ARRAY NOT NULL", "ARRAY<INT NOT NULL> NOT NULL"},
		{"VARCHAR(5) MULTISET", "MULTISET<VARCHAR(5)>"},
		{"INT NULL MULTISET NULL", "MULTISET<INT>"},
	} {
		got, err := Parse(tt.in)
		if err != nil || got.String() != tt.want {
			t.Errorf("Parse(%q) = %s (%v), want %s", tt.in, got, err, tt.want)
		}
	}
}

// TestParseRejects shows that what is not a type is refused with the reason.
func TestParseRejects(t *testing.T) {
	for _, tt := range []struct{ in, err string }{
		{"", "unknown type"},
		{"STRUCT", `unknown type "STRUCT"`},
		{"NOT NULL", "unknown type"},
		{"INT NOT", `unexpected "NOT"`},
		{"INT NOT NULL NULL", `unexpected "NULL"`},
		{"INT(4)", `unexpected "("`},
		{"INT STRING", `unexpected "STRING"`},
		{"CHAR(", "bad number"},
		{"CHAR()", "bad number"},
		{"CHAR(-1)", "bad number"},
		{"CHAR(0)", "CHAR(0)"},
		{"VARCHAR(0)", "VARCHAR(0)"},
		{"BINARY(0)", "BINARY(0)"},
		{"VARBINARY(0)", "VARBINARY(0)"},
		{"VARCHAR(test)", "bad number"},
		{"VARCHAR(33333333333)", "bad number"},
		{"VARCHAR(2147483648)", "bad number"},
		{"VARCHAR(5", "expected )"},
		{"DECIMAL(10 2)", "expected )"},
		{"DECIMAL(10, 2, 1)", "expected )"},
		{"DECIMAL(0)", "precision must be 1 to 38"},
		{"DECIMAL(39, 2)", "precision must be 1 to 38"},
		{"DECIMAL(5, 6)", "scale"},
		{"TIME(10)", "precision must be 0 to 9"},
		{"TIMESTAMP(10)", "precision must be 0 to 9"},
		{"TIMESTAMP(3) WITH TIME ZONE", `unexpected "WITH"`},
		{"TIMESTAMP_LTZ(10)", "precision must be 0 to 9"},
		{"ARRAY<INT>", "unknown type"},
		{"INT" + strings.Repeat(" ARRAY", 1000), "deeper"},
	} {
		got, err := Parse(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("Parse(%.40q) = %.80s, error %v, want one with %q", tt.in, got, err, tt.err)
		}
	}
}

// TestParseJSON shows the forms that schema files have for nested types.
func TestParseJSON(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`"INT NOT NULL"`, "INT NOT NULL"},
		{` "TIMESTAMP(3) WITH LOCAL TIME ZONE" `, "TIMESTAMP(3) WITH LOCAL TIME ZONE"},
		{`{"type":"ARRAY","element":"INT NOT NULL"}`, "ARRAY<INT NOT NULL>"},
		{`{"type":"ARRAY NOT NULL","element":"INT"}`, "ARRAY<INT> NOT NULL"},
		{`{"type":"MULTISET","element":"INT"}`, "MULTISET<INT>"},
		{`{"type":"MAP","key":"BIGINT","value":{"type":"MULTISET NOT NULL","element":"DATE"}}`, "MAP<BIGINT, MULTISET<DATE> NOT NULL>"},
		{`{"type":"VECTOR NOT NULL","element":"FLOAT","length":7}`, "VECTOR<FLOAT, 7> NOT NULL"},
		{`{"type":"ROW","fields":[]}`, "ROW<>"},
		{
			`{"type":"ROW NOT NULL","fields":[{"id":5,"name":"a","type":"INT NOT NULL"},{"id":7,"name":"b","type":{"type":"ARRAY","element":"STRING"},"description":"x"}]}`,
			"ROW<`a` INT NOT NULL, `b` ARRAY<STRING>> NOT NULL",
		},
	} {
		got, err := ParseJSON([]byte(tt.in))
		if err != nil || got.String() != tt.want {
			t.Errorf("ParseJSON(%s) = %s (%v), want %s", tt.in, got, err, tt.want)
		}
	}
	for _, tt := range []struct{ in, err string }{
		{``, "parse type"},
		{`null`, `no member "type"`},
		{`7`, "parse type 7"},
		{`["INT"]`, "parse type"},
		{`"INT`, "parse type"},
		{`{}`, `no member "type"`},
		{`{"type":"INT"}`, `unknown type "INT"`},
		{`{"type":7}`, "parse type"},
		{`{"type":"ARRAY"}`, `ARRAY type has no member "element"`},
		{`{"type":"ARRAY","element":null}`, `no member "type"`},
		{`{"type":"ARRAY","element":"INTT"}`, `unknown type "INTT"`},
		{`{"type":"MAP","key":"INT"}`, `MAP type has no member "value"`},
		{`{"type":"MAP","value":"INT"}`, `MAP type has no member "key"`},
		{`{"type":"VECTOR","element":"FLOAT"}`, `VECTOR type has no member "length"`},
		{`{"type":"ROW"}`, `no member "fields"`},
		{`{"type":"ROW","fields":[{"id":0,"name":"a"}]}`, `"type"`},
		{`{"type":"ROW","fields":[{"id":0,"name":"a","type":"X"}]}`, `field "a": unknown type "X"`},
		{nested(100, `{"type":"ARRAY","element":`, "}"), "deeper than"},
		{nested(100, `{"type":"ROW","fields":[{"id":0,"name":"a","type":`, "}]}"), "deeper than"},
		{nested(100, `{"type":"MAP","key":"INT","value":`, "}"), "deeper than"},
		{nested(100_000, `{"type":"ARRAY","element":`, "}"), "depth"},
	} {
		got, err := ParseJSON([]byte(tt.in))
		if err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("ParseJSON(%.80s) = %.80s, error %v, want one with %s", tt.in, got, err, tt.err)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("ParseJSON(%.80s): error of %d bytes", tt.in, len(err.Error()))
		}
	}
}

func nested(depth int, open, end string) string {
	return strings.Repeat(open, depth) + `"INT"` + strings.Repeat(end, depth)
}

// TestParseFields shows that all of a field is read, and that a field without its
// id is refused.
func TestParseFields(t *testing.T) {
	fields, err := ParseFields([]byte(`[{"id":3,"name":"Käse","type":"DECIMAL(5, 2) NOT NULL","description":"","defaultValue":"1.50"},{"id":2147483647,"name":"","type":"BYTES"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if len(fields) != 2 {
		t.Fatalf("%d fields", len(fields))
	}
	a, b := fields[0], fields[1]
	if a.ID != 3 || a.Name != "Käse" || a.Type.String() != "DECIMAL(5, 2) NOT NULL" || a.Description == nil || *a.Description != "" || a.Default == nil || *a.Default != "1.50" {
		t.Errorf("first field is %+v", a)
	}
	if b.ID != math.MaxInt32 || b.Name != "" || b.Type.String() != "BYTES" || b.Description != nil || b.Default != nil {
		t.Errorf("second field is %+v", b)
	}
	for _, tt := range []struct{ in, err string }{
		{`{}`, "parse fields"},
		{`[{"name":"a","type":"INT"}]`, `field 0 lacks one of "id"`},
		{`[{"id":0,"name":"a","type":"INT"},{"id":1,"type":"INT"}]`, "field 1 lacks"},
		{`[{"id":-1,"name":"a","type":"INT"}]`, "out of range"},
		{`[{"id":2147483648,"name":"a","type":"INT"}]`, "out of range"},
		{`[{"id":1.5,"name":"a","type":"INT"}]`, "parse fields"},
		{`[{"id":0,"name":"a","type":"NOPE"}]`, `field "a": unknown type "NOPE"`},
	} {
		if _, err := ParseFields([]byte(tt.in)); err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("ParseFields(%s): error %v, want one with %s", tt.in, err, tt.err)
		}
	}
}

// scalarTypes draws any type of single cells.
func scalarTypes(t *rapid.T) Type {
	typ := Type{Kind: Kind(rapid.IntRange(int(Char), int(TimestampLTZ)).Draw(t, "kind")), NotNull: rapid.Bool().Draw(t, "not null")}
	switch typ.Kind {
	case Char, Varchar, Binary, Varbinary:
		typ.Length = rapid.OneOf(rapid.IntRange(1, 5), rapid.Just(MaxLength)).Draw(t, "length")
	case Decimal:
		typ.Precision = rapid.IntRange(1, 38).Draw(t, "precision")
		typ.Scale = rapid.IntRange(0, typ.Precision).Draw(t, "scale")
	case Time, Timestamp, TimestampLTZ:
		typ.Precision = rapid.IntRange(0, 9).Draw(t, "precision")
	}
	return typ
}

// anyTypes draws a type that nests up to depth levels.
func anyTypes(t *rapid.T, depth int) Type {
	kind := rapid.SampledFrom([]Kind{Invalid, Array, Multiset, Map, Row, Vector}).Draw(t, "container")
	if kind == Invalid || depth == 0 {
		return scalarTypes(t)
	}
	typ := Type{Kind: kind, NotNull: rapid.Bool().Draw(t, "not null")}
	child := func() *Type { c := anyTypes(t, depth-1); return &c }
	switch kind {
	case Row:
		typ.Fields = []Field{}
		for i := range rapid.IntRange(0, 3).Draw(t, "fields") {
			typ.Fields = append(typ.Fields, Field{ID: 10 + i, Name: rapid.String().Draw(t, "name"), Type: *child()})
		}
		return typ
	case Map:
		typ.Key = child()
	case Vector:
		typ.Length = rapid.IntRange(1, 9).Draw(t, "length")
	}
	typ.Element = child()
	return typ
}

// toJSON spells a type as schema files do.
func toJSON(typ Type) any {
	name := typ.Kind.String()
	if typ.NotNull {
		name += " NOT NULL"
	}
	switch typ.Kind {
	case Array, Multiset:
		return map[string]any{"type": name, "element": toJSON(*typ.Element)}
	case Vector:
		return map[string]any{"type": name, "element": toJSON(*typ.Element), "length": typ.Length}
	case Map:
		return map[string]any{"type": name, "key": toJSON(*typ.Key), "value": toJSON(*typ.Element)}
	case Row:
		fields := []any{}
		for _, f := range typ.Fields {
			fields = append(fields, map[string]any{"id": f.ID, "name": f.Name, "type": toJSON(f.Type)})
		}
		return map[string]any{"type": name, "fields": fields}
	}
	return typ.String()
}

// TestPrintParse shows that a type that was spelled reads back as itself, with
// all that String shows.
func TestPrintParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyTypes(t, 3)
		data, err := json.Marshal(toJSON(want))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Same(want) || got.String() != want.String() {
			t.Fatalf("%s reads back as %s", want, got)
		}
	})
}

// TestSame shows what makes types store the same values: not nullability and not
// the names of members, but all else.
func TestSame(t *testing.T) {
	row := func(members ...string) string {
		var fields []string
		for i, m := range members {
			id, typ, _ := strings.Cut(m, " ")
			fields = append(fields, fmt.Sprintf(`{"id":%s,"name":"f%d","type":"%s"}`, id, i*len(members), typ))
		}
		return `{"type":"ROW","fields":[` + strings.Join(fields, ",") + `]}`
	}
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`"INT"`, `"INT NOT NULL"`, true},
		{`"INT"`, `"BIGINT"`, false},
		{`"CHAR(3)"`, `"CHAR(4)"`, false},
		{`"DECIMAL(5, 2)"`, `"DECIMAL(5, 3)"`, false},
		{`"TIMESTAMP(3)"`, `"TIMESTAMP(6)"`, false},
		{`"TIMESTAMP(3)"`, `"TIMESTAMP_LTZ(3)"`, false},
		{`"INT ARRAY"`, `{"type":"ARRAY","element":"INT NOT NULL"}`, true},
		{`"INT ARRAY"`, `"BIGINT ARRAY"`, false},
		{`"INT ARRAY"`, `"INT MULTISET"`, false},
		{`{"type":"MAP","key":"INT","value":"INT"}`, `{"type":"MAP","key":"BIGINT","value":"INT"}`, false},
		{`{"type":"MAP","key":"INT","value":"INT"}`, `{"type":"MAP","key":"INT","value":"DATE"}`, false},
		{row("0 INT", "1 DATE"), strings.ReplaceAll(row("0 INT", "1 DATE"), `"f2"`, `"g"`), true},
		{row("0 INT", "1 DATE"), row("0 INT", "2 DATE"), false},
		{row("0 INT", "1 DATE"), row("0 INT", "1 TIME"), false},
		{row("0 INT"), row("0 INT", "1 INT"), false},
	} {
		a, err := ParseJSON([]byte(tt.a))
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseJSON([]byte(tt.b))
		if err != nil {
			t.Fatal(err)
		}
		if a.Same(b) != tt.same || b.Same(a) != tt.same || !a.Same(a) {
			t.Errorf("%s and %s: same is not %t", a, b, tt.same)
		}
	}
}

// FuzzParseJSON shows that no input makes the parser panic, nest without end or
// spell a type that it does not read back.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{
		`"INT NOT NULL"`, `"DECIMAL(38, 10)"`, `"INT ARRAY MULTISET"`, `"GEOMETRY(x) NOT NULL"`, `"CHAR(`, `null`, `{}`,
		`{"type":"MAP","key":"INT","value":{"type":"VECTOR","element":"FLOAT","length":3}}`,
		`{"type":"ROW","fields":[{"id":0,"name":"a","type":{"type":"ROW","fields":[]}}]}`,
		nested(64, `{"type":"ARRAY","element":`, "}"), nested(65, `{"type":"ARRAY","element":`, "}"), strings.Repeat("[", 20_000),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		typ, err := ParseJSON(data)
		if err != nil {
			return
		}
		switch d := depth(typ); {
		case d > 2*maxDepth:
			t.Errorf("%d levels", d)
		case d > maxDepth:
			return // in part from suffixes, which toJSON does not write
		}
		again, err := json.Marshal(toJSON(typ))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseJSON(again); err != nil || !got.Same(typ) || got.String() != typ.String() {
			t.Errorf("%s reads back as %s (%v)", typ, got, err)
		}
	})
}

func depth(t Type) int {
	deepest := 0
	for _, c := range []*Type{t.Key, t.Element} {
		if c != nil {
			deepest = max(deepest, depth(*c))
		}
	}
	for _, f := range t.Fields {
		deepest = max(deepest, depth(f.Type))
	}
	return deepest + 1
}
