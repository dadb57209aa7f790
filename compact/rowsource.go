package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"tablectl/internal/cast"
	"tablectl/internal/fileio"
	"tablectl/internal/readback"
	"tablectl/internal/types"
	"tablectl/snapshot"
)

// rowSource yields rows in the columns of a task's outputs, io.EOF at the end. A row
// is valid until the next call; its values stay.
type rowSource interface {
	next() ([]types.Value, error)
	close() error
}

// fileRows are the rows of one file.
type fileRows struct {
	file    fileio.File
	reader  *readback.Reader
	columns []sourceColumn
	row     []types.Value
}

// sourceColumn says where a column of the outputs comes from.
type sourceColumn struct {
	at      int         // the column of the file, or -1
	value   types.Value // at -1: in every row
	convert converter
}

// input reads an input of a task as its columns are now.
func (v *verifier) input(ctx context.Context, task Task, e *snapshot.ManifestEntry) (rowSource, error) {
	schema := v.schemas[e.File.SchemaID]
	if v.merge == nil {
		return v.open(ctx, task, e.File.FileName, columnsOf(schema))
	}
	return v.open(ctx, task, e.File.FileName, columnsOfKeyValues(schema))
}

// open reads a file that was written with some fields. They are matched to those of
// the outputs by id (reference: SchemaEvolutionUtil, FormatReaderMapping).
func (v *verifier) open(ctx context.Context, task Task, name string, fields []types.Field) (rowSource, error) {
	fixed, err := v.partitionValues(task.Partition)
	if err != nil {
		return nil, err
	}
	p, err := v.table.FilePath(task.Partition, int(task.Bucket), name)
	if err != nil {
		return nil, err
	}
	r := &fileRows{}
	var read []types.Field
	for _, f := range v.spec.Fields {
		c := sourceColumn{at: -1, value: types.NullValue}
		if value, ok := fixed[f.ID]; ok {
			c.value = value
		}
		if i := slices.IndexFunc(fields, func(o types.Field) bool { return o.ID == f.ID }); i >= 0 {
			old := fields[i]
			if c.convert, err = newConverter(old.Type, f.Type); err != nil {
				return nil, fmt.Errorf("data file %s: column %s: %w", p, f.Name, err)
			}
			if c.at = slices.IndexFunc(read, func(o types.Field) bool { return o.Name == old.Name }); c.at < 0 {
				c.at, read = len(read), append(read, old)
			}
		}
		r.columns = append(r.columns, c)
	}
	if r.file, err = v.openFile(ctx, p); err != nil {
		return nil, err
	}
	if r.reader, err = readback.New(r.file, r.file.Size(), p, read); err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	for i, c := range r.columns {
		if c.at >= 0 && r.reader.Missing(c.at) {
			r.columns[i] = sourceColumn{at: -1, value: c.value}
		}
	}
	r.row = make([]types.Value, len(r.columns))
	return r, nil
}

// unreadError says that the store did not give what a file holds.
type unreadError struct{ error }

func (e *unreadError) Unwrap() error { return e.error }

// openFile opens a file whose errors tell a store that fails from a file that is
// missing, too short or broken.
func (v *verifier) openFile(ctx context.Context, p string) (fileio.File, error) {
	f, err := v.table.IO.Open(ctx, p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, &unreadError{err}
	}
	return storedFile{f}, nil
}

type storedFile struct{ fileio.File }

func (f storedFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &unreadError{err}
	}
	return n, err
}

func (r *fileRows) next() ([]types.Value, error) {
	row, err := r.reader.Next()
	if err != nil {
		return nil, err
	}
	for i, c := range r.columns {
		r.row[i] = c.value
		if c.at >= 0 {
			if r.row[i], err = c.convert.apply(row[c.at]); err != nil {
				return nil, err
			}
		}
	}
	return r.row, nil
}

func (r *fileRows) close() error { return r.file.Close() }

// runRows are the rows of files that follow each other.
type runRows struct {
	files []func() (rowSource, error)
	open  rowSource // the one in hand
	at    int       // its number
}

func (r *runRows) next() ([]types.Value, error) {
	for {
		if r.open == nil {
			if r.at == len(r.files) {
				return nil, io.EOF
			}
			var err error
			if r.open, err = r.files[r.at](); err != nil {
				return nil, err
			}
		}
		row, err := r.open.next()
		if !errors.Is(err, io.EOF) {
			return row, err
		}
		if err := r.close(); err != nil {
			return nil, err
		}
		r.at++
	}
}

func (r *runRows) close() error {
	if r.open == nil {
		return nil
	}
	err := r.open.close()
	r.open = nil
	return err
}

// converter makes a value of one type one of another; nil leaves values as they are.
type converter func(types.Value) (types.Value, error)

func (c converter) apply(v types.Value) (types.Value, error) {
	if c == nil || v.Null {
		return v, nil
	}
	return c(v)
}

// newConverter converts values as readers do: scalars are cast, members of rows are
// matched by id.
func newConverter(from, to types.Type) (converter, error) {
	switch {
	case from.Scalar() && to.Scalar():
		if from.Same(to) {
			return nil, nil
		}
		f, err := cast.Resolve(from, to)
		return converter(f), err
	case from.Kind != to.Kind:
		return nil, fmt.Errorf("no cast from %s to %s", from, to)
	case to.Kind == types.Row:
		return rowConverter(from.Fields, to.Fields)
	case to.Kind == types.Array:
		element, err := newConverter(*from.Element, *to.Element)
		return itemsConverter(element), err
	case to.Kind == types.Map, to.Kind == types.Multiset:
		fromKey, fromValue := from.EntryTypes()
		toKey, toValue := to.EntryTypes()
		key, err := newConverter(fromKey, toKey)
		if err != nil {
			return nil, err
		}
		value, err := newConverter(fromValue, toValue)
		return itemsConverter(key, value), err
	}
	return nil, nil
}

// itemsConverter applies converters to items in turn.
func itemsConverter(parts ...converter) converter {
	return func(v types.Value) (types.Value, error) {
		items := make([]types.Value, len(v.Items))
		for i, item := range v.Items {
			var err error
			if items[i], err = parts[i%len(parts)].apply(item); err != nil {
				return v, err
			}
		}
		v.Items = items
		return v, nil
	}
}

func rowConverter(from, to []types.Field) (converter, error) {
	at, parts := make([]int, len(to)), make([]converter, len(to))
	for i, f := range to {
		at[i] = slices.IndexFunc(from, func(o types.Field) bool { return o.ID == f.ID })
		if at[i] < 0 {
			continue
		}
		var err error
		if parts[i], err = newConverter(from[at[i]].Type, f.Type); err != nil {
			return nil, err
		}
	}
	return func(v types.Value) (types.Value, error) {
		items := make([]types.Value, len(to))
		for i := range to {
			items[i] = types.NullValue
			if at[i] < 0 {
				continue
			}
			var err error
			if items[i], err = parts[i].apply(v.Items[at[i]]); err != nil {
				return v, err
			}
		}
		v.Items = items
		return v, nil
	}, nil
}
