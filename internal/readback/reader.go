// Package readback reads the rows of Paimon's Parquet data files a second time, to
// verify what was written. It stands on parquet-go and shares no code with
// internal/datafile, which stands on arrow-go: what a file's columns mean (physical
// types, units, levels, codecs) is spelled out here again on purpose, so that a fault
// of one reader or writer does not hide behind the same fault in the other.
//
// Of parquet-go it uses what decodes: footers, headers and pages. It finds and
// inflates the pages itself, as parquet-go neither bounds their sizes nor reads the
// codecs LZ4 (as Hadoop frames it) and LZ4_RAW right.
package readback

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/parquet-go/parquet-go"

	"tablectl/internal/types"
)

// ErrUnsupported is wrapped by errors about files that may be sound, but that this
// package does not read: encryption, unknown codecs, shredded variants, types that
// are stored in another way than Paimon does.
var ErrUnsupported = errors.New("not supported")

var errEntries = errors.New("its entries do not fit together")

// Reader reads the rows of one file, in their order. It holds one page of every
// column. It is not safe for concurrent use.
type Reader struct {
	name   string
	file   *file
	fields []types.Field
	shapes []*shape // by field; nil: the file does not have it
	leaves []*leaf  // of all shapes
	row    []types.Value
	group  int   // the next row group
	left   int64 // rows of the row group before it
	done   int64 // rows that were read
	err    error
}

// New opens a file of that size, which stays the caller's to close. The fields are
// the columns to read, as the schema has them that the file was written with. As in
// the reference, the file's columns are found by the names in that schema, at every
// depth: field ids of other writers are not always Paimon's, and parquet-go does not
// tell the id 0 from none. Errors, those of Next too, name the file.
func New(in io.ReaderAt, size int64, name string, fields []types.Field) (*Reader, error) {
	r := &Reader{name: name, fields: fields, row: make([]types.Value, len(fields)), shapes: make([]*shape, len(fields))}
	if err := r.guard(func() error { return r.open(in, size) }); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) open(in io.ReaderAt, size int64) error {
	var err error
	if r.file, err = openFile(in, size); err != nil {
		return err
	}
	for i, f := range r.fields {
		c := r.file.root.Column(f.Name)
		if c == nil {
			continue
		}
		if r.shapes[i], err = newShape(c, f.Type, levels{}); err != nil {
			return fmt.Errorf("column %s: %w", f.Name, err)
		}
		r.leaves = append(r.leaves, r.shapes[i].leaves...)
	}
	return nil
}

// Rows is the number of rows that the file says it has. Next fails where it is
// not so.
func (r *Reader) Rows() int64 { return r.file.meta.NumRows }

// Missing reports whether the file does not have the i-th field. Next returns null
// for it; what it stands for is for the caller to say.
func (r *Reader) Missing(i int) bool { return r.shapes[i] == nil }

// Next returns the next row, one value per field, or io.EOF after the last one. Members
// of a ROW that the file does not have are null. The slice is used again by the next
// call; the values in it stay, but hold the memory of their page.
func (r *Reader) Next() ([]types.Value, error) {
	if r.err != nil {
		return nil, r.err
	}
	r.err = r.guard(r.next)
	if r.err != nil {
		return nil, r.err
	}
	return r.row, nil
}

func (r *Reader) next() error {
	for r.left == 0 {
		if err := r.nextGroup(); err != nil {
			return err
		}
	}
	for i, s := range r.shapes {
		if s == nil {
			r.row[i] = types.NullValue
			continue
		}
		var err error
		if r.row[i], err = s.value(0); err != nil {
			return fmt.Errorf("row %d, column %s: %w", r.done, r.fields[i].Name, err)
		}
	}
	r.left--
	r.done++
	return nil
}

// nextGroup goes on to the next row group, once every column of the last one ends.
func (r *Reader) nextGroup() error {
	for _, l := range r.leaves {
		if more, err := l.more(); err != nil {
			return fmt.Errorf("row group %d: %w", r.group-1, err)
		} else if more {
			return fmt.Errorf("row group %d: column %v has entries beyond its rows: %w", r.group-1, l.column.Path(), errEntries)
		}
	}
	if r.group == len(r.file.meta.RowGroups) {
		return io.EOF
	}
	for _, l := range r.leaves {
		l.open(r.file, r.group)
	}
	r.left = r.file.meta.RowGroups[r.group].NumRows
	r.group++
	return nil
}

// EachPage calls f with the entries of every page of a leaf of a row group: what a
// footer says of them can be compared with them.
func (r *Reader) EachPage(group, column int, f func(entries []parquet.Value) error) error {
	return r.guard(func() error {
		p := r.file.pages(group, r.file.leaves[column])
		for {
			page, err := p.next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			entries := make([]parquet.Value, page.NumValues())
			if n, err := page.Values().ReadValues(entries); n < len(entries) {
				return fmt.Errorf("%d of %d entries of a page: %w", n, len(entries), errors.Join(err, errEntries))
			}
			if err := f(entries); err != nil {
				return err
			}
		}
	})
}

// guard names the file in errors, and makes errors of panics: parquet-go trusts the
// bytes of pages, and reads some of them in assembly, without checks of bounds.
func (r *Reader) guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("data file %s: damaged, or beyond the Parquet library: %v", r.name, p)
		}
	}()
	err = f()
	if err != nil && err != io.EOF { //nolint:errorlint // the end of the rows is never wrapped, damage can be
		err = fmt.Errorf("data file %s: %w", r.name, err)
	}
	return err
}
