package datafile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"tablectl/internal/datafile"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// memFile is an input in memory.
type memFile struct {
	*bytes.Reader
	opened *int // files that are open, unless nil
}

func (f memFile) Close() error {
	if f.opened != nil {
		*f.opened--
	}
	return nil
}

func input(name string, fields []types.Field, data []byte, rows int) datafile.Input {
	return datafile.Input{Name: name, Fields: fields, Rows: int64(rows), Open: func(context.Context) (datafile.File, error) {
		return memFile{Reader: bytes.NewReader(data)}, nil
	}}
}

// buffer is an output in memory.
type buffer struct {
	bytes.Buffer
	closed int
}

func (b *buffer) Close() error {
	b.closed++
	return nil
}

// outputs keeps what Concat creates.
type outputs struct{ files []*buffer }

func (o *outputs) create(context.Context) (string, io.WriteCloser, error) {
	o.files = append(o.files, &buffer{})
	return fmt.Sprintf("out-%d.parquet", len(o.files)-1), o.files[len(o.files)-1], nil
}

// plainSpec writes everything into one small file.
func plainSpec(fields []types.Field) datafile.Spec {
	return datafile.Spec{
		Fields: fields, Compression: "zstd", ZstdLevel: 1, TargetSize: 1 << 40, RowGroupSize: 128 << 20, PageSize: 64 << 10,
		Dictionary: true, CreatedBy: "test", Workers: 1, Stats: slices.Repeat([]datafile.StatsMode{{Counts: true, Bounds: true}}, len(fields)),
	}
}

// concat runs Concat and reads the rows of its outputs, in order.
func concat(ctx context.Context, inputs []datafile.Input, spec datafile.Spec) ([]datafile.Output, *outputs, [][]any, error) {
	return write(func(spec datafile.Spec) ([]datafile.Output, error) { return datafile.Concat(ctx, inputs, spec) }, spec)
}

// write lets f write its outputs, and reads their rows, in order.
func write(f func(spec datafile.Spec) ([]datafile.Output, error), spec datafile.Spec) ([]datafile.Output, *outputs, [][]any, error) {
	var store outputs
	spec.Create = store.create
	done, err := f(spec)
	if len(done) != len(store.files) {
		return nil, nil, nil, fmt.Errorf("%d outputs in the result, %d were created: %w", len(done), len(store.files), err)
	}
	for i, f := range store.files {
		if f.closed != 1 {
			return nil, nil, nil, fmt.Errorf("output %d was closed %d times: %w", i, f.closed, err)
		}
	}
	if err != nil {
		return done, &store, nil, err
	}
	var all [][]any
	for i, o := range done {
		data := store.files[i].Bytes()
		if o.Size != int64(len(data)) {
			return nil, nil, nil, fmt.Errorf("output %d is said to have %d bytes, it has %d", i, o.Size, len(data))
		}
		rows, err := tabletest.ReadFile(data, spec.Fields)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("read output %d: %w", i, err)
		}
		if int64(len(rows)) != o.Rows || len(rows) == 0 {
			return nil, nil, nil, fmt.Errorf("output %d is said to have %d rows, it has %d", i, o.Rows, len(rows))
		}
		if err := checkStats(spec, o, rows); err != nil {
			return nil, nil, nil, fmt.Errorf("output %d: %w", i, err)
		}
		if err := checkFile(data); err != nil {
			return nil, nil, nil, fmt.Errorf("output %d: %w", i, err)
		}
		all = append(all, rows...)
	}
	return done, &store, all, nil
}

// checkStats compares the statistics of an output with its rows.
func checkStats(spec datafile.Spec, o datafile.Output, rows [][]any) error {
	if len(o.Stats) != len(spec.Fields) {
		return fmt.Errorf("statistics of %d columns", len(o.Stats))
	}
	for i, f := range spec.Fields {
		var nulls int64
		low, high := types.NullValue, types.NullValue
		unordered := false // there is a NaN
		for _, r := range rows {
			v, scalar := r[i].(types.Value)
			unordered = unordered || math.IsNaN(v.Float)
			switch {
			case r[i] == nil:
				nulls++
			case !scalar:
			case low.Null:
				low, high = v, v
			case types.Compare(f.Type.Kind, v, low) < 0:
				low = v
			case types.Compare(f.Type.Kind, v, high) > 0:
				high = v
			}
		}
		s, mode := o.Stats[i], spec.Stats[i]
		if !f.Type.Scalar() || !mode.Counts {
			if s.NullCount != nil || !s.Min.Null || !s.Max.Null {
				return fmt.Errorf("column %s of type %s has statistics: %+v", f.Name, f.Type, s)
			}
			continue
		}
		if s.NullCount == nil || *s.NullCount != nulls {
			return fmt.Errorf("column %s: %d nulls, want %d", f.Name, *s.NullCount, nulls)
		}
		if !mode.Bounds || !hasBounds(f.Type) || unordered {
			low, high = types.NullValue, types.NullValue
		}
		if types.Compare(f.Type.Kind, s.Min, low) != 0 || types.Compare(f.Type.Kind, s.Max, high) != 0 {
			return fmt.Errorf("column %s has the bounds %s and %s, want %s and %s", f.Name, types.Format(f.Type, s.Min),
				types.Format(f.Type, s.Max), types.Format(f.Type, low), types.Format(f.Type, high))
		}
	}
	return nil
}

// hasBounds tells for which types bounds are kept.
func hasBounds(t types.Type) bool {
	switch t.Kind {
	case types.Binary, types.Varbinary:
		return false
	case types.Timestamp, types.TimestampLTZ:
		return t.Precision <= 6
	}
	return true
}

// errTable is what Concat's errors must tell: which input they are about.
func namesInput(err error, inputs []datafile.Input) error {
	for _, in := range inputs {
		if bytes.Contains([]byte(err.Error()), []byte(in.Name)) {
			return nil
		}
	}
	return errors.Join(errors.New("the error names no input"), err)
}
