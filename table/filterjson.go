package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tablectl/internal/types"
)

// ParseFilterJSON reads a filter in the form of the read filters of paimon-rust
// and pypaimon: {"method":"equal","field":"p","literals":["a"]} or
// {"method":"and","children":[…]}. JSON has no dates, times, decimals or bytes:
// those literals are strings. Every error wraps ErrInvalid.
func ParseFilterJSON(s *Schema, text string) (Filter, error) {
	fail := func(err error) (Filter, error) {
		return Filter{}, fmt.Errorf("filter %s: %w: %w", oneLine(text), err, ErrInvalid)
	}
	if len(text) > maxFilterLength {
		return fail(fmt.Errorf("longer than %d bytes", maxFilterLength))
	}
	dec := json.NewDecoder(strings.NewReader(text))
	var dict filterDict
	if err := dec.Decode(&dict); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) {
			err = fmt.Errorf("expected an object with method and field or children, found a JSON %s at byte %d", mismatch.Value, mismatch.Offset)
		}
		return fail(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fail(errors.New("more than one JSON value"))
	}
	pred, err := filterBuilder{s}.fromDict(dict, 0)
	if err != nil {
		return fail(err)
	}
	return Filter{terms: []predicate{pred}, text: []string{text}}, nil
}

type filterDict struct {
	Method   string            `json:"method"`
	Field    *string           `json:"field"`
	Literals []json.RawMessage `json:"literals"`
	Children []filterDict      `json:"children"`
}

// dictMethod is a leaf method: its operator, whether it negates it, and how many
// literals it takes (-1 is one or more).
type dictMethod struct {
	op       operator
	negate   bool
	literals int
}

var dictMethods = map[string]dictMethod{
	"equal": {opEqual, false, 1}, "notEqual": {opNotEqual, false, 1},
	"lessThan": {opLess, false, 1}, "lessOrEqual": {opLessEqual, false, 1},
	"greaterThan": {opGreater, false, 1}, "greaterOrEqual": {opGreaterEqual, false, 1},
	"isNull": {opIsNull, false, 0}, "isNotNull": {opIsNull, true, 0},
	"in": {opIn, false, -1}, "notIn": {opIn, true, -1},
	"between": {opBetween, false, 2}, "notBetween": {opBetween, true, 2},
	"startsWith": {opStartsWith, false, 1}, "endsWith": {opEndsWith, false, 1},
	"contains": {opContains, false, 1}, "like": {opLike, false, 1},
}

func (b filterBuilder) fromDict(d filterDict, depth int) (predicate, error) {
	if depth > maxFilterDepth {
		return nil, fmt.Errorf("nests deeper than %d levels", maxFilterDepth)
	}
	if d.Method == "and" || d.Method == "or" {
		if len(d.Children) == 0 {
			return nil, fmt.Errorf("method %q needs children", d.Method)
		}
		if len(d.Literals) > 0 {
			return nil, fmt.Errorf("method %q has no literals", d.Method)
		}
		children := make([]predicate, len(d.Children))
		for i, c := range d.Children {
			var err error
			if children[i], err = b.fromDict(c, depth+1); err != nil {
				return nil, err
			}
		}
		if d.Method == "and" {
			return andPredicate(children), nil
		}
		return orPredicate(children), nil
	}
	m, ok := dictMethods[d.Method]
	if !ok {
		return nil, fmt.Errorf("unknown method %q: expected and, or, %s", d.Method, strings.Join(slices.Sorted(maps.Keys(dictMethods)), ", "))
	}
	if len(d.Children) > 0 {
		return nil, fmt.Errorf("method %q has no children", d.Method)
	}
	if d.Field == nil {
		return nil, fmt.Errorf("method %q needs a field", d.Method)
	}
	switch n := len(d.Literals); {
	case m.literals >= 0 && n != m.literals:
		return nil, fmt.Errorf("method %q on field %q: expected literals: %d, found %d", d.Method, *d.Field, m.literals, n)
	case n == 0 && m.literals < 0:
		return nil, fmt.Errorf("method %q on field %q: expected one or more literals", d.Method, *d.Field)
	}
	_, field, err := b.column(*d.Field)
	if err != nil {
		return nil, err
	}
	literals := make([]string, len(d.Literals))
	for i, raw := range d.Literals {
		if literals[i], err = literalText(field, raw); err != nil {
			return nil, fmt.Errorf("method %q on field %q: %w", d.Method, *d.Field, err)
		}
	}
	pred, err := b.leaf(*d.Field, m.op, literals)
	if err == nil && m.negate {
		pred = notPredicate{pred}
	}
	return pred, err
}

// oneLine abbreviates JSON text for a message of one line. Between the tokens of
// JSON a line break means no more than a space; inside them it is an error.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, abbreviate(text))
}

// literalText checks that a JSON literal has the form that the column's type
// asks for and returns its text.
func literalText(field types.Field, raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	mismatch := fmt.Errorf("literal %s does not fit the type %s", oneLine(string(raw)), field.Type)
	isString := len(raw) > 0 && raw[0] == '"'
	switch field.Type.Kind {
	case types.Boolean:
		if s := string(raw); s == "true" || s == "false" {
			return s, nil
		}
		return "", mismatch
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Float, types.Double:
		if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
			return "", mismatch
		}
		return string(raw), nil
	}
	if !isString {
		return "", mismatch
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}
