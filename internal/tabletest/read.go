package tabletest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"tablectl/internal/readback"
	"tablectl/internal/types"
)

// ReadFile reads all rows of a Parquet file, in order. The fields are those of
// the schema that the file was written with; the file's columns are found by their
// names, at every depth. A column that the file lacks is null.
func ReadFile(data []byte, fields []types.Field) ([][]any, error) {
	r, err := readback.New(bytes.NewReader(data), int64(len(data)), "in memory", fields)
	if err != nil {
		return nil, err
	}
	var rows [][]any
	for {
		values, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		row := make([]any, len(fields))
		for i, f := range fields {
			row[i] = cell(f.Type, values[i])
		}
		rows = append(rows, row)
	}
	if int64(len(rows)) != r.Rows() {
		return nil, fmt.Errorf("%d rows, %d in the footer", len(rows), r.Rows())
	}
	return rows, nil
}

// cell is a value as the tests hold it.
func cell(t types.Type, v types.Value) any {
	if v.Null {
		return nil
	}
	switch t.Kind {
	case types.Array:
		list := make(List, len(v.Items))
		for i, item := range v.Items {
			list[i] = cell(*t.Element, item)
		}
		return list
	case types.Map, types.Multiset:
		key, value := MapTypes(t)
		m := make(Map, len(v.Items)/2)
		for i := range m {
			m[i] = Pair{cell(key, v.Items[2*i]), cell(value, v.Items[2*i+1])}
		}
		return m
	case types.Row:
		s := make(Struct, len(v.Items))
		for i, item := range v.Items {
			s[i] = cell(t.Fields[i].Type, item)
		}
		return s
	case types.Variant:
		return Variant{Value: v.Items[0].Bytes, Metadata: v.Items[1].Bytes}
	}
	return v
}
