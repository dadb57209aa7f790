package datafile

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"tablectl/internal/types"
)

// mover moves the rows of one leaf from an input to a taker.
type mover interface {
	// open starts with a row group of the input.
	open(rg rowGroup) error
	// openAt starts with a row of it.
	openAt(rg rowGroup, row int64) error
	// move moves the next n rows of the row group.
	move(n int64) error
	// end makes sure that all rows of the row group were moved.
	end() error
	// release tells that the pages of the row group are let go of.
	release()
	column() string
	// weight is how much there is to move in a row group of the input, in bytes.
	weight(rg *metadata.RowGroupMetaData) int64
	// dictionary guesses from the input whether a dictionary pays.
	dictionary(md *metadata.FileMetaData, rowGroup int) bool
}

// newMover makes the mover for a plan that has a source, a column of values T; it
// puts them into the taker of the same leaf.
func newMover[T parquet.ColumnTypes](p plan, descr *schema.Column, dst taker) (mover, error) {
	src := source[T]{plan: p, leafReader: newLeafReader[T](p.source, descr.MaxDefinitionLevel(), descr.MaxRepetitionLevel())}
	switch {
	case p.donor:
		return &donorMover[T]{source: src, dst: dst}, nil
	case p.cast == nil:
		typed, ok := dst.(typedTaker[T])
		if !ok {
			return nil, fmt.Errorf("leaf %s: %T cannot take %s", p.leaf.name, dst, descr.PhysicalType())
		}
		m := &directMover[T]{source: src, dst: typed}
		m.same = p.levels.identity()
		return m, nil
	}
	decode, err := decoder[T](p.typ, descr)
	if err != nil {
		return nil, err
	}
	return &castMover[T]{source: src, decode: decode, dst: dst}, nil
}

// source is the reading half of a mover.
type source[T parquet.ColumnTypes] struct {
	plan plan
	*leafReader[T]
	mapped []int16
}

func (s *source[T]) column() string { return s.plan.leaf.name }

func (s *source[T]) weight(rg *metadata.RowGroupMetaData) int64 {
	chunk, err := rg.ColumnChunk(s.plan.source)
	if err != nil {
		return 0
	}
	return chunk.TotalCompressedSize()
}

// translate maps definition levels to those of the target. A leaf that has none
// is present everywhere.
func (s *source[T]) translate(defs []int16, entries int) ([]int16, error) {
	s.mapped = slices.Grow(s.mapped[:0], entries)[:entries]
	for i := range s.mapped {
		d := s.maxDef
		if defs != nil {
			d = defs[i]
		}
		if s.mapped[i] = s.plan.levels[d]; s.mapped[i] == violation {
			return nil, errNull
		}
	}
	return s.mapped, nil
}

var errNull = fmt.Errorf("holds a null, or lacks the column, but the column is NOT NULL")

func (s *source[T]) dictionary(md *metadata.FileMetaData, rowGroup int) bool {
	return dictionaryOf(s.plan, md, rowGroup)
}

// dictionaryOf is what the input's writer found out: it kept the dictionary for
// all pages of the column, or gave it up.
func dictionaryOf(p plan, md *metadata.FileMetaData, rowGroup int) bool {
	if p.source < 0 {
		return !p.fixed.Null
	}
	chunk, err := md.RowGroup(rowGroup).ColumnChunk(p.source)
	if err != nil || p.donor {
		return false
	}
	if stats := chunk.EncodingStats(); len(stats) > 0 {
		return !slices.ContainsFunc(stats, func(e metadata.PageEncodingStats) bool {
			return e.PageType != file.PageTypeDictionaryPage && e.Encoding != parquet.Encodings.RLEDict && e.Encoding != parquet.Encodings.PlainDict
		})
	}
	return chunk.HasDictionaryPage()
}

// directMover passes values through as they are.
type directMover[T parquet.ColumnTypes] struct {
	source[T]
	dst  typedTaker[T]
	same bool // levels need no translation
}

func (m *directMover[T]) move(n int64) error {
	return m.rows(n, func(vals []T, defs, reps []int16) error {
		if !m.same || defs == nil && m.dst.maxDefinition() > 0 {
			entries := len(vals)
			if defs != nil {
				entries = len(defs)
			}
			var err error
			if defs, err = m.translate(defs, entries); err != nil {
				return err
			}
		}
		if m.dst.maxDefinition() == 0 {
			defs = nil
		}
		return m.dst.write(vals, defs, reps)
	})
}

// castMover converts values one by one.
type castMover[T parquet.ColumnTypes] struct {
	source[T]
	decode func(T) (types.Value, error)
	dst    taker
	cells  []types.Value
}

func (m *castMover[T]) move(n int64) error {
	return m.rows(n, func(vals []T, defs, reps []int16) error {
		entries := len(vals)
		if defs != nil {
			entries = len(defs)
		}
		mapped, err := m.translate(defs, entries)
		if err != nil {
			return err
		}
		m.cells = m.cells[:0]
		full, next := m.dst.maxDefinition(), 0
		for i, d := range mapped {
			if d != full || defs != nil && defs[i] != m.maxDef {
				continue
			}
			v, err := m.decode(vals[next])
			if err == nil {
				v, err = m.plan.cast(v)
			}
			if err != nil {
				return err
			}
			next++
			if v.Null {
				// The cast has no result: the value is null, as readers see it.
				if !m.dst.nullable() {
					return errNull
				}
				mapped[i] = full - 1
				continue
			}
			m.cells = append(m.cells, v)
		}
		return m.dst.cells(m.cells, mapped, reps)
	})
}

// donorMover writes nulls where a group has a member that the file lacks; another
// leaf of the group tells where the group is.
type donorMover[T parquet.ColumnTypes] struct {
	source[T]
	dst        taker
	defs, reps []int16
}

func (m *donorMover[T]) move(n int64) error {
	return m.rows(n, func(vals []T, defs, reps []int16) error {
		entries := len(vals)
		if defs != nil {
			entries = len(defs)
		}
		m.defs, m.reps = m.defs[:0], m.reps[:0]
		for i := range entries {
			rep, def := int16(0), m.maxDef
			if reps != nil {
				rep = reps[i]
			}
			if defs != nil {
				def = defs[i]
			}
			if rep > m.plan.rep {
				continue // a further element inside of the group
			}
			// Deeper than the group, the donor's own levels do not matter.
			to := m.plan.levels[min(def, int16(len(m.plan.levels)-1))]
			if to == violation {
				return errNull
			}
			m.defs, m.reps = append(m.defs, to), append(m.reps, rep)
		}
		return m.dst.cells(nil, m.defs, m.reps)
	})
}

// fixedMover writes one value, or null, in every row for a column that the file
// lacks.
type fixedMover struct {
	plan     plan
	required bool // the column
	dst      taker
	vals     []types.Value
	defs     []int16
	reps     []int16
}

func (m *fixedMover) open(rowGroup) error                     { return nil }
func (m *fixedMover) openAt(rowGroup, int64) error            { return nil }
func (m *fixedMover) end() error                              { return nil }
func (m *fixedMover) release()                                {}
func (m *fixedMover) column() string                          { return m.plan.leaf.name }
func (m *fixedMover) weight(*metadata.RowGroupMetaData) int64 { return 0 }
func (m *fixedMover) dictionary(*metadata.FileMetaData, int) bool {
	return dictionaryOf(m.plan, nil, 0)
}

func (m *fixedMover) move(n int64) error {
	if m.required && m.plan.fixed.Null {
		return errNull
	}
	if m.defs == nil {
		k := min(n, readBatch)
		m.defs, m.reps = make([]int16, k), make([]int16, k)
		if !m.plan.fixed.Null {
			m.vals = slices.Repeat([]types.Value{m.plan.fixed}, int(k))
			for i := range m.defs {
				m.defs[i] = m.dst.maxDefinition()
			}
		}
	}
	for n > 0 {
		k := min(n, int64(len(m.defs)))
		if err := m.dst.cells(m.vals[:min(k, int64(len(m.vals)))], m.defs[:k], m.reps[:k]); err != nil {
			return err
		}
		n -= k
	}
	return nil
}
