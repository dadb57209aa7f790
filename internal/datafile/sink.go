package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"tablectl/internal/types"
)

// chunkWriter is what the typed column writers of the Parquet library have in
// common.
type chunkWriter[T any] interface {
	file.ColumnChunkWriter
	WriteBatch(values []T, defs, reps []int16) (int64, error)
}

// taker takes the entries of one leaf of the target, in whole rows.
type taker interface {
	// cells takes entries whose values are cells of the leaf's type.
	cells(vals []types.Value, defs, reps []int16) error
	maxDefinition() int16
	nullable() bool
}

// typedTaker takes entries whose values are as they are stored. Levels that the
// leaf does not have are nil.
type typedTaker[T parquet.ColumnTypes] interface {
	taker
	write(vals []T, defs, reps []int16) error
}

// sink takes the entries of one leaf of the output.
type sink interface {
	taker
	// attach directs entries to a column chunk.
	attach(w file.ColumnChunkWriter) error
	// begin forgets the statistics of the file before and takes the index builders
	// of the next one. With ends it keeps the first and the last value.
	begin(indexes []IndexBuilder, ends bool)
	ends() (first, last types.Value, err error)
	stats(mode StatsMode) (ColumnStats, error)
}

// encoding is the form in which the values of a leaf are stored.
type encoding[T parquet.ColumnTypes] struct {
	leaf           leaf
	maxDef, maxRep int16
	decode         func(T) (types.Value, error)
	encode         func(types.Value) (T, error)
	buf            []T
}

func newEncoding[T parquet.ColumnTypes](l leaf, descr *schema.Column) (encoding[T], error) {
	decode, err := decoder[T](l.typ, descr)
	return encoding[T]{
		leaf: l, maxDef: descr.MaxDefinitionLevel(), maxRep: descr.MaxRepetitionLevel(),
		decode: decode, encode: encoder[T](l.typ, descr),
	}, err
}

func (e *encoding[T]) maxDefinition() int16 { return e.maxDef }

func (e *encoding[T]) nullable() bool { return !e.leaf.typ.NotNull }

// encodeTo encodes cells and hands them on, with the levels that the leaf has.
func (e *encoding[T]) encodeTo(write func(vals []T, defs, reps []int16) error, vals []types.Value, defs, reps []int16) error {
	e.buf = e.buf[:0]
	for _, v := range vals {
		p, err := e.encode(v)
		if err != nil {
			return err
		}
		e.buf = append(e.buf, p)
	}
	if e.maxDef == 0 {
		defs = nil
	}
	if e.maxRep == 0 {
		reps = nil
	}
	return write(e.buf, defs, reps)
}

// typedSink is the sink for one physical type.
type typedSink[T parquet.ColumnTypes] struct {
	encoding[T]
	pageSize int64

	w         chunkWriter[T]
	collector collector[T]
	indexes   []IndexBuilder

	keepEnds    bool
	begun       bool
	first, last *T // nil is null
}

// newSink makes the sink of a leaf that is stored as values T.
func newSink[T parquet.ColumnTypes](l leaf, descr *schema.Column, pageSize int64) (sink, error) {
	e, err := newEncoding[T](l, descr)
	if err != nil {
		return nil, err
	}
	return &typedSink[T]{encoding: e, pageSize: pageSize}, nil
}

func (s *typedSink[T]) attach(w file.ColumnChunkWriter) error {
	typed, ok := w.(chunkWriter[T])
	if !ok {
		return fmt.Errorf("unexpected column writer %T", w)
	}
	s.w = typed
	return nil
}

func (s *typedSink[T]) begin(indexes []IndexBuilder, ends bool) {
	s.keepEnds, s.begun, s.first, s.last = ends, false, nil, nil
	s.collector = collector[T]{}
	if s.leaf.top {
		s.collector.compare, s.collector.nan = comparison[T](s.leaf.typ), notANumber[T]()
	}
	s.indexes = indexes
}

func (s *typedSink[T]) stats(mode StatsMode) (ColumnStats, error) {
	if !s.leaf.top {
		return noStats, nil
	}
	return s.collector.result(s.leaf.typ, mode, s.decode)
}

func (s *typedSink[T]) cells(vals []types.Value, defs, reps []int16) error {
	return s.encodeTo(s.write, vals, defs, reps)
}

func (s *typedSink[T]) write(vals []T, defs, reps []int16) error {
	s.noteEnds(vals, defs)
	s.collector.add(vals)
	if defs != nil && s.leaf.top {
		s.collector.nulls += int64(len(defs) - len(vals))
	}
	for _, ix := range s.indexes {
		if err := s.index(ix, vals, defs); err != nil {
			return err
		}
	}
	for len(vals) > 0 || len(defs) > 0 {
		n, v := s.piece(vals, defs, reps)
		var d, r []int16
		if defs != nil {
			d, defs = defs[:n], defs[n:]
		}
		if reps != nil {
			r, reps = reps[:n], reps[n:]
		}
		if _, err := s.w.WriteBatch(vals[:v], d, r); err != nil {
			return fmt.Errorf("%w: %w", errOutput, err)
		}
		vals = vals[v:]
	}
	return nil
}

// noteEnds keeps the first and the last value of a scalar column.
func (s *typedSink[T]) noteEnds(vals []T, defs []int16) {
	if !s.keepEnds || len(vals) == 0 && len(defs) == 0 {
		return
	}
	at := func(entry, value int) *T {
		if defs != nil && defs[entry] < s.maxDef {
			return nil
		}
		v := detach(vals[value])
		return &v
	}
	if !s.begun {
		s.first, s.begun = at(0, 0), true
	}
	s.last = at(len(defs)-1, len(vals)-1)
}

func (s *typedSink[T]) ends() (first, last types.Value, err error) {
	value := func(v *T) types.Value {
		if v == nil || err != nil {
			return types.NullValue
		}
		var decoded types.Value
		decoded, err = s.decode(*v)
		return decoded
	}
	first, last = value(s.first), value(s.last)
	return first, last, err
}

// piece limits how many entries are given to the writer at once: it looks at the
// size of a page only between them, and long values would make pages that no one
// can hold. A piece ends with a row.
func (s *typedSink[T]) piece(vals []T, defs, reps []int16) (entries, values int) {
	all := len(vals)
	if defs != nil {
		all = len(defs)
	}
	if len(vals) == 0 || valueSize(vals[0]) < 0 {
		return all, len(vals)
	}
	var size int64
	for entries < all {
		present := defs == nil || defs[entries] == s.maxDef
		if rowStart := reps == nil || reps[entries] == 0; rowStart && entries > 0 && size >= s.pageSize {
			return entries, values
		}
		if present {
			size += valueSize(vals[values])
			values++
		}
		entries++
	}
	return entries, values
}

// valueSize is the length of a value of variable length, and -1 for the others.
func valueSize[T parquet.ColumnTypes](v T) int64 {
	if b, ok := any(v).(parquet.ByteArray); ok {
		return int64(len(b))
	}
	return -1
}

func (s *typedSink[T]) index(ix IndexBuilder, vals []T, defs []int16) error {
	rows := len(vals)
	if defs != nil {
		rows = len(defs)
	}
	next := 0
	for i := range rows {
		v := types.NullValue
		if defs == nil || defs[i] == s.maxDef {
			var err error
			if v, err = s.decode(vals[next]); err != nil {
				return err
			}
			next++
		}
		if err := ix.Add(v); err != nil {
			return err
		}
	}
	return nil
}
