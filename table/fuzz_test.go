package table

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"tablectl/internal/types"
)

// partitions are two rows of everyType: all null, and a value in every column.
func partitions(t testing.TB) [][]types.Value {
	s := everyType()
	full := cells{
		"c": "abc", "vc": "x", "n": "1", "nn": "2", "ti": "3", "si": "4", "bi": "5", "f": "1.5", "g": "2.5", "dec": "1.50", "big": "7",
		"b": "true", "d": "2024-02-29", "tm": "01:02:03", "ts": "2024-02-29", "ts9": "2024-02-29", "lz": "2024-02-29", "bin": "00ff", "Date": "2024-02-29",
		"p": "a", "q": "", "in": "x", "a`b": "é", "ünï": "\\", "group by": "%",
	}
	return [][]types.Value{row(t, s, nil), row(t, s, full)}
}

// checkFilter checks what holds for every filter, whatever it is made of.
func checkFilter(t *testing.T, text string, f Filter, err error, again func() (Filter, error)) {
	if err != nil {
		if !errors.Is(err, ErrInvalid) {
			t.Fatalf("%q: %v does not wrap ErrInvalid", text, err)
		}
		if strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Fatalf("the message has a control character: %q", err)
		}
		if len(f.terms) > 0 {
			t.Fatalf("%q: %v comes with a filter", text, err)
		}
		return
	}
	if len(f.terms) == 0 || f.String() != text {
		t.Fatalf("%q prints as %q, empty %v", text, f, len(f.terms) == 0)
	}
	second, err := again()
	if err != nil {
		t.Fatalf("%q: the second time, %v", text, err)
	}
	for _, p := range partitions(t) {
		if both := f.And(second); f.Matches(p) != second.Matches(p) || both.Matches(p) != f.Matches(p) {
			t.Fatalf("%q does not match the same twice", text)
		}
	}
}

func FuzzParseWhere(f *testing.F) {
	for _, c := range whereCases {
		f.Add(c.where)
	}
	for _, seed := range []string{"", "(", "'", "`", "p = '\xff'", "p LIKE '\\", "b = '\r'", "NOT ((p IN (a,b,NULL)))", "d BETWEEN DATE '2024-01-01' AND x", "\x00", strings.Repeat("(", 300)} {
		f.Add(seed)
	}
	s := everyType()
	f.Fuzz(func(t *testing.T, where string) {
		filter, err := ParseWhere(s, where)
		checkFilter(t, where, filter, err, func() (Filter, error) { return ParseWhere(s, where) })
		if err != nil {
			return
		}
		// A predicate and its opposite never both select, and null cells decide that
		// there is no third way only for IS NULL.
		opposite, err := ParseWhere(s, "NOT ("+where+")")
		if err != nil {
			return // nests too deep, or is too long
		}
		for _, p := range partitions(t) {
			if filter.Matches(p) && opposite.Matches(p) {
				t.Fatalf("both %q and its opposite select %v", where, p)
			}
		}
	})
}

func FuzzParseFilterJSON(f *testing.F) {
	for _, seed := range []string{
		`{"method":"equal","field":"p","literals":["a"]}`, `{"method":"in","field":"n","literals":[1,2]}`, `{"method":"isNull","field":"d"}`,
		`{"method":"and","children":[{"method":"like","field":"p","literals":["a%"]},{"method":"notBetween","field":"g","literals":[1,2e3]}]}`,
		`{"method":"or","children":[]}`, `{"method":"equal","field":"b","literals":[true]}`, `{"method":"equal","field":"p","literals":["\ud800"]}`,
		`[]`, `null`, `{`, "{\n\"method\":\"equal\",\n\"field\":\"n\",\"literals\":[\n\"x\"]}", `{"method":"equal","field":"dec","literals":["1.5"]}`, `{"method":"startsWith","field":"c","literals":[""]}`,
	} {
		f.Add(seed)
	}
	s := everyType()
	f.Fuzz(func(t *testing.T, dict string) {
		filter, err := ParseFilterJSON(s, dict)
		checkFilter(t, dict, filter, err, func() (Filter, error) { return ParseFilterJSON(s, dict) })
	})
}

func FuzzParseSchema(f *testing.F) {
	for _, data := range schemaFiles(f) {
		f.Add(data)
	}
	for _, c := range schemaErrors {
		f.Add([]byte(strings.ReplaceAll(c.schema, "FIELDS", `[{"id": 0, "name": "a", "type": "INT"}]`)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSchema(data)
		if err != nil {
			return
		}
		names, ids := map[string]bool{}, map[int]bool{}
		for _, field := range s.Fields {
			if names[field.Name] || ids[field.ID] || field.ID < 0 {
				t.Fatalf("column %q or id %d twice, or negative", field.Name, field.ID)
			}
			names[field.Name], ids[field.ID] = true, true
			if field.Type.String() == "" || !field.Type.Same(field.Type) {
				t.Fatalf("column %q has the type %v", field.Name, field.Type)
			}
		}
		partition := s.PartitionTypes()
		for i, k := range s.PartitionKeys {
			if !names[k] || !partition[i].Scalar() {
				t.Fatalf("partition key %q has the type %v", k, partition[i])
			}
		}
		if s.Options == nil || s.Version < 1 || s.Version > currentSchemaVersion {
			t.Fatalf("version %d, options %v", s.Version, s.Options)
		}
	})
}
