package readback

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go"

	"tablectl/internal/types"
)

// levels are the definition and repetition level of an entry that is there up to
// some column.
type levels struct{ def, rep int }

// shape is how the values of a column, or of a part of one, are put together from
// the entries of its leaves.
type shape struct {
	name     string
	present  int // definition level from which on there is a value
	leaves   []*leaf
	parts    []*shape // element, or key and value, or members; nil is a member that the file does not have
	repeated bool     // the parts are there any number of times
	item     levels   // of the repeated ones
}

// newShape finds the parts of a value. The levels are those around it.
func newShape(c *parquet.Column, t types.Type, around levels) (*shape, error) {
	here := around
	switch {
	case c.Optional():
		here.def++
	case c.Repeated():
		return nil, fmt.Errorf("%s is repeated: %w", c.Name(), ErrUnsupported)
	}
	return newContent(c, t, here)
}

// newContent is newShape for what is there at these levels.
func newContent(c *parquet.Column, t types.Type, here levels) (*shape, error) {
	s := &shape{name: c.Name(), present: here.def}
	var err error
	switch t.Kind {
	case types.Array:
		err = s.list(c, t, here)
	case types.Map, types.Multiset:
		err = s.entries(c, t, here)
	case types.Row:
		err = s.members(c, t.Fields, here)
	case types.Variant:
		if len(c.Columns()) != len(variantFields) {
			return nil, fmt.Errorf("%s is a shredded variant: %w", c.Name(), ErrUnsupported)
		}
		if err = s.members(c, variantFields, here); err == nil && (s.parts[0] == nil || s.parts[1] == nil) {
			err = fmt.Errorf("%s is not a variant: %w", c.Name(), ErrUnsupported)
		}
	default:
		if !c.Leaf() {
			return nil, fmt.Errorf("%s is a group, not a %s: %w", c.Name(), t, ErrUnsupported)
		}
		l := &leaf{column: c}
		l.decode, err = decoder(t, c.Type())
		s.leaves = []*leaf{l}
	}
	if err != nil {
		return nil, err
	}
	for _, p := range s.parts {
		if p != nil {
			s.leaves = append(s.leaves, p.leaves...)
		}
	}
	if len(s.leaves) == 0 {
		return nil, fmt.Errorf("%s has none of its members: %w", c.Name(), ErrUnsupported)
	}
	return s, nil
}

// variantFields are the parts of a VARIANT.
var variantFields = []types.Field{
	{Name: "value", Type: types.Type{Kind: types.Varbinary, NotNull: true}},
	{Name: "metadata", Type: types.Type{Kind: types.Varbinary, NotNull: true}},
}

func (s *shape) list(c *parquet.Column, t types.Type, here levels) error {
	repeated, err := s.repeat(c, here)
	if err != nil {
		return err
	}
	var element *shape
	if kids := repeated.Columns(); len(kids) == 1 {
		element, err = newShape(kids[0], *t.Element, s.item)
	} else { // the old form: what is repeated is the element
		element, err = newContent(repeated, *t.Element, s.item)
	}
	s.parts = []*shape{element}
	return err
}

func (s *shape) entries(c *parquet.Column, t types.Type, here levels) error {
	repeated, err := s.repeat(c, here)
	if err != nil {
		return err
	}
	kids := repeated.Columns()
	if len(kids) != 2 {
		return fmt.Errorf("%s is not a map: %w", c.Name(), ErrUnsupported)
	}
	for i, part := range pair(t.EntryTypes()) {
		p, err := newShape(kids[i], part, s.item)
		if err != nil {
			return err
		}
		s.parts = append(s.parts, p)
	}
	return nil
}

func pair(key, value types.Type) [2]types.Type { return [2]types.Type{key, value} }

// repeat finds what is repeated within a list or map.
func (s *shape) repeat(c *parquet.Column, here levels) (*parquet.Column, error) {
	kids := c.Columns()
	if len(kids) != 1 || !kids[0].Repeated() {
		return nil, fmt.Errorf("%s is neither a list nor a map: %w", c.Name(), ErrUnsupported)
	}
	s.repeated, s.item = true, levels{here.def + 1, here.rep + 1}
	return kids[0], nil
}

func (s *shape) members(c *parquet.Column, fields []types.Field, here levels) error {
	for _, f := range fields {
		m := c.Column(f.Name)
		if m == nil {
			s.parts = append(s.parts, nil)
			continue
		}
		p, err := newShape(m, f.Type, here)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name(), err)
		}
		s.parts = append(s.parts, p)
	}
	return nil
}

// value puts the next value together. Its first entries have that repetition level,
// in every leaf.
func (s *shape) value(rep int) (types.Value, error) {
	first := s.leaves[0]
	if err := first.need(); err != nil {
		return types.Value{}, err
	}
	def := first.peek().DefinitionLevel()
	switch {
	case def < s.present:
		return types.NullValue, s.nothing(rep, s.present)
	case len(s.parts) == 0:
		v, err := first.take(rep)
		if err != nil {
			return types.Value{}, err
		}
		return first.decode(*v)
	case !s.repeated:
		return s.appendParts(types.Value{Items: make([]types.Value, 0, len(s.parts))}, rep)
	case def < s.item.def:
		return types.Value{}, s.nothing(rep, s.item.def)
	}
	v, err := s.appendParts(types.Value{}, rep)
	for err == nil {
		more, failed := first.more()
		if failed != nil {
			return v, failed
		}
		if !more || first.peek().RepetitionLevel() != s.item.rep {
			return v, nil
		}
		v, err = s.appendParts(v, s.item.rep)
	}
	return v, err
}

// appendParts appends one element, one entry, or all members.
func (s *shape) appendParts(v types.Value, rep int) (types.Value, error) {
	for _, p := range s.parts {
		item := types.NullValue
		if p != nil {
			var err error
			if item, err = p.value(rep); err != nil {
				return v, err
			}
		}
		v.Items = append(v.Items, item)
	}
	return v, nil
}

var errDisagree = errors.New("the leaves do not agree on what is null or empty")

// nothing takes the entries that stand for a value, or for items, that are not there.
func (s *shape) nothing(rep, below int) error {
	for _, l := range s.leaves {
		v, err := l.take(rep)
		if err != nil {
			return err
		}
		if v.DefinitionLevel() >= below {
			return fmt.Errorf("%s: %w", s.name, errDisagree)
		}
	}
	return nil
}
