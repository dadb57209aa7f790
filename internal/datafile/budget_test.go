package datafile_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"

	"tablectl/internal/datafile"
	"tablectl/internal/merge"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// A page of so many rows has 8 MiB. A single value of that size would be in the
// statistics too.
const (
	pageRows   = 128
	largeValue = 64 << 10
	pageBytes  = 16 << 20 // more than is needed
)

// TestLargePagesTogether has columns whose pages are allowed one by one, but not all
// of them at the same time.
func TestLargePagesTogether(t *testing.T) {
	const columns = 16
	value := types.Value{Bytes: bytes.Repeat([]byte("x"), largeValue)}
	var fields []types.Field
	var row []any
	for i := range columns {
		f := tabletest.Columns(t, [2]string{fmt.Sprintf("c%d", i), "STRING"})[0]
		f.ID = i
		fields, row = append(fields, f), append(row, value)
	}
	data, err := tabletest.WriteFile(fields, slices.Repeat([][]any{row}, pageRows), tabletest.FileOptions{PageSize: pageBytes})
	if err != nil {
		t.Fatal(err)
	}
	in := input("large.parquet", fields, data, pageRows)
	spec := plainSpec(fields)
	spec.Stats = make([]datafile.StatsMode, columns)
	spec.ReadMemory = 1
	_, _, _, err = concat(t.Context(), []datafile.Input{in}, spec)
	if want := "at most 96 MiB fit into the memory of the run"; err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
		t.Errorf("little memory: error %v, want %q", err, want)
	}
	spec.ReadMemory = 64 << 20
	if _, _, rows, err := concat(t.Context(), []datafile.Input{in}, spec); err != nil || len(rows) != pageRows {
		t.Errorf("enough memory: %d rows, error %v", len(rows), err)
	}
}

// discarding throws the outputs away.
func discarding(spec datafile.Spec) datafile.Spec {
	spec.Create = func(context.Context) (string, io.WriteCloser, error) { return "out", discard{}, nil }
	return spec
}

// TestLargePagesOneByOne has files whose pages do not fit together, but are not
// needed together either: in row groups, and in the files of runs.
func TestLargePagesOneByOne(t *testing.T) {
	fields := mergeFields(t)
	const groups = 20
	file := func(run, from, to int) datafile.Input {
		var all [][]any
		for k := from * pageRows; k < to*pageRows; k++ {
			x := types.Value{Bytes: fmt.Appendf(bytes.Repeat([]byte("x"), largeValue), "%d", k)}
			all = append(all, []any{types.Value{Int: int64(run<<20 + k)}, types.Value{}, types.Value{Int: int64(k)}, types.Value{Bytes: []byte("a")}, nil, nil, x, nil, nil})
		}
		data, err := tabletest.WriteFile(fields, all, tabletest.FileOptions{RowGroupRows: pageRows, PageSize: pageBytes, Dictionary: run == 1})
		if err != nil {
			t.Fatal(err)
		}
		return input(fmt.Sprintf("in-%d-%d", run, from), fields, data, (to-from)*pageRows)
	}
	one, many := []datafile.Input{file(0, 0, groups)}, []datafile.Input{}
	for k := range groups {
		many = append(many, file(1, k, k+1))
	}
	engine, err := merge.NewEngine(merge.Definition{Fields: fields[kAt:], PrimaryKeys: []string{"k", "k2"}})
	if err != nil {
		t.Fatal(err)
	}
	spec := plainSpec(fields)
	spec.Stats = make([]datafile.StatsMode, len(fields))
	m := datafile.MergeSpec{Keys: []int{kAt, k2At}, Sequence: seqAt, Kind: kindAt, Engine: engine, Values: kAt}
	for _, memory := range []int64{1, 30 << 20} { // with and without parking
		spec.ReadMemory = memory
		outputs, err := datafile.Merge(t.Context(), [][]datafile.Input{one, many}, m, discarding(spec))
		if err != nil || outputs[0].Rows != groups*pageRows {
			t.Errorf("memory %d: merge: %+v, error %v", memory, outputs, err)
		}
		outputs, err = datafile.Concat(t.Context(), append(one, many...), discarding(spec))
		if err != nil || outputs[0].Rows != 2*groups*pageRows {
			t.Errorf("memory %d: concat: %+v, error %v", memory, outputs, err)
		}
	}
}
