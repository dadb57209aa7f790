package datafile_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"tablectl/internal/datafile"
	"tablectl/internal/merge"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// panickyFile panics at one of its reads, as the Parquet library does where a file
// is damaged.
type panickyFile struct {
	memFile
	reads *atomic.Int64 // that are left
}

func (f panickyFile) ReadAt(p []byte, off int64) (int, error) {
	if f.reads.Add(-1) == 0 {
		panic("the library gives up")
	}
	return f.memFile.ReadAt(p, off)
}

// TestPanicsAreNamed lets every read of a file panic, one after the other, whatever
// is done with it: the error must name the file, and the file must be closed.
func TestPanicsAreNamed(t *testing.T) {
	fields := mergeFields(t)
	engine, err := merge.NewEngine(merge.Definition{Fields: fields[kAt:], PrimaryKeys: []string{"k", "k2"}})
	if err != nil {
		t.Fatal(err)
	}
	const rows, name = 300, "panicky.parquet"
	var all [][]any
	for k := range rows {
		all = append(all, []any{types.Value{Int: int64(k)}, types.Value{}, types.Value{Int: int64(k)}, types.Value{Bytes: []byte("a")}, nil, nil, types.Value{Bytes: fmt.Append(nil, k)}, nil, tabletest.List{types.Value{Int: 1}, nil}})
	}
	data, err := tabletest.WriteFile(fields, all, tabletest.FileOptions{RowGroupRows: 150, PageSize: 256})
	if err != nil {
		t.Fatal(err)
	}
	m := datafile.MergeSpec{Keys: []int{kAt, k2At}, Sequence: seqAt, Kind: kindAt, Engine: engine, Values: kAt}
	for _, c := range []struct {
		name string
		run  func(in datafile.Input, spec datafile.Spec) error
	}{
		{"check", func(in datafile.Input, spec datafile.Spec) error { return datafile.Check(t.Context(), in, spec) }},
		{"concat", func(in datafile.Input, spec datafile.Spec) error {
			_, err := datafile.Concat(t.Context(), []datafile.Input{in}, spec)
			return err
		}},
		{"merge", func(in datafile.Input, spec datafile.Spec) error {
			_, err := datafile.Merge(t.Context(), [][]datafile.Input{{in}, {input("good.parquet", fields, data, rows)}}, m, spec)
			return err
		}},
		{"parked merge", func(in datafile.Input, spec datafile.Spec) error {
			spec.ReadMemory = 1
			_, err := datafile.Merge(t.Context(), [][]datafile.Input{{in}, {input("good.parquet", fields, data, rows)}}, m, spec)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) { panicAtEveryRead(t, name, fields, data, rows, c.run) })
	}
}

func panicAtEveryRead(t *testing.T, name string, fields []types.Field, data []byte, rows int, run func(datafile.Input, datafile.Spec) error) {
	t.Helper()
	for n := int64(1); ; n++ {
		opened := 0
		var left atomic.Int64
		in := input(name, fields, nil, rows)
		in.Open = func(context.Context) (datafile.File, error) {
			opened++
			return panickyFile{memFile{bytes.NewReader(data), &opened}, &left}, nil
		}
		spec := discarding(plainSpec(fields))
		spec.Workers = 1 + int(n%2)
		left.Store(n)
		err := run(in, spec)
		if opened != 0 {
			t.Fatalf("read %d: %d files are open", n, opened)
		}
		if left.Load() > 0 { // it did not come to that
			if err != nil || n == 1 {
				t.Fatalf("read %d: no panic, but the error %v", n, err)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "the library gives up") {
			t.Fatalf("read %d: the error does not name the file: %v", n, err)
		}
	}
}
