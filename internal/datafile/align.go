package datafile

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"tablectl/internal/cast"
	"tablectl/internal/types"
)

// plan says how one leaf of the target gets its values from an input.
//
// Both sides are described by steps on the way from the root to the leaf: a step
// is a value that may be absent, or a repetition. For each side the definition
// level after a step tells how many of the steps an entry has passed, so levels of
// one side translate to the other even where only one of them can be null.
type plan struct {
	leaf   leaf
	source int         // leaf of the input to read, or -1: the column is not in the file
	fixed  types.Value // source -1: what the column holds in every row
	typ    types.Type  // of the source's values
	cast   cast.Func   // nil: the values are of the target's type
	donor  bool        // the leaf is missing inside a group; the source only tells where the group is
	rep    int16       // donor: repetition level of the group
	levels levelMap
}

// levelMap translates definition levels; violation marks those at which the
// target would be null though it must not.
type levelMap []int16

const violation = -1

func (m levelMap) identity() bool {
	for i, v := range m {
		if v != int16(i) {
			return false
		}
	}
	return true
}

// steps are the definition levels after each step, of both sides.
type steps struct{ target, source []int16 }

func last(levels []int16) int16 {
	if len(levels) == 0 {
		return 0
	}
	return levels[len(levels)-1]
}

// with returns the steps with one more; the arguments tell whether it adds a level.
func (s steps) with(target, source bool) steps {
	return steps{
		append(slices.Clip(s.target), last(s.target)+int16(btoi(target))),
		append(slices.Clip(s.source), last(s.source)+int16(btoi(source))),
	}
}

// levels maps every definition level of the source. missing says that the
// target has one step more, at which every entry that gets so far is null.
func (s steps) levels(missing, missingOptional bool) levelMap {
	m := make(levelMap, last(s.source)+1)
	for d := range m {
		passed := 0
		for passed < len(s.source) && s.source[passed] <= int16(d) {
			passed++
		}
		var before int16
		if passed > 0 {
			before = s.target[passed-1]
		}
		switch {
		case passed == len(s.source):
			m[d] = last(s.target)
			if missing && !missingOptional {
				m[d] = violation
			}
		case s.target[passed] == before:
			m[d] = violation
		default:
			m[d] = before
		}
	}
	return m
}

// aligner finds for every leaf of the target its source in one input.
type aligner struct {
	source *schema.Schema
	target *target
	plans  []plan
}

// align matches the columns of a file, which was written with the given fields,
// to the target by field id, at every depth (reference: SchemaEvolutionUtil,
// FormatReaderMapping). Within the file, columns are found by the name that they
// had then.
func align(t *target, in Input, source *schema.Schema) ([]plan, error) {
	fields := in.Fields
	a := &aligner{source: source, target: t}
	for i, f := range t.fields {
		l := leaf{column: i, name: f.Name, typ: f.Type, top: f.Type.Scalar()}
		var old *types.Field
		var n schema.Node
		if j := slices.IndexFunc(fields, func(o types.Field) bool { return o.ID == f.ID }); j >= 0 {
			old = &fields[j]
			n = member(source.Root(), old.Name)
		}
		if n == nil {
			// A column that a file of its own schema lacks is null too, as the
			// reference reads it, unless it is one of the partition.
			v, ok := in.Fixed[f.ID]
			if !ok {
				v = types.NullValue
			}
			a.absent(l, v)
			continue
		}
		if err := a.value(l, steps{}, 0, old.Type, n); err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
	}
	if got, want := len(a.plans), t.schema.NumColumns(); got != want {
		return nil, fmt.Errorf("aligned %d of %d leaves", got, want)
	}
	return a.plans, nil
}

// absent plans one value for all rows of a column; one that is not null is of a
// scalar type.
func (a *aligner) absent(l leaf, v types.Value) {
	for _, sub := range leavesOf(l) {
		a.plans = append(a.plans, plan{leaf: sub, source: -1, fixed: v})
	}
}

// leavesOf lists the leaves of a value in the order of the Parquet schema.
func leavesOf(l leaf) []leaf {
	part := func(name string, t types.Type) []leaf {
		return leavesOf(leaf{column: l.column, name: l.name + "." + name, typ: t})
	}
	switch t := l.typ; t.Kind {
	case types.Array:
		return part("element", *t.Element)
	case types.Map, types.Multiset:
		key, value := t.EntryTypes()
		return append(part("key", key), part("value", value)...)
	case types.Row, types.Variant:
		fields := t.Fields
		if t.Kind == types.Variant {
			fields = variantFields
		}
		var all []leaf
		for _, f := range fields {
			all = append(all, part(f.Name, f.Type)...)
		}
		return all
	}
	return []leaf{l}
}

// value aligns one value: the leaf describes the target's, the type and the node
// the source's. reps is the repetition level around it.
func (a *aligner) value(l leaf, s steps, reps int16, old types.Type, n schema.Node) error {
	s = s.with(!l.typ.NotNull, n.RepetitionType() == parquet.Repetitions.Optional)
	return a.content(l, s, reps, old, n)
}

func (a *aligner) content(l leaf, s steps, reps int16, old types.Type, n schema.Node) error {
	part := func(name string, t types.Type) leaf { return leaf{column: l.column, name: l.name + "." + name, typ: t} }
	t := l.typ
	if t.Kind != old.Kind && (!t.Scalar() || !old.Scalar()) {
		return fmt.Errorf("the type %s of an older schema cannot become %s: %w", old, t, ErrUnsupported)
	}
	switch t.Kind {
	case types.Array:
		element, own, err := listElement(n)
		if err != nil {
			return err
		}
		s = s.with(true, true)
		if !own {
			return a.content(part("element", *t.Element), s.with(!t.Element.NotNull, false), reps+1, *old.Element, element)
		}
		return a.value(part("element", *t.Element), s, reps+1, *old.Element, element)
	case types.Map, types.Multiset:
		keyNode, valueNode, err := mapEntry(n)
		if err != nil {
			return err
		}
		key, value := t.EntryTypes()
		oldKey, oldValue := old.EntryTypes()
		if !key.Same(oldKey) {
			return fmt.Errorf("map keys of the type %s cannot become %s: %w", oldKey, key, ErrUnsupported)
		}
		s = s.with(true, true)
		if err := a.value(part("key", key), s, reps+1, oldKey, keyNode); err != nil {
			return err
		}
		return a.value(part("value", value), s, reps+1, oldValue, valueNode)
	case types.Row:
		return a.row(l, s, reps, old, n)
	case types.Variant:
		if g, ok := n.(*schema.GroupNode); !ok || g.NumFields() != len(variantFields) {
			return fmt.Errorf("shredded variant: %w", ErrUnsupported)
		}
		for _, f := range variantFields {
			m := member(n, f.Name)
			if m == nil {
				return fmt.Errorf("variant without %s: %w", f.Name, ErrUnsupported)
			}
			if err := a.value(part(f.Name, f.Type), s, reps, f.Type, m); err != nil {
				return err
			}
		}
		return nil
	}
	return a.scalar(l, s, reps, old, n)
}

func (a *aligner) row(l leaf, s steps, reps int16, old types.Type, n schema.Node) error {
	common := false
	for _, f := range l.typ.Fields {
		sub := leaf{column: l.column, name: l.name + "." + f.Name, typ: f.Type}
		var m schema.Node
		j := slices.IndexFunc(old.Fields, func(o types.Field) bool { return o.ID == f.ID })
		if j >= 0 {
			if m = member(n, old.Fields[j].Name); m == nil {
				return fmt.Errorf("member %s of a row is not in the file", old.Fields[j].Name)
			}
			common = true
			if err := a.value(sub, s, reps, old.Fields[j].Type, m); err != nil {
				return err
			}
			continue
		}
		donor := firstLeaf(n)
		if donor == nil {
			return fmt.Errorf("%s is not a row", l.name)
		}
		levels := s.levels(true, !f.Type.NotNull)
		for _, missing := range leavesOf(sub) {
			a.plans = append(a.plans, plan{leaf: missing, source: a.source.ColumnIndexByNode(donor), donor: true, rep: reps, levels: levels})
		}
	}
	if !common && len(l.typ.Fields) > 0 {
		// The reference reads such a row as null instead of a row of nulls.
		return fmt.Errorf("no member of the row %s is left from the schema of the file: %w", l.name, ErrUnsupported)
	}
	return nil
}

func firstLeaf(n schema.Node) schema.Node {
	for {
		g, ok := n.(*schema.GroupNode)
		if !ok {
			return n
		}
		if g.NumFields() == 0 {
			return nil
		}
		n = g.Field(0)
	}
}

func (a *aligner) scalar(l leaf, s steps, reps int16, old types.Type, n schema.Node) error {
	if n.Type() != schema.Primitive {
		return fmt.Errorf("%s is a group in the file, but a column of type %s", l.name, old)
	}
	p := plan{leaf: l, source: a.source.ColumnIndexByNode(n), typ: old, levels: s.levels(false, false)}
	if p.source < 0 {
		return fmt.Errorf("%s has no leaf in the file", l.name)
	}
	if d := a.source.Column(p.source); d.MaxDefinitionLevel() != last(s.source) || d.MaxRepetitionLevel() != reps {
		return fmt.Errorf("%s is nested in a way that its type %s does not tell", l.name, old)
	}
	if !old.Same(l.typ) {
		f, err := cast.Resolve(old, l.typ)
		if err != nil {
			return fmt.Errorf("%w: %w", err, ErrUnsupported)
		}
		p.cast = f
	}
	index := len(a.plans)
	if !sameForm(old, l.typ, a.source.Column(p.source), a.target.schema.Column(index)) && p.cast == nil {
		p.cast = cast.Identity
	}
	kind, err := physicalOf(a.source.Column(p.source))
	if err == nil {
		err = kind.check(old, a.source.Column(p.source))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	a.plans = append(a.plans, p)
	return nil
}
