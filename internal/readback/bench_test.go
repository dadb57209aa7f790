package readback_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"tablectl/internal/readback"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// BenchmarkRead reads files in memory: ten columns of scalars, and lists, maps and rows.
func BenchmarkRead(b *testing.B) {
	text, integer := types.Type{Kind: types.Varchar, Length: types.MaxLength}, types.Type{Kind: types.BigInt}
	row := types.Type{Kind: types.Row, Fields: []types.Field{{ID: 10, Name: "x", Type: integer}, {ID: 11, Name: "y", Type: text}}}
	for name, fields := range map[string][]types.Field{
		"flat": tabletest.Columns(b, [2]string{"a", "BIGINT NOT NULL"}, [2]string{"b", "BIGINT"}, [2]string{"c", "INT"}, [2]string{"d", "STRING"},
			[2]string{"e", "STRING"}, [2]string{"f", "DOUBLE"}, [2]string{"g", "DATE"}, [2]string{"h", "TIMESTAMP(6)"}, [2]string{"i", "DECIMAL(12, 2)"},
			[2]string{"j", "BOOLEAN"}),
		"nested": {
			{ID: 0, Name: "k", Type: integer},
			{ID: 1, Name: "l", Type: types.Type{Kind: types.Array, Element: &row}},
			{ID: 2, Name: "m", Type: types.Type{Kind: types.Map, Key: &text, Element: &integer}},
			{ID: 3, Name: "r", Type: row},
		},
	} {
		b.Run(name, func(b *testing.B) {
			const rows = 100_000
			values := tabletest.Values{Rand: rand.New(rand.NewPCG(1, 1)), NullRate: 0.05}
			data, err := tabletest.WriteFile(fields, values.Rows(fields, rows), tabletest.FileOptions{PageSize: 64 << 10})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := readback.New(bytes.NewReader(data), int64(len(data)), "f", fields)
				for err == nil {
					_, err = r.Next()
				}
				if !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
