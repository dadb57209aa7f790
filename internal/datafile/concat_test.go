package datafile_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"tablectl/internal/datafile"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

func choose(t *rapid.T) tabletest.Chooser {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
}

// drawValues makes up values from a seed: they are many, and schemas and options
// say more about a failure.
func drawValues(t *rapid.T) tabletest.Values {
	return tabletest.Values{
		Rand:     rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
		NullRate: rapid.SampledFrom([]float64{0.2, 0, 0.9, 1}).Draw(t, "nulls"),
	}
}

// drawFile makes up how an input of so many rows is written. Many rows are not
// written as many tiny parts, which takes long and shows nothing.
func drawFile(t *rapid.T, rows int) tabletest.FileOptions {
	pages, groups := []int{8 << 10, 1 << 10, 64, 8}, []int{0, 100, 7, 1}
	if rows > 100 {
		pages, groups = []int{8 << 10, 1 << 10, 256}, []int{0, 1000, 250}
	}
	return tabletest.FileOptions{
		Codec:        rapid.SampledFrom([]string{"none", "zstd", "snappy", "gzip", "lz4_raw"}).Draw(t, "codec"),
		PageVersion:  rapid.IntRange(1, 2).Draw(t, "page version"),
		PageSize:     rapid.SampledFrom(pages).Draw(t, "page size"),
		RowGroupRows: rapid.SampledFrom(groups).Draw(t, "rows of a row group"),
		Dictionary:   rapid.Bool().Draw(t, "dictionary"),
		Delta:        rapid.Bool().Draw(t, "delta"),
	}
}

// drawSpec makes up how outputs are written.
func drawSpec(t *rapid.T, fields []types.Field) datafile.Spec {
	spec := datafile.Spec{
		Fields:       fields,
		Compression:  rapid.SampledFrom([]string{"zstd", "none", "snappy", "gzip", "lz4", "lz4_raw"}).Draw(t, "compression"),
		ZstdLevel:    1,
		TargetSize:   rapid.SampledFrom([]int64{1 << 40, 100 << 10, 10 << 10, 1}).Draw(t, "target size"),
		RowGroupSize: rapid.SampledFrom([]int64{128 << 20, 64 << 10, 1 << 10, 1}).Draw(t, "row group size"),
		PageSize:     rapid.SampledFrom([]int64{1 << 20, 8 << 10, 1 << 10, 64, 1}).Draw(t, "page size"),
		Dictionary:   rapid.Bool().Draw(t, "dictionary"),
		CreatedBy:    "test",
		Workers:      rapid.IntRange(1, 3).Draw(t, "workers"),
		Stats:        make([]datafile.StatsMode, len(fields)),
	}
	for i := range spec.Stats {
		spec.Stats[i] = rapid.SampledFrom([]datafile.StatsMode{{Counts: true, Bounds: true}, {}, {Counts: true}}).Draw(t, "stats")
	}
	return spec
}

// TestConcatKeepsRows shows that the rows of any inputs are in the outputs, in
// order, whatever the inputs' and the outputs' form.
func TestConcatKeepsRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schemas := tabletest.Schemas{Choose: choose(t)}
		fields := schemas.Fields(rapid.IntRange(1, 6).Draw(t, "columns"), rapid.IntRange(0, 3).Draw(t, "depth"))
		values := drawValues(t)
		var inputs []datafile.Input
		var want [][]any
		for range rapid.IntRange(1, 6).Draw(t, "inputs") {
			rows := values.Rows(fields, rapid.SampledFrom([]int{3, 0, 1, 50, 999, 1001, 2500}).Draw(t, "rows"))
			inputs = append(inputs, written(t, len(inputs), fields, rows, drawFile(t, len(rows))))
			want = append(want, rows...)
		}
		spec := drawSpec(t, fields)
		done, _, got, err := concat(t.Context(), inputs, spec)
		if err != nil {
			t.Fatalf("%v: %v", fields, err)
		}
		if diff := tabletest.Diff(tabletest.TextLines(fields, got), tabletest.TextLines(fields, want)); diff != "" {
			t.Fatalf("%v: %s", fields, diff)
		}
		for i, o := range done {
			if i < len(done)-1 && o.Rows%1000 != 0 {
				t.Fatalf("output %d of %d ends after %d rows", i, len(done), o.Rows)
			}
		}
		if spec.TargetSize == 1 && len(done) != (len(want)+999)/1000 {
			t.Fatalf("%d outputs of %d rows, want one for each thousand", len(done), len(want))
		}
	})
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// written is an input that holds the rows.
func written(t fataler, n int, fields []types.Field, rows [][]any, o tabletest.FileOptions) datafile.Input {
	data, err := tabletest.WriteFile(fields, rows, o)
	if err != nil {
		t.Fatalf("write input %d: %v", n, err)
	}
	return input("in-"+string(rune('a'+n))+".parquet", fields, data, len(rows))
}
