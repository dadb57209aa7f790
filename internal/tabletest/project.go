package tabletest

import (
	"errors"
	"fmt"
	"slices"

	"tablectl/internal/cast"
	"tablectl/internal/types"
)

// ErrNotNull is wrapped by Project where a null meets a column that is NOT NULL.
var ErrNotNull = errors.New("null in a column that is NOT NULL")

// Project shows a row that was written under some fields as a reader under other
// fields sees it: columns and members of rows are matched by id, those that are not
// there are null, and scalars of another type are converted.
func Project(from, to []types.Field, row []any) ([]any, error) {
	out := make([]any, len(to))
	for i, f := range to {
		j := slices.IndexFunc(from, func(o types.Field) bool { return o.ID == f.ID })
		if j >= 0 {
			var err error
			if out[i], err = convert(from[j].Type, f.Type, row[j]); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		if out[i] == nil && f.Type.NotNull {
			return nil, fmt.Errorf("%s: %w", f.Name, ErrNotNull)
		}
	}
	return out, nil
}

// convert leaves the null at the top to its caller, who knows whether it may be.
func convert(from, to types.Type, cell any) (any, error) {
	inner := func(from, to types.Type, cell any) (any, error) {
		out, err := convert(from, to, cell)
		if err == nil && out == nil && to.NotNull {
			err = ErrNotNull
		}
		return out, err
	}
	switch c := cell.(type) {
	case nil:
		return nil, nil
	case List:
		out := make(List, len(c))
		for i, e := range c {
			var err error
			if out[i], err = inner(*from.Element, *to.Element, e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case Map:
		fromKey, fromValue := MapTypes(from)
		toKey, toValue := MapTypes(to)
		out := make(Map, len(c))
		for i, p := range c {
			key, err := inner(fromKey, toKey, p.Key)
			if err != nil {
				return nil, err
			}
			value, err := inner(fromValue, toValue, p.Value)
			if err != nil {
				return nil, err
			}
			out[i] = Pair{key, value}
		}
		return out, nil
	case Struct:
		out, err := Project(from.Fields, to.Fields, c)
		return Struct(out), err
	case types.Value:
		f, err := cast.Resolve(from, to)
		if err != nil {
			return nil, err
		}
		v, err := f(c)
		if err != nil || v.Null {
			return nil, err
		}
		return v, nil
	}
	return cell, nil
}
