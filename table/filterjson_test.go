package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestParseFilterJSON(t *testing.T) {
	s := everyType()
	seen := map[string]bool{}
	for _, c := range []struct {
		dict      string
		partition cells
		want      bool
	}{
		{`{"method":"equal","field":"p","literals":["a"]}`, cells{"p": "a"}, true},
		{`{"method":"equal","field":"p","literals":["a"]}`, cells{"p": "b"}, false},
		{`{"method":"equal","field":"p","literals":["a"]}`, cells{}, false},
		{`{"method":"equal","field":"p","literals":["__DEFAULT_PARTITION__"]}`, cells{}, false},
		{`{"method":"equal","field":"p","literals":["it's \"\\\u00e9"]}`, cells{"p": `it's "\é`}, true},
		{`{"method":"equal","field":"group by","literals":["x"]}`, cells{"group by": "x"}, true},
		{`{"method":"notEqual","field":"p","literals":["a"]}`, cells{"p": "b"}, true},
		{`{"method":"notEqual","field":"p","literals":["a"]}`, cells{}, false},
		{`{"method":"lessThan","field":"n","literals":[5]}`, cells{"n": "4"}, true},
		{`{"method":"lessThan","field":"n","literals":[5]}`, cells{"n": "5"}, false},
		{`{"method":"lessOrEqual","field":"n","literals":[5]}`, cells{"n": "5"}, true},
		{`{"method":"lessOrEqual","field":"n","literals":[5]}`, cells{"n": "6"}, false},
		{`{"method":"greaterThan","field":"n","literals":[-5]}`, cells{"n": "-4"}, true},
		{`{"method":"greaterThan","field":"n","literals":[-5]}`, cells{"n": "-5"}, false},
		{`{"method":"greaterOrEqual","field":"n","literals":[5]}`, cells{"n": "5"}, true},
		{`{"method":"greaterOrEqual","field":"n","literals":[5]}`, cells{"n": "4"}, false},
		{`{"method":"isNull","field":"p"}`, cells{}, true},
		{`{"method":"isNull","field":"p","literals":[]}`, cells{"p": ""}, false},
		{`{"method":"isNotNull","field":"p","literals":null}`, cells{"p": ""}, true},
		{`{"method":"isNotNull","field":"p"}`, cells{}, false},
		{`{"method":"in","field":"p","literals":["a","b"]}`, cells{"p": "b"}, true},
		{`{"method":"in","field":"p","literals":["a"]}`, cells{"p": "b"}, false},
		{`{"method":"notIn","field":"p","literals":["a","b"]}`, cells{"p": "c"}, true},
		{`{"method":"notIn","field":"p","literals":["a","b"]}`, cells{}, false},
		{`{"method":"between","field":"n","literals":[1,3]}`, cells{"n": "3"}, true},
		{`{"method":"between","field":"n","literals":[3,1]}`, cells{"n": "2"}, false},
		{`{"method":"notBetween","field":"n","literals":[1,3]}`, cells{"n": "4"}, true},
		{`{"method":"notBetween","field":"n","literals":[1,3]}`, cells{}, false},
		{`{"method":"startsWith","field":"p","literals":["ab"]}`, cells{"p": "abc"}, true},
		{`{"method":"startsWith","field":"p","literals":["a%"]}`, cells{"p": "abc"}, false},
		{`{"method":"endsWith","field":"p","literals":["bc"]}`, cells{"p": "abc"}, true},
		{`{"method":"endsWith","field":"p","literals":["ab"]}`, cells{"p": "abc"}, false},
		{`{"method":"contains","field":"c","literals":["b"]}`, cells{"c": "abc"}, true},
		{`{"method":"contains","field":"p","literals":[""]}`, cells{}, false},
		{`{"method":"like","field":"p","literals":["a_c%"]}`, cells{"p": "abcd"}, true},
		{`{"method":"like","field":"p","literals":["a_c"]}`, cells{"p": "abcd"}, false},
		{`{"method":"and","children":[{"method":"isNull","field":"p"},{"method":"equal","field":"n","literals":[1]}]}`, cells{"n": "1"}, true},
		{`{"method":"and","children":[{"method":"isNull","field":"p"},{"method":"equal","field":"n","literals":[1]}]}`, cells{"n": "2"}, false},
		{`{"method":"or","children":[{"method":"isNotNull","field":"p"},{"method":"equal","field":"n","literals":[1]}]}`, cells{"n": "1"}, true},
		{`{"method":"or","children":[{"method":"isNotNull","field":"p"}]}`, cells{"n": "1"}, false},
		{`{"method":"or","children":[{"method":"and","children":[{"method":"isNull","field":"p"}]}]}`, cells{}, true},

		// Every type in the form that JSON has for it.
		{`{"method":"equal","field":"ti","literals":[-128]}`, cells{"ti": "-128"}, true},
		{`{"method":"equal","field":"bi","literals":[9223372036854775807]}`, cells{"bi": "9223372036854775807"}, true},
		{`{"method":"equal","field":"bi","literals":[9223372036854775806]}`, cells{"bi": "9223372036854775807"}, false},
		{`{"method":"equal","field":"g","literals":[-1.5e1]}`, cells{"g": "-15"}, true},
		{`{"method":"equal","field":"f","literals":[3]}`, cells{"f": "3"}, true},
		{`{"method":"equal","field":"b","literals":[true]}`, cells{"b": "true"}, true},
		{`{"method":"equal","field":"dec","literals":["1.5"]}`, cells{"dec": "1.50"}, true},
		{`{"method":"equal","field":"d","literals":["2024-02-29"]}`, cells{"d": "2024-02-29"}, true},
		{`{"method":"equal","field":"tm","literals":["01:02:03"]}`, cells{"tm": "01:02:03.000"}, true},
		{`{"method":"equal","field":"ts","literals":["2024-02-29T01:02:03.004"]}`, cells{"ts": "2024-02-29 01:02:03.004"}, true},
		{`{"method":"equal","field":"lz","literals":["2024-02-29 01:02:03"]}`, cells{"lz": "2024-02-29 01:02:03"}, true},
		{`{"method":"equal","field":"bin","literals":["00ff"]}`, cells{"bin": "00ff"}, true},

		// What does not matter.
		{`{"index":0,"type":{"x":[1,{"method":"?"}]},"field":"p","literals":["a"],"method":"equal"}`, cells{"p": "a"}, true},
		{`{"method":"isNull","field":"p","children":[]}`, cells{}, true},
		{"\n\t {\n \"method\" : \"isNull\" ,\n \"field\" : \"p\" }\n ", cells{}, true},
	} {
		var dict struct{ Method string }
		if err := json.Unmarshal([]byte(c.dict), &dict); err != nil {
			t.Fatal(err)
		}
		seen[dict.Method] = true
		f, err := ParseFilterJSON(s, c.dict)
		if err != nil {
			t.Error(err)
		} else if got := f.Matches(row(t, s, c.partition)); got != c.want {
			t.Errorf("%s of %v: got %v, want %v", c.dict, c.partition, got, c.want)
		} else if f.String() != c.dict || len(f.terms) == 0 {
			t.Errorf("%s prints as %s, empty %v", c.dict, f, len(f.terms) == 0)
		}
	}
	for _, m := range append(slices.Sorted(maps.Keys(dictMethods)), "and", "or") {
		if !seen[m] {
			t.Errorf("no case has the method %s", m)
		}
	}
}

// TestFilterJSONMethods gives every method every number of literals, no field, and
// a null; the contract says which of them are errors, and that the error names
// the method.
func TestFilterJSONMethods(t *testing.T) {
	s := everyType()
	arities := map[string][]int{
		"equal": {1}, "notEqual": {1}, "lessThan": {1}, "lessOrEqual": {1}, "greaterThan": {1}, "greaterOrEqual": {1},
		"isNull": {0}, "isNotNull": {0}, "in": {1, 2, 3, 4}, "notIn": {1, 2, 3, 4}, "between": {2}, "notBetween": {2},
		"startsWith": {1}, "endsWith": {1}, "contains": {1}, "like": {1},
		"not": nil, "Equal": nil, "eq": nil, "": nil, "and": nil, "or": nil, "AND": nil, "alwaysTrue": nil,
	}
	for method, arity := range arities {
		for n := range 5 {
			literals := strings.TrimSuffix(strings.Repeat(`"a",`, n), ",")
			check := func(dict string, valid bool) {
				t.Helper()
				_, err := ParseFilterJSON(s, dict)
				switch {
				case valid && err != nil:
					t.Errorf("%s: %v", dict, err)
				case !valid && err == nil:
					t.Errorf("%s is no error", dict)
				case !valid && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("method %q", method))):
					t.Errorf("%s: the error does not name the method, or does not wrap ErrInvalid: %v", dict, err)
				}
			}
			check(fmt.Sprintf(`{"method":%q,"field":"p","literals":[%s]}`, method, literals), slices.Contains(arity, n))
			check(fmt.Sprintf(`{"method":%q,"literals":[%s]}`, method, literals), false)
			check(fmt.Sprintf(`{"method":%q,"field":null,"literals":[%s]}`, method, literals), false)
			if n > 0 {
				check(fmt.Sprintf(`{"method":%q,"field":"p","literals":[%s]}`, method, strings.Replace(literals, `"a"`, "null", 1)), false)
			}
		}
	}
}

func TestFilterJSONErrors(t *testing.T) {
	s := everyType()
	golden(t, "filterjson_errors.txt", func(dict string) string {
		f, err := ParseFilterJSON(s, dict)
		if err == nil {
			return "no error"
		}
		if !errors.Is(err, ErrInvalid) || len(f.terms) > 0 {
			t.Errorf("%s: %v does not wrap ErrInvalid, or comes with a filter", dict, err)
		}
		return err.Error()
	})
}

func TestFilterJSONLimits(t *testing.T) {
	s := everyType()
	leaf := `{"method":"isNull","field":"p"}`
	nested := func(n int) string {
		return strings.Repeat(`{"method":"and","children":[`, n) + leaf + strings.Repeat("]}", n)
	}
	for _, c := range []struct{ dict, want string }{
		{nested(maxFilterDepth), ""},
		{nested(maxFilterDepth + 1), "nests deeper than 200 levels"},
		{nested(30_000), "depth"},
		{nested(maxFilterLength / 10), "longer than 1048576 bytes"},
		{leaf + strings.Repeat(" ", maxFilterLength-len(leaf)), ""},
		{`{"method":"in","field":"n","literals":[0` + strings.Repeat(",1", 200_000) + "]}", ""},
	} {
		_, err := ParseFilterJSON(s, c.dict)
		switch {
		case c.want == "" && err != nil:
			t.Error(err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400):
			t.Errorf("%.40s…: got %v, want %s in few words", c.dict, err, c.want)
		}
	}
}
