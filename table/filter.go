package table

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"tablectl/internal/types"
)

// Filter selects partitions. The zero Filter selects all of them. It is typed
// by the partition columns when it is made, so it cannot fail later.
type Filter struct {
	terms []predicate
	text  []string
}

// And returns the filter that selects what both filters select.
func (f Filter) And(g Filter) Filter {
	return Filter{terms: slices.Concat(f.terms, g.terms), text: slices.Concat(f.text, g.text)}
}

// String joins the filters as they were written.
func (f Filter) String() string { return strings.Join(f.text, " AND ") }

// Matches reports whether the partition with these values, in the order of the
// partition keys, is selected. As in SQL, a comparison with null is neither true
// nor false, and only true selects.
func (f Filter) Matches(partition []types.Value) bool {
	for _, p := range f.terms {
		if p.eval(partition) != yes {
			return false
		}
	}
	return true
}

// truth is the value of a predicate in SQL's three-valued logic.
type truth int

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

type predicate interface {
	eval(partition []types.Value) truth
}

type andPredicate []predicate

func (p andPredicate) eval(v []types.Value) truth {
	result := yes
	for _, c := range p {
		result = min(result, c.eval(v))
	}
	return result
}

type orPredicate []predicate

func (p orPredicate) eval(v []types.Value) truth {
	result := no
	for _, c := range p {
		result = max(result, c.eval(v))
	}
	return result
}

type notPredicate struct{ of predicate }

func (p notPredicate) eval(v []types.Value) truth { return yes - p.of.eval(v) }

// operator is what a leaf does with its column and literals.
type operator string

const (
	opEqual        operator = "="
	opNotEqual     operator = "<>"
	opLess         operator = "<"
	opLessEqual    operator = "<="
	opGreater      operator = ">"
	opGreaterEqual operator = ">="
	opIn           operator = "IN"
	opBetween      operator = "BETWEEN"
	opIsNull       operator = "IS NULL"
	opStartsWith   operator = "startsWith"
	opEndsWith     operator = "endsWith"
	opContains     operator = "contains"
	opLike         operator = "LIKE"
)

// leaf compares one partition column with literals of its type.
type leaf struct {
	index    int // of the column among the partition keys
	field    types.Field
	op       operator
	literals []types.Value
}

func (l leaf) eval(partition []types.Value) truth {
	v := partition[l.index]
	if l.op == opIsNull {
		return truthOf(v.Null)
	}
	if v.Null {
		return unknown
	}
	compare := func(i int) int { return types.Compare(l.field.Type.Kind, v, l.literals[i]) }
	switch l.op {
	case opEqual, opIn:
		return truthOf(slices.ContainsFunc(l.literals, func(lit types.Value) bool {
			return types.Compare(l.field.Type.Kind, v, lit) == 0
		}))
	case opNotEqual:
		return truthOf(compare(0) != 0)
	case opLess:
		return truthOf(compare(0) < 0)
	case opLessEqual:
		return truthOf(compare(0) <= 0)
	case opGreater:
		return truthOf(compare(0) > 0)
	case opGreaterEqual:
		return truthOf(compare(0) >= 0)
	case opBetween:
		return truthOf(compare(0) >= 0 && compare(1) <= 0)
	case opStartsWith:
		return truthOf(bytes.HasPrefix(v.Bytes, l.literals[0].Bytes))
	case opEndsWith:
		return truthOf(bytes.HasSuffix(v.Bytes, l.literals[0].Bytes))
	case opContains:
		return truthOf(bytes.Contains(v.Bytes, l.literals[0].Bytes))
	case opLike:
		return truthOf(like([]rune(string(v.Bytes)), []rune(string(l.literals[0].Bytes))))
	}
	panic("table: unknown operator " + string(l.op))
}

// like matches SQL's LIKE: % is any text, _ is one character, \ takes the next
// character as it is.
func like(text, pattern []rune) bool {
	// The last % that was passed and where in the text it stands for more.
	star, resume := -1, 0
	t, p := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '%':
			star, resume = p, t
			p++
			continue
		case p+1 < len(pattern) && pattern[p] == '\\':
			if pattern[p+1] == text[t] {
				t, p = t+1, p+2
				continue
			}
		case p < len(pattern) && (pattern[p] == '_' || pattern[p] == text[t]):
			t, p = t+1, p+1
			continue
		}
		if star < 0 {
			return false
		}
		resume++
		t, p = resume, star+1
	}
	for p < len(pattern) && pattern[p] == '%' {
		p++
	}
	return p == len(pattern)
}

// filterBuilder makes leaves for one schema and rejects what does not fit.
type filterBuilder struct{ schema *Schema }

// column finds a partition column. Other columns and unknown names are errors
// that say which columns can be used.
func (b filterBuilder) column(name string) (int, types.Field, error) {
	if i := slices.Index(b.schema.PartitionKeys, name); i >= 0 {
		f, _ := b.schema.Field(name)
		return i, f, nil
	}
	known := "the table has no partition columns"
	if keys := b.schema.PartitionKeys; len(keys) > 0 {
		known = "the partition columns are " + strings.Join(keys, ", ")
	}
	if _, ok := b.schema.Field(name); ok {
		return 0, types.Field{}, fmt.Errorf("column %q is not a partition column; %s", name, known)
	}
	return 0, types.Field{}, fmt.Errorf("unknown column %q; %s", name, known)
}

// leaf checks that the operator suits the column and types its literals.
func (b filterBuilder) leaf(name string, op operator, literals []string) (predicate, error) {
	index, field, err := b.column(name)
	if err != nil {
		return nil, err
	}
	switch op {
	case opStartsWith, opEndsWith, opContains, opLike:
		if k := field.Type.Kind; k != types.Char && k != types.Varchar {
			return nil, fmt.Errorf("%s needs a string column, but %q is %s", op, name, field.Type)
		}
	}
	l := leaf{index: index, field: field, op: op}
	for _, text := range literals {
		v, err := types.ParseLiteral(field.Type, text)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
		l.literals = append(l.literals, v)
	}
	return l, nil
}
