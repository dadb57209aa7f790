package datafile

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"tablectl/internal/types"
)

// sortColumn is one column by which rows of several runs are compared. Of each
// run it can see the row that was sought last, and the one before.
type sortColumn interface {
	// seek goes forward to a row of a run and reports whether there is one.
	seek(run int, row int64) (bool, error)
	// end is the row of a run up to which it sees.
	end(run int) int64
	null(run int, row int64) bool
	// compare orders two rows as Paimon does, nulls first.
	compare(run int, row int64, run2 int, row2 int64) int
	// prefix is a number that orders rows no differently, but may be equal for
	// rows that are not.
	prefix(run int, row int64) uint64
	value(run int, row int64) (types.Value, error)
	// drain looks at what is left of every run.
	drain() error
}

type typedSort[T parquet.ColumnTypes] struct {
	cursors []*cursor[T] // by run
	order   func(a, b T) int
	short   func(v T) uint64
}

func newTypedSort[T parquet.ColumnTypes](l leaf, column *schema.Column, index int, runs []*run) (*typedSort[T], error) {
	e, err := newEncoding[T](l, column)
	if err != nil {
		return nil, err
	}
	s := &typedSort[T]{order: ordering[T](l.typ), short: shortened[T]()}
	for _, r := range runs {
		s.cursors = append(s.cursors, newCursor(r, index, e, true))
	}
	return s, nil
}

func (s *typedSort[T]) seek(run int, row int64) (bool, error) { return s.cursors[run].seek(row) }

func (s *typedSort[T]) end(run int) int64 { return s.cursors[run].win.end() }

func (s *typedSort[T]) null(run int, row int64) bool { return s.cursors[run].win.null(row) }

func (s *typedSort[T]) at(run int, row int64) T {
	w := &s.cursors[run].win
	return w.vals[row-w.first]
}

func (s *typedSort[T]) compare(run int, row int64, run2 int, row2 int64) int {
	if a, b := s.null(run, row), s.null(run2, row2); a || b {
		return btoi(b) - btoi(a)
	}
	return s.order(s.at(run, row), s.at(run2, row2))
}

func (s *typedSort[T]) prefix(run int, row int64) uint64 {
	if s.null(run, row) {
		return 0
	}
	return s.short(s.at(run, row))
}

func (s *typedSort[T]) value(run int, row int64) (types.Value, error) {
	if s.null(run, row) {
		return types.NullValue, nil
	}
	return s.cursors[run].win.decode(detach(s.at(run, row)))
}

func (s *typedSort[T]) drain() error {
	for _, c := range s.cursors {
		if err := c.drain(); err != nil {
			return err
		}
	}
	return nil
}

// ordering is the order of a type's stored values.
func ordering[T parquet.ColumnTypes](t types.Type) func(a, b T) int {
	var f any
	var zero T
	switch any(zero).(type) {
	case parquet.ByteArray:
		f = func(a, b parquet.ByteArray) int { return bytes.Compare(a, b) }
	case parquet.Int96:
		f = func(a, b parquet.Int96) int { return types.Compare(types.Timestamp, decodeInt96(a), decodeInt96(b)) }
	default:
		return comparison[T](t)
	}
	return f.(func(a, b T) int)
}

const signBit = 1 << 63

// shortened returns the function for sortColumn.prefix.
func shortened[T parquet.ColumnTypes]() func(v T) uint64 {
	var f any
	var zero T
	switch any(zero).(type) {
	case bool:
		f = func(v bool) uint64 { return uint64(btoi(v)) }
	case int32:
		f = func(v int32) uint64 { return uint64(int64(v)) ^ signBit }
	case int64:
		f = func(v int64) uint64 { return uint64(v) ^ signBit }
	case float32:
		f = func(v float32) uint64 { return shortFloat(float64(v)) }
	case float64:
		f = shortFloat
	case parquet.Int96:
		f = func(v parquet.Int96) uint64 { return uint64(decodeInt96(v).Int) ^ signBit }
	case parquet.ByteArray:
		f = func(v parquet.ByteArray) uint64 { return shortBytes(v) }
	case parquet.FixedLenByteArray:
		f = func(v parquet.FixedLenByteArray) uint64 { return shortBytes(v) ^ signBit }
	}
	return f.(func(v T) uint64)
}

// shortFloat orders as types.CompareFloat: the bits of negative numbers descend.
func shortFloat(v float64) uint64 {
	bits := math.Float64bits(v)
	switch {
	case v != v:
		return math.MaxUint64
	case bits&signBit != 0:
		return ^bits
	}
	return bits | signBit
}

// shortBytes are the first eight bytes.
func shortBytes(v []byte) uint64 {
	var head [8]byte
	copy(head[:], v)
	return binary.BigEndian.Uint64(head[:])
}
