package datafile_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tablectl/internal/datafile"
	"tablectl/internal/merge"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// Columns of the files that are merged: k and k2 are the key, u and v say which
// version is newer, x and y are values, and n is nested.
const (
	seqAt = iota
	kindAt
	kAt
	k2At
	uAt
	vAt
	xAt
	yAt
	nAt
)

func mergeFields(t testing.TB) []types.Field {
	integer := types.Type{Kind: types.Int}
	fields := tabletest.Columns(t, [2]string{"_SEQUENCE_NUMBER", "BIGINT NOT NULL"}, [2]string{"_VALUE_KIND", "TINYINT NOT NULL"},
		[2]string{"k", "INT NOT NULL"}, [2]string{"k2", "STRING NOT NULL"}, [2]string{"u", "INT"}, [2]string{"v", "STRING"},
		[2]string{"x", "STRING"}, [2]string{"y", "BIGINT"})
	return append(fields, types.Field{ID: nAt, Name: "n", Type: types.Type{Kind: types.Array, Element: &integer}})
}

// mergeCase is runs of rows and what is to become of them.
type mergeCase struct {
	engine     string
	options    map[string]string
	user       []int
	descending bool
	drop       bool
	runs       [][][]any
}

func drawMerge(t *rapid.T) mergeCase {
	c := mergeCase{
		engine:     rapid.SampledFrom([]string{merge.Deduplicate, merge.PartialUpdate, merge.Aggregation}).Draw(t, "engine"),
		options:    map[string]string{},
		user:       rapid.SampledFrom([][]int{nil, {uAt}, {uAt, vAt}, {vAt, uAt}}).Draw(t, "sequence fields"),
		descending: rapid.Bool().Draw(t, "descending"),
		drop:       rapid.Bool().Draw(t, "drop deletes"),
	}
	switch c.engine {
	case merge.PartialUpdate:
		c.options["partial-update.remove-record-on-delete"] = "true"
	case merge.Aggregation:
		c.options["aggregation.remove-record-on-delete"] = "true"
		c.options["fields.x.aggregate-function"] = "max"
		c.options["fields.y.aggregate-function"] = "sum"
	case merge.Deduplicate:
		c.options["ignore-delete"] = rapid.SampledFrom([]string{"true", "false"}).Draw(t, "ignore-delete")
	}
	keys := rapid.SampledFrom([]int{3, 40, 3000}).Draw(t, "keys")
	sequence := int64(0)
	for range rapid.IntRange(1, 6).Draw(t, "runs") {
		values := drawValues(t)
		var rows [][]any
		for k := range keys {
			if values.IntN(3) == 0 {
				continue
			}
			cell := func(v types.Value) any {
				if values.IntN(4) == 0 {
					return nil
				}
				return v
			}
			small := func() int64 { return int64(values.IntN(4)) }
			text := func() types.Value { return types.Value{Bytes: []byte(strings.Repeat("v", 1+int(small())))} }
			sequence++
			kind := []merge.Kind{merge.Insert, merge.UpdateAfter, merge.Delete}[values.IntN(3)]
			rows = append(rows, []any{
				types.Value{Int: sequence},
				types.Value{Int: int64(kind)},
				types.Value{Int: int64(k/2) - 10},
				types.Value{Bytes: []byte{"ab"[k%2]}},
				cell(types.Value{Int: small()}), cell(text()), cell(text()), cell(types.Value{Int: small()}),
				nested(values.IntN(4), types.Value{Int: small()}),
			})
		}
		if len(rows) > 0 {
			c.runs = append(c.runs, rows)
		}
	}
	return c
}

// nested is an array: null, empty, or of one or two elements.
func nested(n int, v types.Value) any {
	if n == 3 {
		return nil
	}
	return tabletest.List{v, nil}[:n]
}

// merged is a second, simple merge: it sorts the versions of each key and goes
// through them row by row.
func (c mergeCase) merged() [][]any {
	groups := map[string][][]any{}
	key := func(r []any) string {
		return fmt.Sprintf("%08d%s", r[kAt].(types.Value).Int+100, r[k2At].(types.Value).Bytes)
	}
	for _, rows := range c.runs {
		for _, r := range rows {
			groups[key(r)] = append(groups[key(r)], r)
		}
	}
	var out [][]any
	names := make([]string, 0, len(groups))
	for k := range groups {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		versions := groups[k]
		slices.SortFunc(versions, c.older)
		row := versions[0]
		if len(versions) > 1 {
			row = c.fold(versions)
		}
		if row == nil || c.drop && merge.Kind(row[kindAt].(types.Value).Int).Retracts() {
			continue
		}
		out = append(out, row)
	}
	return out
}

func (c mergeCase) older(a, b []any) int {
	for _, u := range c.user {
		x, y := a[u], b[u]
		switch {
		case x == nil && y == nil:
			continue
		case x == nil:
			return -1
		case y == nil:
			return 1
		}
		kind := types.Int
		if u == vAt {
			kind = types.Varchar
		}
		d := types.Compare(kind, x.(types.Value), y.(types.Value))
		if c.descending {
			d = -d
		}
		if d != 0 {
			return d
		}
	}
	return cmp.Compare(a[seqAt].(types.Value).Int, b[seqAt].(types.Value).Int)
}

func (c mergeCase) fold(versions [][]any) []any {
	retracts := func(r []any) bool { return merge.Kind(r[kindAt].(types.Value).Int).Retracts() }
	if c.engine == merge.Deduplicate {
		for _, r := range slices.Backward(versions) {
			if c.options["ignore-delete"] != "true" || !retracts(r) {
				return r
			}
		}
		return nil
	}
	row := make([]any, nAt+1)
	inserted, removed := false, false
	for _, r := range versions {
		removed = retracts(r)
		if removed {
			row = slices.Clone(r)
			continue
		}
		inserted = true
		for i, v := range r {
			acc := row[i]
			switch {
			case i <= kindAt:
			case i == yAt && c.engine == merge.Aggregation && acc != nil && v != nil:
				row[i] = types.Value{Int: acc.(types.Value).Int + v.(types.Value).Int}
			case i == xAt && c.engine == merge.Aggregation && acc != nil && v != nil && len(acc.(types.Value).Bytes) > len(v.(types.Value).Bytes):
			case c.engine == merge.Aggregation && slices.Contains(c.user, i), v != nil:
				row[i] = v
			}
		}
	}
	kind := merge.Insert
	if removed || !inserted && c.engine == merge.PartialUpdate {
		kind = merge.Delete
	}
	row[seqAt], row[kindAt] = versions[len(versions)-1][seqAt], types.Value{Int: int64(kind)}
	return row
}

// TestMerge merges random runs, written in every way, and compares with a second
// merge that goes row by row.
func TestMerge(t *testing.T) {
	fields := mergeFields(t)
	rapid.Check(t, func(t *rapid.T) {
		c := drawMerge(t)
		if len(c.runs) == 0 {
			return
		}
		var sequenceFields []string
		for _, u := range c.user {
			sequenceFields = append(sequenceFields, fields[u].Name)
		}
		engine, err := merge.NewEngine(merge.Definition{
			Engine: c.engine, Fields: fields[kAt:], PrimaryKeys: []string{"k", "k2"}, SequenceFields: sequenceFields, Options: c.options,
		})
		if err != nil {
			t.Fatal(err)
		}
		m := datafile.MergeSpec{
			Keys: []int{kAt, k2At}, Sequence: seqAt, Kind: kindAt, UserSequence: c.user, Descending: c.descending,
			Engine: engine, Values: kAt, DropDelete: c.drop,
		}
		runs := make([][]datafile.Input, len(c.runs))
		opened := 0
		for i, rows := range c.runs {
			parts := slices.Collect(slices.Chunk(rows, rapid.SampledFrom([]int{5000, 500, 7*len(rows)/10 + 1}).Draw(t, "rows of a file")))
			for j, part := range parts {
				data, err := tabletest.WriteFile(fields, part, drawFile(t, len(part)))
				if err != nil {
					t.Fatal(err)
				}
				in := input(fmt.Sprintf("in-%d-%d", i, j), fields, data, len(part))
				open := in.Open
				in.Open = func(ctx context.Context) (datafile.File, error) {
					f, err := open(ctx)
					opened++
					return memFile{f.(memFile).Reader, &opened}, err
				}
				runs[i] = append(runs[i], in)
			}
		}
		spec := drawSpec(t, fields)
		spec.ReadMemory = rapid.SampledFrom([]int64{0, 3_000, 200_000}).Draw(t, "memory to read with")
		outputs, _, rows, err := write(func(spec datafile.Spec) ([]datafile.Output, error) {
			return datafile.Merge(context.Background(), runs, m, spec)
		}, spec)
		if err != nil {
			t.Fatal(err)
		}
		if opened != 0 {
			t.Fatalf("%d inputs are still open", opened)
		}
		want := c.merged()
		if diff := tabletest.Diff(tabletest.TextLines(fields, rows), tabletest.TextLines(fields, want)); diff != "" {
			t.Fatal(diff)
		}
		checkEnds(t, outputs, want)
	})
}

// checkEnds compares what a merge says of its outputs with their rows.
func checkEnds(t *rapid.T, outputs []datafile.Output, rows [][]any) {
	for i, o := range outputs {
		mine := rows[:o.Rows]
		rows = rows[o.Rows:]
		low, high, deletes := mine[0][seqAt].(types.Value).Int, mine[0][seqAt].(types.Value).Int, int64(0)
		for _, r := range mine {
			low, high = min(low, r[seqAt].(types.Value).Int), max(high, r[seqAt].(types.Value).Int)
			if merge.Kind(r[kindAt].(types.Value).Int).Retracts() {
				deletes++
			}
		}
		if o.MinSequence != low || o.MaxSequence != high || o.Deletes != deletes {
			t.Errorf("output %d: sequence numbers %d to %d, %d deletes, want %d to %d, %d", i, o.MinSequence, o.MaxSequence, o.Deletes, low, high, deletes)
		}
		for key, ends := range map[string][2][]any{
			"lowest": {{o.MinKey[0], o.MinKey[1]}, mine[0][kAt : k2At+1]}, "highest": {{o.MaxKey[0], o.MaxKey[1]}, mine[len(mine)-1][kAt : k2At+1]},
		} {
			if got, want := fmt.Sprint(ends[0]), fmt.Sprint(ends[1]); got != want {
				t.Errorf("output %d: %s key %s, want %s", i, key, got, want)
			}
		}
	}
}

// TestMergeUnsorted shows that rows in a wrong order are found and named.
func TestMergeUnsorted(t *testing.T) {
	fields := mergeFields(t)
	row := func(k int64) []any {
		return []any{types.Value{Int: 1}, types.Value{}, types.Value{Int: k}, types.Value{Bytes: []byte("a")}, nil, nil, nil, nil, nil}
	}
	engine, err := merge.NewEngine(merge.Definition{Fields: fields[kAt:], PrimaryKeys: []string{"k", "k2"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range [][]int64{{1, 2, 2}, {1, 3, 2}} {
		var rows [][]any
		for _, k := range keys {
			rows = append(rows, row(k))
		}
		data, err := tabletest.WriteFile(fields, rows, tabletest.FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m := datafile.MergeSpec{Keys: []int{kAt, k2At}, Sequence: seqAt, Kind: kindAt, Engine: engine, Values: kAt}
		_, _, _, err = write(func(spec datafile.Spec) ([]datafile.Output, error) {
			return datafile.Merge(t.Context(), [][]datafile.Input{{input("bad", fields, data, 3)}}, m, spec)
		}, plainSpec(fields))
		if err == nil || !strings.Contains(err.Error(), "data file bad") || !strings.Contains(err.Error(), "row 2") {
			t.Errorf("keys %v: got %v", keys, err)
		}
	}
}
