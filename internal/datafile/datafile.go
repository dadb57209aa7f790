// Package datafile moves rows between Parquet data files, column by column.
//
// Its task is "these files as one": Concat reads Inputs one after the other and
// writes their rows into Outputs of about a target size; Merge reads sorted runs of
// them side by side and writes one row for each key. A leaf is one primitive
// column of a Parquet schema; a column of a scalar type is one leaf, a nested one
// has several. Leaves move independently, in batches of rows, as typed values
// with their definition and repetition levels; no row is ever put together. A merge
// decides by the few columns that it is about which rows go on, and every leaf then
// gathers those from windows on the runs. Where
// an input was written under an older schema, its columns are found by field
// id, and leaves are converted, or filled with nulls, on the way.
//
// What a later path needs that copies pages without decoding them is the same
// question: which leaves of an input need no conversion.
package datafile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"golang.org/x/sync/errgroup"

	"tablectl/internal/types"
)

// ErrUnsupported is wrapped when a file uses something of Parquet, or needs a
// conversion, that is not supported.
var ErrUnsupported = errors.New("not supported")

// File is an open input.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Input is a file to read.
type Input struct {
	Name   string        // for messages
	Fields []types.Field // the columns under the schema that wrote the file
	Rows   int64         // how many rows it must hold
	// Fixed is, by field id, what a column holds that the file lacks. One that is
	// not there is null.
	Fixed map[int]types.Value
	Age   int // in a merge, the greater one is the newer of rows that nothing else tells apart
	Open  func(ctx context.Context) (File, error)
}

// Spec says what to write.
type Spec struct {
	Fields       []types.Field
	Compression  string // zstd, snappy, gzip, lz4, lz4_raw, none
	ZstdLevel    int
	TargetSize   int64 // bytes after which a new file is begun
	AbsorbTail   int64 // what would become a last file below this size, in bytes, goes into the one before; 0 is off
	RowGroupSize int64 // bytes
	PageSize     int64 // bytes
	Dictionary   bool  // allow dictionary encoding
	CreatedBy    string
	Stats        []StatsMode // by column
	NewIndex     func() []IndexBuilder
	Workers      int   // leaves that are moved at the same time
	ReadMemory   int64 // bytes that readers of sorted runs may hold, estimated; 0 is no bound
	InputBytes   int64 // size of all inputs, to foresee the tail
	Create       func(ctx context.Context) (name string, w io.WriteCloser, err error)
}

// IndexBuilder gathers the values of one column for a file index.
type IndexBuilder interface {
	// Column is the index of the column in Spec.Fields; its type is scalar.
	Column() int
	// Add takes the value of the next row.
	Add(v types.Value) error
}

// Output is a file that was written and closed.
type Output struct {
	Name    string
	Size    int64 // bytes
	Rows    int64
	Stats   []ColumnStats // by column
	Indexes []IndexBuilder

	// Of a merge only.
	MinKey, MaxKey           []types.Value // of the first and the last row
	MinSequence, MaxSequence int64
	Deletes                  int64 // rows that retract
}

// A batch is the rows of every leaf that are moved before the leaves are brought
// in step.
const (
	maxBatch   = 128_000
	batchBytes = 32 << 20 // uncompressed, estimated
	rollStep   = 1000     // rows after which a file may roll
)

// Check opens an input and makes sure, without reading its data, that it can be
// moved under the spec: its format, its codecs, and every conversion.
func Check(ctx context.Context, in Input, spec Spec) error {
	return guard(in.Name, func() error {
		target, err := newTarget(spec.Fields)
		if err != nil {
			return err
		}
		r, err := openInput(ctx, in, share{inputs: 1})
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = align(target, in, r.parquet.MetaData().Schema)
		return err
	})
}

// Concat writes the rows of all inputs, in order. Every file that it began is in
// the result, finished or not, so that a caller can remove it; it is complete
// only where the error is nil.
func Concat(ctx context.Context, inputs []Input, spec Spec) ([]Output, error) {
	w, err := newWriter(spec)
	if err != nil {
		return nil, err
	}
	for _, in := range inputs {
		if err = w.concat(ctx, in); err != nil {
			break
		}
	}
	if err == nil {
		err = w.finish()
	}
	if err != nil {
		w.abandon()
	}
	return w.outputs, err
}

// concat moves all rows of one input.
func (w *writer) concat(ctx context.Context, in Input) error {
	return guard(in.Name, func() error {
		r, err := openInput(ctx, in, share{inputs: 1, pages: newPageBudget(w.spec.ReadMemory, len(w.target.leaves), 1)})
		if err != nil {
			return err
		}
		defer r.Close()
		movers, err := w.movers(in, r.parquet)
		if err != nil {
			return err
		}
		before, rows := w.inputRead, int64(0)
		for g := range r.parquet.NumRowGroups() {
			if err := w.rowGroup(ctx, in, r, g, movers, func(moved int64) {
				rows += moved
				w.inputRead = before + int64(float64(r.size)*float64(rows)/float64(max(in.Rows, 1)))
			}); err != nil {
				return err
			}
		}
		w.inputRead = before + r.size
		return nil
	})
}

// rowGroup moves the rows of one row group of an input and tells after each batch
// how many.
func (w *writer) rowGroup(ctx context.Context, in Input, r *openedInput, g int, movers []mover, moved func(int64)) error {
	source := r.rowGroup(g)
	for _, m := range movers {
		if err := m.open(source); err != nil {
			return fmt.Errorf("row group %d: %w", g, err)
		}
	}
	ordered := heaviestFirst(movers, source.MetaData())
	plain, compressed := sizes(source.MetaData())
	inputRow := plain / max(source.NumRows(), 1)
	w.ratio = min(float64(compressed)/float64(max(plain, 1)), 1)
	for left := source.NumRows(); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.begin(ctx, func(leaf int) bool { return movers[leaf].dictionary(r.parquet.MetaData(), g) }); err != nil {
			return err
		}
		n := w.batch(min(left, maxBatch), inputRow, batchBytes)
		if err := inParallel(w.spec.Workers, in.Name, ordered, func(m mover) error { return m.move(n) }); err != nil {
			return err
		}
		left -= n
		moved(n)
		if err := w.moved(n); err != nil {
			return err
		}
	}
	for _, m := range movers {
		if err := m.end(); err != nil {
			return fmt.Errorf("row group %d: %w", g, err)
		}
	}
	return nil
}

// sizes adds up the bytes of a row group's columns, before and after compression.
func sizes(rg *metadata.RowGroupMetaData) (plain, compressed int64) {
	for c := range rg.NumColumns() {
		if chunk, err := rg.ColumnChunk(c); err == nil {
			plain += chunk.TotalUncompressedSize()
			compressed += chunk.TotalCompressedSize()
		}
	}
	return max(plain, 0), max(compressed, 0)
}

// heaviestFirst orders leaves so that the workers end at about the same time: a
// long one that begins last would keep the others waiting.
func heaviestFirst(movers []mover, rg *metadata.RowGroupMetaData) []mover {
	return slices.SortedStableFunc(slices.Values(movers), func(a, b mover) int {
		return cmp.Compare(b.weight(rg), a.weight(rg))
	})
}

// inParallel calls f for every leaf, a few at a time. Each leaf is used by one
// goroutine only.
func inParallel[L interface{ column() string }](workers int, name string, leaves []L, f func(L) error) error {
	one := func(l L) error {
		if err := f(l); err != nil {
			return fmt.Errorf("column %s: %w", l.column(), err)
		}
		return nil
	}
	if workers <= 1 || len(leaves) == 1 {
		for _, l := range leaves {
			if err := one(l); err != nil {
				return err
			}
		}
		return nil
	}
	var group errgroup.Group
	group.SetLimit(workers)
	for _, l := range leaves {
		group.Go(func() error { return guard(name, func() error { return one(l) }) })
	}
	return group.Wait()
}

// fileError names the file that an error is about, once.
type fileError struct {
	name string
	err  error
}

func (e *fileError) Error() string { return fmt.Sprintf("data file %s: %v", e.name, e.err) }

func (e *fileError) Unwrap() error { return e.err }

// guard names the input, unless it is "", in errors and turns a panic of the Parquet library,
// which damaged files can cause, into one.
func guard(name string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged, or beyond the Parquet library: %v", p)
			if name != "" {
				err = &fileError{name, err}
			}
		}
	}()
	err = f()
	var named *fileError
	if err != nil && name != "" && !errors.As(err, &named) && !errors.Is(err, context.Canceled) && !errors.Is(err, errOutput) {
		err = &fileError{name, err}
	}
	return err
}

// errOutput marks errors of writing, which are not about the input.
var errOutput = errors.New("write data file")
