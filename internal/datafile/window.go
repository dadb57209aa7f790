package datafile

import (
	"github.com/apache/arrow-go/v18/parquet"

	"tablectl/internal/types"
)

// windowRows is how many rows of a leaf a window takes at a time; where memory is
// scarce, parkedRows.
const (
	windowRows = 1024
	parkedRows = 128
)

// window holds some consecutive rows of one leaf, in the form of the target,
// so that they can be looked at in any order.
type window[T parquet.ColumnTypes] struct {
	encoding[T]
	nested   bool // rows may have any number of entries
	optional bool // the column, of which the leaf is a part, can be null

	first int64 // number of the first row
	rows  int
	// Of a flat leaf there is one value for each row, unused where it is null. Of a
	// nested one there are values for the entries that have one.
	vals       []T
	defs, reps []int16
	starts     []int32 // nested: the first entry of each row
	valStarts  []int32 // nested: its first value
	arena      []byte  // what values of variable length point to
}

func (w *window[T]) end() int64 { return w.first + int64(w.rows) }

func (w *window[T]) has(row int64) bool { return row >= w.first && row < w.end() }

// slide drops the rows, or all but the last one of a flat leaf.
func (w *window[T]) slide(keepLast bool) {
	if keepLast && w.rows > 0 {
		last := w.rows - 1
		w.vals[0] = detach(w.vals[last])
		if w.maxDef > 0 {
			w.defs[0] = w.defs[last]
			w.defs = w.defs[:1]
		}
		w.first, w.rows, w.vals, w.arena = w.first+int64(last), 1, w.vals[:1], w.arena[:0]
		return
	}
	w.first, w.rows = w.end(), 0
	w.vals, w.defs, w.reps, w.starts, w.valStarts, w.arena = w.vals[:0], w.defs[:0], w.reps[:0], w.starts[:0], w.valStarts[:0], w.arena[:0]
}

// hold copies what a value points to into the arena.
func (w *window[T]) hold(v T) T {
	switch b := any(v).(type) {
	case parquet.ByteArray:
		return any(parquet.ByteArray(w.copied(b))).(T)
	case parquet.FixedLenByteArray:
		return any(parquet.FixedLenByteArray(w.copied(b))).(T)
	}
	return v
}

func (w *window[T]) copied(b []byte) []byte {
	from := len(w.arena)
	w.arena = append(w.arena, b...)
	return w.arena[from:len(w.arena):len(w.arena)]
}

// write appends rows.
func (w *window[T]) write(vals []T, defs, reps []int16) error {
	from := len(w.vals)
	switch {
	case w.nested:
		w.writeNested(vals, defs, reps)
	case w.maxDef == 0:
		w.vals = append(w.vals, vals...)
		w.rows += len(vals)
	default:
		var none T
		next := 0
		for _, d := range defs {
			v := none
			if d == w.maxDef {
				v = vals[next]
				next++
			}
			w.vals = append(w.vals, v)
		}
		w.defs = append(w.defs, defs...)
		w.rows += len(defs)
	}
	if pointing[T]() {
		for i := from; i < len(w.vals); i++ {
			w.vals[i] = w.hold(w.vals[i])
		}
	}
	return nil
}

func (w *window[T]) writeNested(vals []T, defs, reps []int16) {
	value := len(w.vals)
	for i, r := range reps {
		if r == 0 {
			w.starts = append(w.starts, int32(len(w.reps)+i))
			w.valStarts = append(w.valStarts, int32(value))
			w.rows++
		}
		if defs[i] == w.maxDef {
			value++
		}
	}
	w.vals, w.defs, w.reps = append(w.vals, vals...), append(w.defs, defs...), append(w.reps, reps...)
}

func (w *window[T]) cells(vals []types.Value, defs, reps []int16) error {
	return w.encodeTo(w.write, vals, defs, reps)
}

// null reports whether the column, of which the leaf is a part, is null in a row.
func (w *window[T]) null(row int64) bool {
	i := int(row - w.first)
	switch {
	case !w.optional:
		return false
	case w.nested:
		return w.defs[w.starts[i]] == 0
	}
	return w.defs[i] == 0
}

// pointing reports whether values point to bytes elsewhere.
func pointing[T parquet.ColumnTypes]() bool {
	var v T
	switch any(v).(type) {
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return true
	}
	return false
}

// entries are rows on their way to the output.
type entries[T parquet.ColumnTypes] struct {
	vals       []T
	defs, reps []int16
}

func (e *entries[T]) clear() { e.vals, e.defs, e.reps = e.vals[:0], e.defs[:0], e.reps[:0] }

// copyTo appends the n rows from a row on.
func (w *window[T]) copyTo(out *entries[T], row int64, n int) {
	i := int(row - w.first)
	switch {
	case w.nested:
		from, to := w.starts[i], int32(len(w.reps))
		vfrom, vto := w.valStarts[i], int32(len(w.vals))
		if i+n < w.rows {
			to, vto = w.starts[i+n], w.valStarts[i+n]
		}
		out.vals = append(out.vals, w.vals[vfrom:vto]...)
		out.defs = append(out.defs, w.defs[from:to]...)
		out.reps = append(out.reps, w.reps[from:to]...)
	case w.maxDef == 0:
		out.vals = append(out.vals, w.vals[i:i+n]...)
	default:
		for ; n > 0; n-- {
			d := w.defs[i]
			out.defs = append(out.defs, d)
			if d == w.maxDef {
				out.vals = append(out.vals, w.vals[i])
			}
			i++
		}
	}
}
