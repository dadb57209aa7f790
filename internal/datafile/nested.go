package datafile

import (
	"errors"
	"fmt"

	"tablectl/internal/merge"
	"tablectl/internal/types"
)

// leafRow is what one row has in one leaf. A value belongs to each entry with the
// highest definition level.
type leafRow struct {
	vals       []types.Value
	defs, reps []int16
}

// gatheredLeaf is a leaf whose rows are gathered by what merges its column.
type gatheredLeaf interface {
	mergedLeaf
	copyRef(r rowRef, n int) error
	row(r rowRef) (leafRow, error)
	put(row leafRow) error
	flush() error
}

// nestedMerge writes a column of lists or maps whose values are computed: all of its
// leaves together, as a value is spread over them.
type nestedMerge struct {
	leaves   []gatheredLeaf
	shape    shape
	function merge.Function
}

func newNestedMerge(name string, t types.Type, leaves []gatheredLeaf, f merge.Function) (*nestedMerge, error) {
	if t.Kind != types.Array && t.Kind != types.Map && t.Kind != types.Multiset {
		return nil, fmt.Errorf("column %s: values of type %s cannot be computed", name, t)
	}
	m := &nestedMerge{leaves: leaves, function: f}
	count := 0
	m.shape = newShape(t, 0, 0, &count)
	if count != len(leaves) {
		return nil, fmt.Errorf("column %s: %d leaves, want %d", name, len(leaves), count)
	}
	return m, nil
}

func (m *nestedMerge) column() string { return m.leaves[0].column() }

func (m *nestedMerge) park() {
	for _, l := range m.leaves {
		l.park()
	}
}

func (m *nestedMerge) drain() error {
	for _, l := range m.leaves {
		if err := l.drain(); err != nil {
			return err
		}
	}
	return nil
}

func (m *nestedMerge) write(s *selection) error {
	err := s.each(func(f *fold) error { return m.fold(f) }, func(r rowRef, n int) error {
		for _, l := range m.leaves {
			if err := l.copyRef(r, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range m.leaves {
		if err := l.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (m *nestedMerge) fold(f *fold) error {
	v, err := m.function.Fold(f.steps, func(version int) (types.Value, error) { return m.value(f.versions[version]) })
	if err != nil {
		return err
	}
	rows := make([]leafRow, len(m.leaves))
	if err := m.shape.shred(v, 0, rows); err != nil {
		return err
	}
	for i, l := range m.leaves {
		if err := l.put(rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// value is the value of a row of a run.
func (m *nestedMerge) value(r rowRef) (types.Value, error) {
	a := assembler{rows: make([]leafRow, len(m.leaves)), entry: make([]int, len(m.leaves)), val: make([]int, len(m.leaves))}
	for i, l := range m.leaves {
		var err error
		if a.rows[i], err = l.row(r); err != nil {
			return types.Value{}, err
		}
	}
	v, err := a.value(&m.shape)
	if err != nil {
		return v, err
	}
	for i, row := range a.rows {
		if a.entry[i] != len(row.defs) {
			return v, errUneven
		}
	}
	return v, nil
}

// errUneven is about leaves that do not tell of the same value.
var errUneven = errors.New("the leaves of a nested column do not fit together")

// shape is where a value is in the leaves of its column (reference: the Parquet
// documentation on nested encoding).
type shape struct {
	typ    types.Type
	def    int16 // the definition level from which on it is there
	rep    int16 // the repetition level of further elements or entries
	first  int   // leaf
	leaves int
	parts  []shape // element; key and value; members
}

// newShape is the shape of a value in a parent of these levels. It counts leaves.
func newShape(t types.Type, def, rep int16, leaf *int) shape {
	s := shape{typ: t, def: def, first: *leaf}
	if !t.NotNull {
		s.def++
	}
	switch t.Kind {
	case types.Array:
		s.rep = rep + 1
		s.parts = []shape{newShape(*t.Element, s.def+1, s.rep, leaf)}
	case types.Map, types.Multiset:
		s.rep = rep + 1
		key, value := t.EntryTypes()
		s.parts = []shape{newShape(key, s.def+1, s.rep, leaf), newShape(value, s.def+1, s.rep, leaf)}
	case types.Row, types.Variant:
		fields := t.Fields
		if t.Kind == types.Variant {
			fields = variantFields
		}
		for _, f := range fields {
			s.parts = append(s.parts, newShape(f.Type, s.def, rep, leaf))
		}
	default:
		*leaf++
	}
	s.leaves = *leaf - s.first
	return s
}

// assembler makes one value from the leaves of its column.
type assembler struct {
	rows  []leafRow
	entry []int // by leaf, the next one
	val   []int
}

func (a *assembler) value(s *shape) (types.Value, error) {
	if s.leaves == 0 { // a row without members
		return types.Value{}, nil
	}
	l := s.first
	if a.entry[l] == len(a.rows[l].defs) {
		return types.Value{}, errUneven
	}
	def := a.rows[l].defs[a.entry[l]]
	if def < s.def {
		return types.NullValue, a.skip(s)
	}
	switch {
	case len(s.parts) == 0:
		if a.val[l] == len(a.rows[l].vals) {
			return types.Value{}, errUneven
		}
		v := a.rows[l].vals[a.val[l]]
		a.entry[l]++
		a.val[l]++
		return v, nil
	case s.rep == 0:
		return a.parts(s, types.Value{})
	case def == s.def:
		return types.Value{}, a.skip(s)
	}
	v, err := a.parts(s, types.Value{})
	for err == nil && a.entry[l] < len(a.rows[l].reps) && a.rows[l].reps[a.entry[l]] == s.rep {
		v, err = a.parts(s, v)
	}
	return v, err
}

// parts appends one element, one entry, or all members.
func (a *assembler) parts(s *shape, v types.Value) (types.Value, error) {
	for i := range s.parts {
		item, err := a.value(&s.parts[i])
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
	return v, nil
}

// skip passes over the entry that stands for nothing in every leaf.
func (a *assembler) skip(s *shape) error {
	for l := s.first; l < s.first+s.leaves; l++ {
		if a.entry[l] == len(a.rows[l].defs) || a.rows[l].defs[a.entry[l]] > s.def {
			return errUneven
		}
		a.entry[l]++
	}
	return nil
}

// shred appends the entries of a value whose first one has that repetition level.
func (s *shape) shred(v types.Value, rep int16, rows []leafRow) error {
	nothing := func(def int16) {
		for l := s.first; l < s.first+s.leaves; l++ {
			rows[l].defs, rows[l].reps = append(rows[l].defs, def), append(rows[l].reps, rep)
		}
	}
	switch {
	case v.Null && s.typ.NotNull:
		return errNull
	case v.Null:
		nothing(s.def - 1)
		return nil
	case len(s.parts) == 0:
		nothing(s.def)
		rows[s.first].vals = append(rows[s.first].vals, v)
		return nil
	case s.rep > 0 && len(v.Items) == 0:
		nothing(s.def)
		return nil
	}
	for i, item := range v.Items {
		if s.rep > 0 && i == len(s.parts) {
			rep = s.rep
		}
		if err := s.parts[i%len(s.parts)].shred(item, rep, rows); err != nil {
			return err
		}
	}
	return nil
}
