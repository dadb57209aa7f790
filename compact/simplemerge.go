package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"tablectl/internal/merge"
	"tablectl/internal/types"
	"tablectl/snapshot"
)

// simpleMerge merges sorted runs row by row, in the plainest way, to be compared with
// what the fast way has written. What becomes of the versions of a key is said by the
// same merge.Engine.
type simpleMerge struct {
	*mergeRewriter
	dropDelete bool
	runs       []mergeRun
	versions   []keyVersion
}

// mergeRun is a run and its next row.
type mergeRun struct {
	rows *runRows
	ages []int // of its files
	head []types.Value
	done bool
}

// keyVersion is a record of the key in hand.
type keyVersion struct {
	row []types.Value
	age int
}

// openMerge opens the runs of a step. As in the merge that is checked, the runs of
// one section and those of the next become longer runs.
func (v *verifier) openMerge(ctx context.Context, task Task, step MergeStep) (rowSource, error) {
	m := &simpleMerge{mergeRewriter: v.merge, dropDelete: task.Merge.DropDelete}
	ages := filesByAge(step.Sections)
	for _, s := range step.Sections {
		for i, run := range s {
			if i == len(m.runs) {
				m.runs = append(m.runs, mergeRun{rows: &runRows{}})
			}
			r := &m.runs[i]
			for _, e := range run.Files {
				r.rows.files = append(r.rows.files, v.opener(ctx, task, e))
				r.ages = append(r.ages, ages[e])
			}
		}
	}
	for i := range m.runs {
		if err := m.runs[i].advance(); err != nil {
			return nil, errors.Join(err, m.close())
		}
	}
	return m, nil
}

func (v *verifier) opener(ctx context.Context, task Task, e *snapshot.ManifestEntry) func() (rowSource, error) {
	return func() (rowSource, error) { return v.input(ctx, task, e) }
}

func (r *mergeRun) advance() error {
	row, err := r.rows.next()
	if errors.Is(err, io.EOF) {
		r.done = true
		return nil
	}
	r.head = slices.Clone(row)
	return err
}

func (m *simpleMerge) close() error {
	var errs []error
	for _, r := range m.runs {
		errs = append(errs, r.rows.close())
	}
	return errors.Join(errs...)
}

// compareKeys orders rows by their keys.
func (r *mergeRewriter) compareKeys(a, b []types.Value) int {
	for i, at := range r.merge.Keys {
		if c := types.Compare(r.keys[i].Type.Kind, a[at], b[at]); c != 0 {
			return c
		}
	}
	return 0
}

// next returns what becomes of the next key of which something is left.
func (m *simpleMerge) next() ([]types.Value, error) {
	for {
		if err := m.gather(); err != nil {
			return nil, err
		}
		if m.versions == nil {
			return nil, io.EOF
		}
		row, err := m.decide()
		if row != nil || err != nil {
			return row, err
		}
	}
}

// gather takes the versions of the least key from all runs; nil at the end.
func (m *simpleMerge) gather() error {
	m.versions = nil
	var least []types.Value
	for _, r := range m.runs {
		if !r.done && (least == nil || m.compareKeys(r.head, least) < 0) {
			least = r.head
		}
	}
	if least == nil {
		return nil
	}
	m.versions = []keyVersion{}
	for i := range m.runs {
		r := &m.runs[i]
		if r.done || m.compareKeys(r.head, least) != 0 {
			continue
		}
		m.versions = append(m.versions, keyVersion{r.head, r.ages[r.rows.at]})
		if err := r.advance(); err != nil {
			return err
		}
	}
	return nil
}

func (m *simpleMerge) kind(row []types.Value) merge.Kind { return merge.Kind(row[m.merge.Kind].Int) }

// decide merges the versions of a key; nil if nothing is left.
func (m *simpleMerge) decide() ([]types.Value, error) {
	if e := m.merge.Expired; e != nil && (m.dropDelete || !m.merge.Engine.Chooses()) {
		m.versions = slices.DeleteFunc(m.versions, func(v keyVersion) bool {
			at := v.row[m.merge.ExpireColumn]
			return !at.Null && e(at)
		})
	}
	slices.SortFunc(m.versions, m.order)
	switch len(m.versions) {
	case 0:
		return nil, nil
	case 1:
		if row := m.versions[0].row; !m.dropDelete || !m.kind(row).Retracts() {
			return row, nil
		}
		return nil, nil
	}
	known := make([]merge.Version, len(m.versions))
	for i, v := range m.versions {
		known[i] = merge.Version{Sequence: v.row[m.merge.Sequence].Int, Kind: m.kind(v.row)}
	}
	var r merge.Result
	if err := m.merge.Engine.Merge(known, m, &r); err != nil {
		return nil, err
	}
	if r.Drop || m.dropDelete && r.Kind.Retracts() {
		return nil, nil
	}
	return m.fold(&r)
}

// fold makes the row that a key becomes.
func (m *simpleMerge) fold(r *merge.Result) ([]types.Value, error) {
	row := slices.Clone(m.versions[0].row) // for the columns of keys
	row[m.merge.Sequence] = types.Value{Int: r.Sequence}
	row[m.merge.Kind] = types.Value{Int: int64(r.Kind)}
	for i, c := range m.merge.Engine.Columns {
		at, steps := m.merge.Values+i, r.Steps[c.Class]
		if len(steps) == 1 && steps[0].Op == merge.Set {
			row[at] = m.versions[steps[0].Version].row[at]
			continue
		}
		var err error
		if c.Function.Chooses() {
			var chosen int
			chosen, err = c.Function.Choose(steps, cells{m, at})
			if row[at] = types.NullValue; chosen != merge.NoVersion {
				row[at] = m.versions[chosen].row[at]
			}
		} else {
			row[at], err = c.Function.Fold(steps, func(v int) (types.Value, error) { return m.versions[v].row[at], nil })
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", m.spec.Fields[at].Name, err)
		}
	}
	return row, nil
}

// order says which of two versions is older: by the fields that the user orders by
// (nulls first in both directions), the sequence number, what retracts before what
// adds, and the age of the files.
func (m *simpleMerge) order(a, b keyVersion) int {
	for _, at := range m.merge.UserSequence {
		x, y := a.row[at], b.row[at]
		c := types.Compare(m.spec.Fields[at].Type.Kind, x, y)
		if m.merge.Descending && x.Null == y.Null {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	retracts := func(v keyVersion) int {
		if m.kind(v.row).Retracts() {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.row[m.merge.Sequence].Int, b.row[m.merge.Sequence].Int),
		cmp.Compare(retracts(a), retracts(b)),
		cmp.Compare(a.age, b.age),
	)
}

// Empty and Compare let the engine look at sequence groups.

func (m *simpleMerge) Empty(group, version int) bool {
	for _, f := range m.merge.Engine.Groups[group] {
		if !m.versions[version].row[m.merge.Values+f].Null {
			return false
		}
	}
	return true
}

func (m *simpleMerge) Compare(group, a, b int) int {
	for _, f := range m.merge.Engine.Groups[group] {
		if c := (cells{m, m.merge.Values + f}).Compare(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// cells are the values of a column, by version.
type cells struct {
	*simpleMerge
	at int
}

func (c cells) Null(version int) bool { return c.versions[version].row[c.at].Null }

func (c cells) Compare(a, b int) int {
	return types.Compare(c.spec.Fields[c.at].Type.Kind, c.versions[a].row[c.at], c.versions[b].row[c.at])
}
