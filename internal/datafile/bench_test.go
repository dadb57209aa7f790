package datafile_test

import (
	"fmt"
	"testing"

	"tablectl/internal/datafile"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// manyFiles are small files of so many columns.
func manyFiles(b *testing.B, columns int) ([]types.Field, []datafile.Input) {
	b.Helper()
	var fields []types.Field
	var row []any
	for i := range columns {
		f := tabletest.Columns(b, [2]string{fmt.Sprintf("c%d", i), "BIGINT"})[0]
		f.ID = i
		fields, row = append(fields, f), append(row, types.Value{Int: int64(i)})
	}
	data, err := tabletest.WriteFile(fields, [][]any{row, row}, tabletest.FileOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var inputs []datafile.Input
	for i := range 50 {
		inputs = append(inputs, input(fmt.Sprintf("in-%d", i), fields, data, 2))
	}
	return fields, inputs
}

// BenchmarkOpen opens many small files, of which the footer is most.
func BenchmarkOpen(b *testing.B) {
	for _, columns := range []int{10, 500} {
		b.Run(fmt.Sprintf("columns=%d", columns), func(b *testing.B) {
			fields, inputs := manyFiles(b, columns)
			b.ReportAllocs()
			for b.Loop() {
				for _, in := range inputs {
					if err := datafile.Check(b.Context(), in, plainSpec(fields)); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkSmallFiles makes many small files one.
func BenchmarkSmallFiles(b *testing.B) {
	fields, inputs := manyFiles(b, 10)
	for b.Loop() {
		if _, err := datafile.Concat(b.Context(), inputs, discarding(plainSpec(fields))); err != nil {
			b.Fatal(err)
		}
	}
}
