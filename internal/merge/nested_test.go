package merge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tablectl/internal/merge"
	"tablectl/internal/types"
)

var (
	text   = types.Type{Kind: types.Varchar, Length: types.MaxLength}
	binary = types.Type{Kind: types.Varbinary, Length: types.MaxLength}
	number = types.Type{Kind: types.Int}
	rowOf  = types.Type{Kind: types.Row, Fields: []types.Field{{Name: "id", Type: number}, {Name: "s", Type: text}, {Name: "v", Type: text}}}
	listOf = func(t types.Type) types.Type { return types.Type{Kind: types.Array, Element: &t} }
	mapOf  = func(t types.Type) types.Type { return types.Type{Kind: types.Map, Key: &text, Element: &t} }
)

// itemType is the type of one of a value's items.
func itemType(typ types.Type, i int) types.Type {
	switch {
	case typ.Kind == types.Row:
		return typ.Fields[i].Type
	case typ.Kind == types.Map && i%2 == 0:
		return *typ.Key
	}
	return *typ.Element
}

// parse reads a value from JSON: lists and rows are arrays, maps are arrays of keys
// and values in turn.
func parse(t *testing.T, typ types.Type, data json.RawMessage) types.Value {
	t.Helper()
	if string(data) == "null" {
		return types.NullValue
	}
	var v types.Value
	var into any
	var items []json.RawMessage
	var s string
	switch typ.Kind {
	case types.Int:
		into = &v.Int
	case types.Varchar, types.Varbinary:
		into = &s
	default:
		into = &items
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	v.Bytes = []byte(s)
	for i, item := range items {
		v.Items = append(v.Items, parse(t, itemType(typ, i), item))
	}
	return v
}

func format(typ types.Type, v types.Value) string {
	switch {
	case v.Null:
		return "null"
	case typ.Kind == types.Int:
		return fmt.Sprint(v.Int)
	case typ.Kind == types.Varchar, typ.Kind == types.Varbinary:
		return fmt.Sprintf("%q", v.Bytes)
	}
	var items []string
	for i, item := range v.Items {
		items = append(items, format(itemType(typ, i), item))
	}
	return "[" + strings.Join(items, ",") + "]"
}

// TestNestedFunctions folds values by functions on lists and maps. A step is a sign
// and a value: + adds, - retracts, < adds late, = sets.
func TestNestedFunctions(t *testing.T) {
	ops := map[byte]merge.Op{'+': merge.Add, '-': merge.Retract, '<': merge.AddLate, '=': merge.Set}
	for _, c := range []struct {
		function string
		typ      types.Type
		options  string
		steps    string
		want     string
	}{
		{"collect", listOf(number), "", "+[1,2] +null +[2,null]", "[1,2,2,null]"},
		{"collect", listOf(number), "", "+null +null", "null"},
		{"collect", listOf(number), "", "+[1,2,2,null] -[2,null,5]", "[1,2]"},
		{"collect", listOf(number), "", "-[1] +[1]", "[1]"},
		{"collect", listOf(binary), "", `+["a"] -["a"]`, `["a"]`},
		{"collect", listOf(binary), "distinct=true", `+["a","b","a"] -["a"]`, `["b"]`},
		{"collect", listOf(number), "", "+[1] <[2]", "[1,2]"},
		{"collect", listOf(number), "ignore-retract=true", "+[1] <[2]", "[2,1]"},
		{"collect", listOf(number), "distinct=true", "+[2,1,2] +[1,3] +null", "[2,1,3]"},
		{"collect", listOf(rowOf), "distinct=true", `+[[1,"a","x"]] +[[1,"a","x"],[1,"a",null]]`, `[[1,"a","x"],[1,"a",null]]`},
		{"collect", listOf(number), "ignore-retract=true", "+[1] -[1]", "[1]"},
		{"merge_map", mapOf(number), "", `+["a",1,"b",2] +["b",3,"c",null]`, `["a",1,"b",3,"c",null]`},
		{"merge_map", mapOf(number), "", `+["b",3] <["a",1,"b",2]`, `["a",1,"b",3]`},
		{"merge_map", mapOf(number), "", `+["a",1,"b",2] -["a",9,"x",1] +["a",4]`, `["b",2,"a",4]`},
		{"merge_map", mapOf(number), "", `-["a",1] -null`, "null"},
		{"merge_map", mapOf(number), "", `+["a",1] -["a",1]`, "[]"},
		{
			"merge_map_with_keytime", mapOf(rowOf), "",
			`+["a",[1,"x","05"],"b",[1,"x","05"],"c",[1,"x",null]] +["a",[2,"y","05"],"b",[2,"y","06"],"c",[2,"y","01"],"d",[2,"y",null]]`,
			`["a",[1,"x","05"],"b",[2,"y","06"],"c",[2,"y","01"]]`,
		},
		{"merge_map_with_keytime", mapOf(rowOf), "", `+["a",[1,"x","1"],"b",null] +["a",null,"c",null]`, `["b",null]`},
		{"merge_map_with_keytime", mapOf(rowOf), "ts-field=s", `+["a",[1,"2","x"]] +["a",[2,"10","y"]]`, `["a",[1,"2","x"]]`},
		{"merge_map_with_keytime", mapOf(rowOf), "", `+["a",[1,"x","\uffff"]] +["a",[2,"x","😀"]]`, `["a",[1,"x","\uffff"]]`},
		{"nested_update", listOf(rowOf), "", `+[[1,"a","x"],null] +[[1,"a","x"]]`, `[[1,"a","x"],[1,"a","x"]]`},
		{"nested_update", listOf(rowOf), "", `+[[1,"a","x"],[2,"a","x"],[1,"a","x"]] -[[1,"a","x"],null]`, `[[2,"a","x"]]`},
		{"nested_update", listOf(rowOf), "count-limit=2", `+[[1,"a","x"]] +[[2,"a","x"],[3,"a","x"]] +[[4,"a","x"]]`, `[[1,"a","x"],[2,"a","x"]]`},
		{"nested_update", listOf(rowOf), "nested-key=id", `+[[1,"a","x"],[1,"b","x"]] +[[2,"a","x"],[1,"c","x"]]`, `[[1,"c","x"],[2,"a","x"]]`},
		{"nested_update", listOf(rowOf), "nested-key=id; count-limit=1", `+[[1,"a","x"]] +[[2,"a","x"],[1,"c","x"]]`, `[[1,"c","x"]]`},
		{"nested_update", listOf(rowOf), "nested-key=id,s", `+[[1,"a","x"],[2,"b","y"]] -[[1,"a","other"],[2,"c","y"]]`, `[[2,"b","y"]]`},
		{
			"nested_update", listOf(rowOf), "nested-key=id; nested-sequence-field=s",
			`+[[1,"b","x"]] +[[1,"a","late"],[2,null,"x"]] +[[1,"b","tie"],[2,"a","y"]]`, `[[1,"b","tie"],[2,"a","y"]]`,
		},
		{"nested_update", listOf(rowOf), "nested-key=id; nested-key-null-strategy=ignore", `+[[null,"a","x"]] +[[1,"a","x"],[null,"b","x"]]`, `[[1,"a","x"]]`},
		{"nested_update", listOf(rowOf), "nested-key=id", `+[[null,"a","x"]] +[[null,"b","x"]]`, `[[null,"b","x"]]`},
		{"nested_update", listOf(rowOf), "nested-key=id", `+[[1,"b","x"]] <[[1,"a","x"],[2,"a","x"]]`, `[[1,"b","x"],[2,"a","x"]]`},
		{"nested_partial_update", listOf(rowOf), "nested-key=id", `+[[1,"a",null]] +[[1,null,"x"],[2,"b","y"]] +null`, `[[1,"a","x"],[2,"b","y"]]`},
		{"nested_partial_update", listOf(rowOf), "nested-key=id", `=[[1,"a",null]] +[[1,"b","x"]]`, `[[1,"b","x"]]`},
	} {
		d := merge.Definition{
			Engine: merge.Aggregation, PrimaryKeys: []string{"k"},
			Fields:  []types.Field{{Name: "k", Type: number}, {Name: "c", Type: c.typ}},
			Options: map[string]string{"fields.c.aggregate-function": c.function},
		}
		for _, option := range split(c.options, "; ") {
			key, value, _ := strings.Cut(option, "=")
			d.Options["fields.c."+key] = value
		}
		e, err := merge.NewEngine(d)
		if err != nil {
			t.Errorf("%s %s: %v", c.function, c.options, err)
			continue
		}
		var steps []merge.Step
		var values []types.Value
		for i, step := range strings.Fields(c.steps) {
			steps = append(steps, merge.Step{Op: ops[step[0]], Version: i})
			values = append(values, parse(t, c.typ, json.RawMessage(step[1:])))
		}
		got, err := e.Columns[1].Function.Fold(steps, func(v int) (types.Value, error) { return values[v], nil })
		if err != nil || format(c.typ, got) != c.want {
			t.Errorf("%s %s %s: %s, %v, want %s", c.function, c.options, c.steps, format(c.typ, got), err, c.want)
		}
	}
}

// TestNestedErrors has options that make no sense, and what cannot be merged.
func TestNestedErrors(t *testing.T) {
	for _, c := range []struct {
		typ           types.Type
		options, want string
	}{
		{text, "aggregate-function=collect", "ARRAY"},
		{listOf(number), "aggregate-function=merge_map", "MAP"},
		{mapOf(number), "aggregate-function=merge_map_with_keytime", "ROW"},
		{mapOf(rowOf), "aggregate-function=merge_map_with_keytime; ts-field=z", "z"},
		{mapOf(rowOf), "aggregate-function=merge_map_with_keytime; ts-field=id", "string"},
		{listOf(number), "aggregate-function=nested_update", "ROW"},
		{listOf(rowOf), "aggregate-function=nested_update; nested-key=z", `"z"`},
		{listOf(rowOf), "aggregate-function=nested_update; nested-sequence-field=s", "nested-key"},
		{listOf(rowOf), "aggregate-function=nested_update; nested-key-null-strategy=error", "nested-key"},
		{listOf(rowOf), "aggregate-function=nested_update; nested-key=id; nested-key-null-strategy=x", "nested-key-null-strategy=x"},
		{listOf(rowOf), "aggregate-function=nested_update; count-limit=x", "count-limit=x"},
		{listOf(rowOf), "aggregate-function=nested_partial_update", "nested-key"},
	} {
		d := merge.Definition{
			Engine: merge.Aggregation, PrimaryKeys: []string{"k"}, Options: map[string]string{},
			Fields: []types.Field{{Name: "k", Type: number}, {Name: "c", Type: c.typ}},
		}
		for _, option := range split(c.options, "; ") {
			key, value, _ := strings.Cut(option, "=")
			d.Options["fields.c."+key] = value
		}
		_, err := merge.NewEngine(d)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "column c") {
			t.Errorf("%s on %s: error %v, want one that names the column and %s", c.options, c.typ, err, c.want)
		}
	}
}
