package datafile

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tablectl/internal/merge"
)

// batch is rows of the output that are decided and not written yet.
type batch struct {
	sequences []int64
	kinds     []int32
	classes   []selection
}

func (b *batch) rows() int { return len(b.sequences) }

// picker merges runs by the columns that decide: keys, sequence number, kind, and
// those that some engines ask for.
type picker struct {
	spec MergeSpec
	runs []*run

	columns  []sortColumn // all of those below
	keys     []sortColumn
	user     []sortColumn
	groups   [][]sortColumn
	expire   sortColumn
	sequence *typedSort[int64]
	kind     *typedSort[int32]

	tree  *loserTree
	heads []head // by run

	counts   counts
	found    []version // of the key in hand
	versions []merge.Version
	result   merge.Result
}

// counts are what a merge has gone through.
type counts struct {
	records int64
	keys    int64
	gone    int64 // keys of which nothing is left
}

// head is the row of a run that comes next.
type head struct {
	row    int64
	prefix uint64
	done   bool
	limit  int64 // the first row that some column does not see yet
}

// version is a row with the key in hand.
type version struct {
	merge.Version
	run int
	row int64
}

func newPicker(spec MergeSpec, t *target, runs []*run) (*picker, error) {
	p := &picker{spec: spec, runs: runs, heads: make([]head, len(runs))}
	column := func(i int) (sortColumn, error) {
		at := t.leafOf(i)
		l := t.leaves[at]
		if !l.top {
			return nil, fmt.Errorf("column %s of type %s has no order", t.fields[i].Name, t.fields[i].Type)
		}
		kind, err := physicalOf(t.schema.Column(at))
		if err != nil {
			return nil, err
		}
		c, err := kind.sortColumn(l, t.schema.Column(at), at, runs)
		p.columns = append(p.columns, c)
		return c, err
	}
	columns := func(indexes []int) ([]sortColumn, error) {
		all := make([]sortColumn, len(indexes))
		for i, at := range indexes {
			var err error
			if all[i], err = column(at); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	var err error
	if p.keys, err = columns(spec.Keys); err != nil {
		return nil, err
	}
	if p.user, err = columns(spec.UserSequence); err != nil {
		return nil, err
	}
	own, err := columns([]int{spec.Sequence, spec.Kind})
	if err != nil {
		return nil, err
	}
	p.sequence, p.kind = own[0].(*typedSort[int64]), own[1].(*typedSort[int32])
	for _, g := range spec.Engine.Groups {
		indexes := make([]int, len(g))
		for i, f := range g {
			indexes[i] = spec.Values + f
		}
		group, err := columns(indexes)
		if err != nil {
			return nil, err
		}
		p.groups = append(p.groups, group)
	}
	if spec.Expired != nil {
		p.expire, err = column(spec.ExpireColumn)
	}
	return p, err
}

// drain looks at what is left of every column.
func (p *picker) drain() error {
	for _, c := range p.columns {
		if err := c.drain(); err != nil {
			return err
		}
	}
	return nil
}

// start brings every run to its first row.
func (p *picker) start() error {
	for i := range p.heads {
		p.heads[i].row = -1
		if err := p.advance(i); err != nil {
			return err
		}
	}
	p.tree = newLoserTree(len(p.runs), func(a, b int) bool {
		x, y := &p.heads[a], &p.heads[b]
		switch {
		case x.done || y.done:
			return !x.done
		case x.prefix != y.prefix:
			return x.prefix < y.prefix
		}
		return p.compareKeys(a, x.row, b, y.row) < 0
	})
	return nil
}

func (p *picker) compareKeys(run int, row int64, run2 int, row2 int64) int {
	return compareBy(p.keys, run, row, run2, row2)
}

func compareBy(columns []sortColumn, run int, row int64, run2 int, row2 int64) int {
	for _, c := range columns {
		if d := c.compare(run, row, run2, row2); d != 0 {
			return d
		}
	}
	return 0
}

// advance goes to the next row of a run.
func (p *picker) advance(run int) error {
	h := &p.heads[run]
	h.row++
	if h.row >= h.limit {
		if err := p.seek(run, h); err != nil || h.done {
			return err
		}
	}
	before := h.prefix
	h.prefix = p.keys[0].prefix(run, h.row)
	if h.row > 0 && before >= h.prefix && (before > h.prefix || p.compareKeys(run, h.row-1, run, h.row) >= 0) {
		in, row := p.fileOf(run, h.row)
		return &fileError{in.Name, fmt.Errorf("is not sorted by key: row %d is not above the one before", row)}
	}
	return nil
}

// seek brings the row of a head into sight, or marks the end of its run.
func (p *picker) seek(run int, h *head) error {
	h.limit = math.MaxInt64
	for i, c := range p.columns {
		ok, err := c.seek(run, h.row)
		if err != nil {
			return err
		}
		if !ok {
			h.done = true
			if i > 0 {
				return missingRow(h.row)
			}
			return nil
		}
		h.limit = min(h.limit, c.end(run))
	}
	return nil
}

// fileOf finds the file of a row, and the row's number in it.
func (p *picker) fileOf(run int, row int64) (Input, int64) {
	inputs := p.runs[run].inputs
	for _, in := range inputs[:len(inputs)-1] {
		if row < in.Rows {
			return in, row
		}
		row -= in.Rows
	}
	return inputs[len(inputs)-1], row
}

// pick decides about the next rows, at most n. There are none at the end.
func (p *picker) pick(n int) (*batch, error) {
	if p.tree == nil {
		if err := p.start(); err != nil {
			return nil, err
		}
	}
	b := &batch{classes: make([]selection, p.spec.Engine.Classes())}
	for b.rows() < n && !p.heads[p.tree.winner()].done {
		if err := p.gather(); err != nil {
			return nil, err
		}
		if err := p.decide(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// gather takes all versions of the next key that count, the oldest first.
func (p *picker) gather() error {
	p.found = p.found[:0]
	p.counts.keys++
	first := p.tree.winner()
	row, prefix := p.heads[first].row, p.heads[first].prefix
	for {
		run := p.tree.winner()
		h := &p.heads[run]
		if h.done || h.prefix != prefix || (run != first || h.row != row) && p.compareKeys(run, h.row, first, row) != 0 {
			break
		}
		v := version{run: run, row: h.row, Version: merge.Version{
			Sequence: p.sequence.at(run, h.row), Kind: merge.Kind(p.kind.at(run, h.row)),
		}}
		if !v.Kind.Valid() {
			in, row := p.fileOf(run, h.row)
			return &fileError{in.Name, fmt.Errorf("row %d is of the kind %d, which there is not", row, v.Kind)}
		}
		expired, err := p.expired(run, h.row)
		if err != nil {
			return err
		}
		p.counts.records++
		if !expired {
			p.found = append(p.found, v)
		}
		if err := p.advance(run); err != nil {
			return err
		}
		p.tree.changed()
	}
	if len(p.found) > 1 {
		slices.SortFunc(p.found, p.age)
	}
	return nil
}

// expired reports whether a version is to be left out. One that replaces others is
// kept as long as there may be older ones elsewhere, which would come back.
func (p *picker) expired(run int, row int64) (bool, error) {
	if p.expire == nil || !p.spec.DropDelete && p.spec.Engine.Chooses() {
		return false, nil
	}
	v, err := p.expire.value(run, row)
	if err != nil || v.Null {
		return false, err
	}
	return p.spec.Expired(v), nil
}

// age orders versions of a key, the oldest first (reference: SortMergeReader and
// its comparators). What the reference leaves open is decided by the age of the
// files.
func (p *picker) age(a, b version) int {
	for _, u := range p.user {
		c := u.compare(a.run, a.row, b.run, b.row)
		if p.spec.Descending && u.null(a.run, a.row) == u.null(b.run, b.row) {
			c = -c // nulls come first in both orders
		}
		if c != 0 {
			return c
		}
	}
	if c := cmp.Compare(a.Sequence, b.Sequence); c != 0 {
		return c
	}
	if x, y := a.Kind.Retracts(), b.Kind.Retracts(); x != y {
		return btoi(y) - btoi(x)
	}
	x, _ := p.fileOf(a.run, a.row)
	y, _ := p.fileOf(b.run, b.row)
	return cmp.Compare(x.Age, y.Age)
}

// decide merges the versions in hand and appends what becomes of them.
func (p *picker) decide(b *batch) error {
	switch len(p.found) {
	case 0:
		p.counts.gone++
		return nil
	case 1:
		v := p.found[0]
		if p.spec.DropDelete && v.Kind.Retracts() {
			p.counts.gone++
			return nil
		}
		b.add(v.Sequence, v.Kind)
		for c := range b.classes {
			b.classes[c].refs = append(b.classes[c].refs, newRowRef(v.run, v.row))
		}
		return nil
	}
	p.versions = p.versions[:0]
	for _, v := range p.found {
		p.versions = append(p.versions, v.Version)
	}
	if err := p.spec.Engine.Merge(p.versions, p, &p.result); err != nil {
		in, row := p.fileOf(p.found[0].run, p.found[0].row)
		return &fileError{in.Name, fmt.Errorf("row %d: %w", row, err)}
	}
	if p.result.Drop || p.spec.DropDelete && p.result.Kind.Retracts() {
		p.counts.gone++
		return nil
	}
	b.add(p.result.Sequence, p.result.Kind)
	var refs []rowRef // shared by the classes
	for c, steps := range p.result.Steps {
		s := &b.classes[c]
		if len(steps) == 1 && steps[0].Op == merge.Set {
			v := p.found[steps[0].Version]
			s.refs = append(s.refs, newRowRef(v.run, v.row))
			continue
		}
		if refs == nil {
			refs = make([]rowRef, len(p.found))
			for i, v := range p.found {
				refs[i] = newRowRef(v.run, v.row)
			}
		}
		s.refs = append(s.refs, foldBit|rowRef(len(s.folds)))
		s.folds = append(s.folds, fold{slices.Clone(steps), refs})
	}
	return nil
}

func (b *batch) add(sequence int64, kind merge.Kind) {
	b.sequences, b.kinds = append(b.sequences, sequence), append(b.kinds, int32(kind))
}

// Empty and Compare let the engine look at sequence groups.

func (p *picker) Empty(group, i int) bool {
	v := p.found[i]
	return !slices.ContainsFunc(p.groups[group], func(c sortColumn) bool { return !c.null(v.run, v.row) })
}

func (p *picker) Compare(group, i, j int) int {
	a, b := p.found[i], p.found[j]
	return compareBy(p.groups[group], a.run, a.row, b.run, b.row)
}
