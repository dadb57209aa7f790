package datafile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// chunkReader is what the typed column readers of the Parquet library have in
// common.
type chunkReader[T any] interface {
	file.ColumnChunkReader
	ReadBatchInPage(batch int64, values []T, defs, reps []int16) (int64, int, error)
}

// readBatch is how many entries are decoded at a time.
const readBatch = 4096

// maxRowEntries bounds the entries of one leaf in one row: a row is held as a
// whole, and a damaged file must not make it grow without end.
const maxRowEntries = 16 << 20

// leafReader hands out the entries of a leaf by rows. An entry is a value or
// the place of a null; a row of a repeated leaf has any number of them, and all of
// a row are handed out together.
type leafReader[T parquet.ColumnTypes] struct {
	index          int
	r              chunkReader[T]
	pages          *checkedPages
	buffers        sync.Pool // of the Parquet library
	maxDef, maxRep int16

	vals       []T
	defs, reps []int16 // nil where the leaf has no such levels
	entries    int     // that are buffered
	values     int
	nextEntry  int // that is not handed out yet
	nextValue  int
	detached   int // values that do not point into a page
}

func newLeafReader[T parquet.ColumnTypes](index int, maxDef, maxRep int16) *leafReader[T] {
	l := &leafReader[T]{index: index, maxDef: maxDef, maxRep: maxRep}
	l.buffers.New = func() any { return memory.NewResizableBuffer(memory.DefaultAllocator) }
	l.grow(readBatch)
	return l
}

func (l *leafReader[T]) grow(n int) {
	l.vals = slices.Grow(l.vals[:l.values], n-l.values)[:n]
	if l.maxDef > 0 {
		l.defs = slices.Grow(l.defs[:l.entries], n-l.entries)[:n]
	}
	if l.maxRep > 0 {
		l.reps = slices.Grow(l.reps[:l.entries], n-l.entries)[:n]
	}
}

// open starts with the leaf's chunk in a row group.
func (l *leafReader[T]) open(rg rowGroup) error {
	l.release()
	pages, err := rg.GetColumnPageReader(l.index)
	if err != nil {
		return err
	}
	var value T
	held := heldPages{budget: rg.pages, valueSize: int64(unsafe.Sizeof(value))}
	l.pages = &checkedPages{PageReader: pages, heldPages: held, maxDef: l.maxDef, maxRep: l.maxRep}
	c := file.NewColumnReader(rg.MetaData().Schema.Column(l.index), l.pages, memory.DefaultAllocator, &l.buffers) //nolint:staticcheck // as rg.Column does, with pages that are looked at first
	r, ok := c.(chunkReader[T])
	if !ok {
		return fmt.Errorf("unexpected column reader %T", c)
	}
	l.r = r
	l.entries, l.values, l.nextEntry, l.nextValue, l.detached = 0, 0, 0, 0, 0
	return nil
}

// openAt starts with a row of the leaf's chunk, counted within its row group. Where
// the file does not tell where its pages begin, it decodes all rows before.
func (l *leafReader[T]) openAt(rg rowGroup, row int64) error {
	if err := l.open(rg); err != nil {
		return err
	}
	chunk, err := rg.MetaData().ColumnChunk(l.index)
	if err != nil {
		return err
	}
	var first int64
	if chunk.GetOffsetIndexLocation() != nil {
		if first, err = l.pages.seek(row); err != nil {
			return err
		}
	}
	if first == row {
		return nil
	}
	return l.rows(row-first, func([]T, []int16, []int16) error { return nil })
}

// release gives back what its pages were counted for, as they go.
func (l *leafReader[T]) release() {
	if l.pages != nil {
		l.pages.release()
	}
}

// end makes sure that the chunk has no entries beyond the rows of its group.
func (l *leafReader[T]) end() error {
	if l.nextEntry < l.entries || l.r.HasNext() {
		return fmt.Errorf("column %s has more rows than its row group", l.r.Descriptor().Path())
	}
	return l.r.Err()
}

// fill decodes more entries, keeping those that are not handed out. Kept values
// that point into the page are copied, because the page goes.
func (l *leafReader[T]) fill() error {
	n, kept := l.values-l.nextValue, l.entries-l.nextEntry
	if l.nextEntry > 0 { // else the row that is not complete yet stays where it is
		copy(l.vals, l.vals[l.nextValue:l.values])
		if l.defs != nil {
			copy(l.defs, l.defs[l.nextEntry:l.entries])
		}
		if l.reps != nil {
			copy(l.reps, l.reps[l.nextEntry:l.entries])
		}
	}
	for i := max(l.detached-l.nextValue, 0); i < n; i++ {
		l.vals[i] = detach(l.vals[i])
	}
	l.detached = n
	l.entries, l.values, l.nextEntry, l.nextValue = kept, n, 0, 0
	if kept > maxRowEntries {
		return fmt.Errorf("a row has more than %d entries in one column", maxRowEntries)
	}
	if room := kept + readBatch; room > len(l.vals) {
		l.grow(max(room, 2*kept))
	}
	if l.r.HasNext() {
		var defs, reps []int16
		if l.defs != nil {
			defs = l.defs[kept:]
		}
		if l.reps != nil {
			reps = l.reps[kept:]
		}
		total, values, err := l.r.ReadBatchInPage(l.pages.batch(), l.vals[n:], defs, reps)
		if err != nil {
			return err
		}
		if total == 0 { // there would be no end
			return errors.New("a page has fewer values than its header tells")
		}
		if err := l.checkLevels(kept, int(total), values); err != nil {
			return err
		}
		l.entries, l.values = kept+int(total), n+values
		return nil
	}
	if err := l.r.Err(); err != nil {
		return err
	}
	return io.EOF
}

// checkLevels refuses levels that the schema does not have and a number of
// values that the levels do not call for: both come from damaged files.
func (l *leafReader[T]) checkLevels(from, total, values int) error {
	present := total
	if l.defs != nil {
		present = 0
		for _, d := range l.defs[from : from+total] {
			if d < 0 || d > l.maxDef {
				return fmt.Errorf("definition level %d, at most %d is possible", d, l.maxDef)
			}
			if d == l.maxDef {
				present++
			}
		}
	}
	if present != values {
		return fmt.Errorf("%d values where the levels call for %d", values, present)
	}
	if l.reps != nil && from == 0 && l.reps[0] != 0 {
		return fmt.Errorf("a page starts in the middle of a row")
	}
	return nil
}

// rows hands out the next n rows, in pieces. A piece begins and ends with a row
// and is valid until each returns.
func (l *leafReader[T]) rows(n int64, each func(vals []T, defs, reps []int16) error) error {
	for n > 0 {
		if l.nextEntry == l.entries {
			if err := l.fill(); err != nil {
				return shortOf(n, err)
			}
		}
		end, rows, err := l.wholeRows(n)
		if err != nil {
			return shortOf(n, err)
		}
		values := end - l.nextEntry
		var defs, reps []int16
		if l.defs != nil {
			defs = l.defs[l.nextEntry:end]
			values = 0
			for _, d := range defs {
				if d == l.maxDef {
					values++
				}
			}
		}
		if l.reps != nil {
			reps = l.reps[l.nextEntry:end]
		}
		vals := l.vals[l.nextValue : l.nextValue+values]
		l.nextEntry, l.nextValue = end, l.nextValue+values
		n -= rows
		if err := each(vals, defs, reps); err != nil {
			return err
		}
	}
	return nil
}

func shortOf(n int64, err error) error {
	if err == io.EOF { //nolint:errorlint // fill returns it bare
		return fmt.Errorf("%d rows fewer than the row group has", n)
	}
	return err
}

// wholeRows finds the end of as many complete rows as are buffered, at most n,
// reading on when not even one is complete.
func (l *leafReader[T]) wholeRows(n int64) (end int, rows int64, err error) {
	if l.reps == nil {
		take := min(int64(l.entries-l.nextEntry), n)
		return l.nextEntry + int(take), take, nil
	}
	scan := l.nextEntry + 1 // the entry at nextEntry begins a row
	for {
		for ; scan < l.entries; scan++ {
			if l.reps[scan] == 0 {
				rows++
				end = scan
				if rows == n {
					return end, rows, nil
				}
			}
		}
		if rows > 0 {
			return end, rows, nil
		}
		// One row so far, and it may go on.
		offset := scan - l.nextEntry
		err := l.fill()
		if err == io.EOF { //nolint:errorlint // fill returns it bare
			return l.entries, 1, nil
		}
		if err != nil {
			return 0, 0, err
		}
		scan = l.nextEntry + offset
	}
}

// detach copies what a value points to.
func detach[T parquet.ColumnTypes](v T) T {
	switch b := any(v).(type) {
	case parquet.ByteArray:
		return any(parquet.ByteArray(slices.Clone(b))).(T)
	case parquet.FixedLenByteArray:
		return any(parquet.FixedLenByteArray(slices.Clone(b))).(T)
	}
	return v
}
