package datafile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"tablectl/internal/merge"
	"tablectl/internal/types"
)

// rowRef names a row of a run: the run in the upper bits, the row, counted over
// the run, in the lower ones. So consecutive rows of a run have consecutive
// numbers. With foldBit it is the index of a fold instead.
type rowRef uint64

const (
	rowBits = 40
	foldBit = rowRef(1) << 63
	maxRuns = 1 << (63 - rowBits)
)

func newRowRef(run int, row int64) rowRef { return rowRef(run)<<rowBits | rowRef(row) }

func (r rowRef) run() int { return int(r >> rowBits) }

func (r rowRef) row() int64 { return int64(r & (1<<rowBits - 1)) }

// fold is a row whose columns come from several versions.
type fold struct {
	steps    []merge.Step
	versions []rowRef
}

// selection says where the rows of the output come from, for the columns of one
// class.
type selection struct {
	refs  []rowRef // by row of the output
	folds []fold
}

// mergedLeaf writes one leaf of a merge.
type mergedLeaf interface {
	column() string
	write(s *selection) error
	// drain looks at what is left of every run.
	drain() error
	// park lets go of the readers of the runs.
	park()
}

// flushEntries is how many entries are gathered before they are written.
const flushEntries = 8192

type typedMerge[T parquet.ColumnTypes] struct {
	cursors  []*cursor[T] // by run
	function merge.Function
	order    func(a, b T) int
	dst      typedTaker[T]
	out      entries[T]
	current  *fold // whose cells are looked at
}

func newTypedMerge[T parquet.ColumnTypes](l leaf, column *schema.Column, index int, runs []*run, f merge.Function, dst sink) (gatheredLeaf, error) {
	e, err := newEncoding[T](l, column)
	if err != nil {
		return nil, err
	}
	typed, ok := dst.(typedTaker[T])
	if !ok {
		return nil, fmt.Errorf("leaf %s: %T cannot take %s", l.name, dst, column.PhysicalType())
	}
	if !f.Chooses() && !l.top {
		return nil, fmt.Errorf("leaf %s: a computed value must be scalar", l.name)
	}
	m := &typedMerge[T]{function: f, dst: typed}
	if l.top {
		m.order = ordering[T](l.typ)
	}
	for _, r := range runs {
		m.cursors = append(m.cursors, newCursor(r, index, e, false))
	}
	return m, nil
}

func (m *typedMerge[T]) column() string { return m.cursors[0].win.leaf.name }

func (m *typedMerge[T]) park() {
	for _, c := range m.cursors {
		c.park()
	}
}

func (m *typedMerge[T]) drain() error {
	for _, c := range m.cursors {
		if err := c.drain(); err != nil {
			return err
		}
	}
	return nil
}

func (m *typedMerge[T]) write(s *selection) error {
	if err := s.each(m.fold, m.copyRef); err != nil {
		return err
	}
	return m.flush()
}

// each calls folded for every fold, and copied for every piece of consecutive rows
// of a run.
func (s *selection) each(folded func(f *fold) error, copied func(r rowRef, n int) error) error {
	for i := 0; i < len(s.refs); {
		r := s.refs[i]
		if r&foldBit != 0 {
			if err := folded(&s.folds[r&^foldBit]); err != nil {
				return err
			}
			i++
			continue
		}
		n := 1
		for i+n < len(s.refs) && s.refs[i+n] == r+rowRef(n) {
			n++
		}
		if err := copied(r, n); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// flushFull writes what was gathered once it is worth it.
func (m *typedMerge[T]) flushFull() error {
	if max(len(m.out.vals), len(m.out.defs)) < flushEntries {
		return nil
	}
	return m.flush()
}

func (m *typedMerge[T]) flush() error {
	if len(m.out.vals) == 0 && len(m.out.defs) == 0 {
		return nil
	}
	w := &m.cursors[0].win
	var defs, reps []int16
	if w.maxDef > 0 {
		defs = m.out.defs
	}
	if w.maxRep > 0 {
		reps = m.out.reps
	}
	err := m.dst.write(m.out.vals, defs, reps)
	m.out.clear()
	return err
}

// seek brings a row into the window of its run. What was gathered may point into
// the window, so it goes first.
func (m *typedMerge[T]) seek(c *cursor[T], row int64) error {
	if c.win.has(row) {
		return nil
	}
	if err := m.flush(); err != nil {
		return err
	}
	ok, err := c.seek(row)
	if err == nil && !ok {
		err = missingRow(row)
	}
	return err
}

func missingRow(row int64) error { return fmt.Errorf("row %d of a sorted run is not there", row) }

// copyRef gathers n rows from one on.
func (m *typedMerge[T]) copyRef(r rowRef, n int) error {
	c, row := m.cursors[r.run()], r.row()
	for n > 0 {
		if err := m.seek(c, row); err != nil {
			return err
		}
		k := int(min(int64(n), c.win.end()-row))
		c.win.copyTo(&m.out, row, k)
		row, n = row+int64(k), n-k
	}
	return m.flushFull()
}

// row is a row of a run. It is valid until the window of the run moves.
func (m *typedMerge[T]) row(r rowRef) (leafRow, error) {
	c := m.cursors[r.run()]
	if err := m.seek(c, r.row()); err != nil {
		return leafRow{}, err
	}
	var found entries[T]
	c.win.copyTo(&found, r.row(), 1)
	row := leafRow{defs: found.defs, reps: found.reps}
	for _, v := range found.vals {
		decoded, err := c.win.decode(v)
		if err != nil {
			return row, err
		}
		row.vals = append(row.vals, decoded)
	}
	return row, nil
}

// put gathers a row that was computed.
func (m *typedMerge[T]) put(row leafRow) error {
	for _, v := range row.vals {
		stored, err := m.cursors[0].win.encode(v)
		if err != nil {
			return err
		}
		m.out.vals = append(m.out.vals, stored)
	}
	m.out.defs, m.out.reps = append(m.out.defs, row.defs...), append(m.out.reps, row.reps...)
	return m.flushFull()
}

func (m *typedMerge[T]) fold(f *fold) error {
	if err := m.folded(f); err != nil {
		return err
	}
	return m.flushFull()
}

func (m *typedMerge[T]) folded(f *fold) error {
	for _, s := range f.steps {
		r := f.versions[s.Version]
		if err := m.seek(m.cursors[r.run()], r.row()); err != nil {
			return err
		}
	}
	m.current = f
	if m.function.Chooses() {
		version, err := m.function.Choose(f.steps, m)
		if err != nil {
			return err
		}
		if version == merge.NoVersion {
			return m.null()
		}
		r := f.versions[version]
		m.cursors[r.run()].win.copyTo(&m.out, r.row(), 1)
		return nil
	}
	v, err := m.function.Fold(f.steps, m.value)
	if err != nil {
		return err
	}
	if v.Null {
		return m.null()
	}
	stored, err := m.cursors[0].win.encode(v)
	if err != nil {
		return err
	}
	m.out.vals = append(m.out.vals, stored)
	if w := &m.cursors[0].win; w.maxDef > 0 {
		m.out.defs = append(m.out.defs, w.maxDef)
	}
	return nil
}

// null appends a row in which the column is null.
func (m *typedMerge[T]) null() error {
	w := &m.cursors[0].win
	if !w.optional {
		return errNull
	}
	m.out.defs = append(m.out.defs, 0)
	if w.nested {
		m.out.reps = append(m.out.reps, 0)
	}
	return nil
}

// Null and Compare let a function look at the versions of the current fold.

func (m *typedMerge[T]) Null(version int) bool {
	r := m.current.versions[version]
	return m.cursors[r.run()].win.null(r.row())
}

func (m *typedMerge[T]) Compare(a, b int) int { return m.order(m.at(a), m.at(b)) }

func (m *typedMerge[T]) at(version int) T {
	r := m.current.versions[version]
	w := &m.cursors[r.run()].win
	return w.vals[r.row()-w.first]
}

func (m *typedMerge[T]) value(version int) (types.Value, error) {
	if m.Null(version) {
		return types.NullValue, nil
	}
	return m.cursors[0].win.decode(m.at(version))
}
