package datafile

import (
	"testing"

	"pgregory.net/rapid"

	"tablectl/internal/types"
)

// nestedType draws a type of lists, maps and rows around numbers.
func nestedType(t *rapid.T, depth int) types.Type {
	typ := types.Type{Kind: types.Int, NotNull: rapid.Bool().Draw(t, "not null")}
	if depth == 0 {
		return typ
	}
	part := func() types.Type { return nestedType(t, depth-1) }
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 1:
		element := part()
		typ.Kind, typ.Element = types.Array, &element
	case 2:
		value := part()
		typ.Kind, typ.Key, typ.Element = types.Map, &types.Type{Kind: types.Int}, &value
	case 3:
		typ.Kind = types.Row
		for i := range rapid.IntRange(1, 3).Draw(t, "members") {
			typ.Fields = append(typ.Fields, types.Field{ID: i, Name: string(rune('a' + i)), Type: part()})
		}
	}
	return typ
}

func nestedValue(t *rapid.T, typ types.Type) types.Value {
	if !typ.NotNull && rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		return types.NullValue
	}
	var v types.Value
	few := rapid.IntRange(0, 3)
	switch typ.Kind {
	case types.Array:
		for range few.Draw(t, "elements") {
			v.Items = append(v.Items, nestedValue(t, *typ.Element))
		}
	case types.Map:
		key, value := typ.EntryTypes()
		for range few.Draw(t, "entries") {
			v.Items = append(v.Items, nestedValue(t, key), nestedValue(t, value))
		}
	case types.Row:
		for _, f := range typ.Fields {
			v.Items = append(v.Items, nestedValue(t, f.Type))
		}
	default:
		v.Int = int64(few.Draw(t, "number"))
	}
	return v
}

// TestShape takes values apart into leaves and puts them together again.
func TestShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inner := nestedType(t, 3)
		typ := types.Type{Kind: types.Array, Element: &inner}
		var leaves int
		s := newShape(typ, 0, 0, &leaves)
		v := nestedValue(t, typ)
		rows := make([]leafRow, leaves)
		if err := s.shred(v, 0, rows); err != nil {
			t.Fatal(err)
		}
		a := assembler{rows: rows, entry: make([]int, leaves), val: make([]int, leaves)}
		got, err := a.value(&s)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			if a.entry[i] != len(row.defs) || a.val[i] != len(row.vals) {
				t.Fatalf("leaf %d is not used up", i)
			}
		}
		if string(types.AppendIdentity(nil, typ, got)) != string(types.AppendIdentity(nil, typ, v)) {
			t.Fatalf("%+v became %+v", v, got)
		}
		// Whatever levels there are, leaves that do not fit are an error, not a panic.
		for i := range rows {
			for j := range rows[i].defs {
				rows[i].defs[j] = int16(rapid.IntRange(0, 8).Draw(t, "level"))
			}
		}
		a = assembler{rows: rows, entry: make([]int, leaves), val: make([]int, leaves)}
		_, _ = a.value(&s)
	})
}
