package datafile_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tablectl/internal/cast"
	"tablectl/internal/datafile"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// evolve makes up the next schema after fields: columns and members of rows, at any
// depth, are dropped, renamed, added, moved, widened, and change nullability.
func evolve(choose tabletest.Chooser, schemas *tabletest.Schemas, fields []types.Field) []types.Field {
	kept := 0
	var out []types.Field
	for i, f := range fields {
		switch choose(8) {
		case 7: // dropped, unless it is the last of them
			if kept > 0 || i < len(fields)-1 {
				continue
			}
		case 6:
			f.Name = fmt.Sprintf("renamed%d", schemas.NextID)
			schemas.NextID++
		case 5: // its place taken by a new column of the old name
			add := schemas.Field(1)
			add.Name, add.Type.NotNull = f.Name, choose(8) == 7
			f.Name = fmt.Sprintf("old%d", add.ID)
			out = append(out, add)
		case 4:
			add := schemas.Field(2)
			add.Type.NotNull = choose(8) == 7
			out = append(out, add)
		}
		kept++
		f.Type = evolveType(choose, schemas, f.Type)
		out = append(out, f)
	}
	for i := range out { // moved
		if choose(4) == 3 {
			j := choose(len(out))
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}

func evolveType(choose tabletest.Chooser, schemas *tabletest.Schemas, t types.Type) types.Type {
	if choose(6) == 5 {
		t.NotNull = !t.NotNull
	}
	part := func(old *types.Type) *types.Type {
		t := evolveType(choose, schemas, *old)
		return &t
	}
	switch t.Kind {
	case types.Array:
		t.Element = part(t.Element)
	case types.Map:
		t.Element = part(t.Element) // keys stay as they are
	case types.Row:
		t.Fields = evolve(choose, schemas, t.Fields)
	default:
		if choose(3) == 2 {
			t = widen(choose, t)
		}
	}
	return t
}

// widen changes the type of a scalar to one that old values can be shown as.
func widen(choose tabletest.Chooser, t types.Type) types.Type {
	to := t
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Int:
		to = []types.Type{{Kind: types.BigInt}, {Kind: types.Double}, {Kind: types.Decimal, Precision: 20, Scale: 2}, {Kind: types.Varchar, Length: types.MaxLength}}[choose(4)]
	case types.Float:
		to.Kind = types.Double
	case types.Decimal:
		to.Precision = min(38, t.Precision+choose(10))
		to.Scale = choose(to.Precision + 1) // where digits are lost the value is null
	case types.Varchar, types.Char:
		to.Length = []int{types.MaxLength, 1}[choose(2)]
		to.Kind = types.Varchar
	case types.Date:
		to = types.Type{Kind: types.Timestamp, Precision: 3}
	case types.Timestamp, types.TimestampLTZ:
		to.Precision = []int{9, 6, 3, 0}[choose(4)]
	case types.Boolean:
		to = []types.Type{{Kind: types.Int}, {Kind: types.Int}, {Kind: types.Date}}[choose(3)] // there is no cast to DATE
	case types.Binary:
		to = types.Type{Kind: types.Varbinary, Length: types.MaxLength}
	}
	to.NotNull = t.NotNull
	return to
}

// movable tells whether files of some fields can be shown under others: every
// scalar has a cast, and no row lost all of its members, which the reference would
// read as null instead of a row of nulls.
func movable(from, to []types.Field) bool {
	for _, f := range to {
		i := slices.IndexFunc(from, func(o types.Field) bool { return o.ID == f.ID })
		if i >= 0 && !typeMovable(from[i].Type, f.Type) {
			return false
		}
	}
	return true
}

func typeMovable(from, to types.Type) bool {
	switch to.Kind {
	case types.Array:
		return typeMovable(*from.Element, *to.Element)
	case types.Map, types.Multiset:
		fromKey, fromValue := tabletest.MapTypes(from)
		toKey, toValue := tabletest.MapTypes(to)
		return typeMovable(fromKey, toKey) && typeMovable(fromValue, toValue)
	case types.Row:
		common := slices.ContainsFunc(to.Fields, func(f types.Field) bool {
			return slices.ContainsFunc(from.Fields, func(o types.Field) bool { return o.ID == f.ID })
		})
		return common && movable(from.Fields, to.Fields)
	case types.Variant:
		return true
	}
	_, err := cast.Resolve(from, to)
	return err == nil
}

// TestEvolution writes inputs under some schemas and outputs under a later one:
// the rows are what a reader of the later schema sees in the inputs, or, where
// that has a null that is not allowed or a value without a cast, the error names an
// input.
func TestEvolution(t *testing.T) {
	kept, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		schemas := tabletest.Schemas{Choose: choose(t)}
		versions := [][]types.Field{schemas.Fields(rapid.IntRange(1, 4).Draw(t, "columns"), rapid.IntRange(0, 3).Draw(t, "depth"))}
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			versions = append(versions, evolve(schemas.Choose, &schemas, versions[len(versions)-1]))
		}
		target := versions[len(versions)-1]
		if len(target) == 0 {
			t.Skip("all columns are gone")
		}
		values := drawValues(t)
		var inputs []datafile.Input
		var want [][]any
		var wantErr error
		for range rapid.IntRange(1, 4).Draw(t, "inputs") {
			fields := versions[rapid.IntRange(0, len(versions)-1).Draw(t, "version")]
			rows := values.Rows(fields, rapid.SampledFrom([]int{3, 0, 1, 50, 1001}).Draw(t, "rows"))
			inputs = append(inputs, written(t, len(inputs), fields, rows, drawFile(t, len(rows))))
			if !movable(fields, target) {
				wantErr = errors.Join(wantErr, datafile.ErrUnsupported)
			}
			for _, r := range rows {
				p, err := tabletest.Project(fields, target, r)
				wantErr = errors.Join(wantErr, err)
				want = append(want, p)
			}
			if wantErr != nil {
				break
			}
		}
		spec := drawSpec(t, target)
		for i, in := range inputs {
			checked := datafile.Check(t.Context(), in, spec)
			last := i == len(inputs)-1
			if errors.Is(checked, datafile.ErrUnsupported) != (last && errors.Is(wantErr, datafile.ErrUnsupported)) {
				t.Fatalf("%v from %v: input %d is checked with the error %v, want %v", target, versions, i, checked, wantErr)
			}
		}
		_, _, got, err := concat(t.Context(), inputs, spec)
		if wantErr != nil {
			refused++
			if err == nil {
				t.Fatalf("%v from %v: no error, want %v", target, versions, wantErr)
			}
			if errors.Is(wantErr, datafile.ErrUnsupported) && !errors.Is(err, datafile.ErrUnsupported) {
				t.Fatalf("%v from %v: error %v, want one that wraps ErrUnsupported", target, versions, err)
			}
			if err := namesInput(err, inputs[len(inputs)-1:]); err != nil {
				t.Fatal(err)
			}
			return
		}
		kept++
		if err != nil {
			t.Fatalf("%v from %v: %v", target, versions, err)
		}
		if diff := tabletest.Diff(tabletest.TextLines(target, got), tabletest.TextLines(target, want)); diff != "" {
			t.Fatalf("%v from %v: %s", target, versions, diff)
		}
	})
	t.Logf("%d times the rows were kept, %d times there was an error, as there had to be", kept, refused)
}
