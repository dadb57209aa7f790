package merge

import (
	"fmt"

	"tablectl/internal/types"
)

// Function folds the values of one column. It either chooses the value of one of
// the versions, or computes a value.
type Function struct {
	choose func(steps []Step, c Cells) (version int, err error)
	fold   func(steps []Step, value func(version int) (types.Value, error)) (types.Value, error)

	parts    parts
	retracts bool // parts holds as well where versions retract
}

// parts says which versions of a key can be merged on their own first, with the
// same result when what became of them is merged with the others.
type parts uint8

const (
	noParts     parts = iota // none
	newestParts              // the newest ones
	anyParts                 // any of them
)

// inParts says in which parts a function can be merged.
func (f Function) inParts(p parts, retracts bool) Function {
	f.parts, f.retracts = p, retracts
	return f
}

// Cells are the values of a column, by version.
type Cells interface {
	Null(version int) bool
	// Compare orders two values that are not null, as Paimon orders keys.
	Compare(a, b int) int
}

// NoVersion is chosen when the value is null.
const NoVersion = -1

// Chooses reports whether the function chooses a version; otherwise it computes.
func (f Function) Chooses() bool { return f.choose != nil }

// Choose returns the version whose value the column gets, or NoVersion.
func (f Function) Choose(steps []Step, c Cells) (int, error) { return f.choose(steps, c) }

// Fold computes the value of the column.
func (f Function) Fold(steps []Step, value func(version int) (types.Value, error)) (types.Value, error) {
	return f.fold(steps, value)
}

// chooser makes a Function from what one step does to the version chosen so far.
// It keeps no state from one key to the next.
func chooser(next func(chosen int, s Step, c Cells) (int, error)) Function {
	return Function{choose: func(steps []Step, c Cells) (int, error) {
		chosen := NoVersion
		for _, s := range steps {
			if s.Op == Set {
				chosen = s.Version
				continue
			}
			var err error
			if chosen, err = next(chosen, s, c); err != nil {
				return chosen, err
			}
		}
		return chosen, nil
	}}
}

// take is for columns that follow the versions as they are: all of a
// deduplicated row, sequence fields, and keys.
var take = chooser(func(chosen int, s Step, _ Cells) (int, error) {
	if s.Op == Add || s.Op == Retract {
		return s.Version, nil
	}
	return chosen, nil
}).inParts(newestParts, false)

// Take is the function of columns that are the same in all versions: keys.
func Take() Function { return take }

// takeGrouped is for columns of a sequence group without a function: what the
// newest version retracts becomes null.
var takeGrouped = chooser(func(chosen int, s Step, _ Cells) (int, error) {
	switch s.Op {
	case Add:
		return s.Version, nil
	case Retract:
		return NoVersion, nil
	default:
		return chosen, nil
	}
}).inParts(newestParts, false)

// takeNonNull is for columns outside of sequence groups: nulls do not overwrite.
var takeNonNull = chooser(func(chosen int, s Step, c Cells) (int, error) {
	if s.Op == Add && !c.Null(s.Version) {
		return s.Version, nil
	}
	return chosen, nil
}).inParts(newestParts, false)

// errRetract is what functions say that cannot take back what they added.
func errRetract(name string) error {
	return fmt.Errorf("the aggregate function %s cannot retract (set fields.<column>.ignore-retract to ignore that records are retracted)", name)
}

// firstLast are the functions that keep the first or the last value (reference:
// FieldLastValueAgg, FieldLastNonNullValueAgg, FieldFirstValueAgg,
// FieldFirstNonNullValueAgg).
type firstLast struct{ last, nonNull bool }

func choosing(name string, f firstLast, ignoreRetract bool) Function {
	return Function{choose: func(steps []Step, c Cells) (int, error) {
		chosen := NoVersion
		null := func(v int) bool { return v == NoVersion || c.Null(v) }
		seen := false // of the functions that keep the first value; it survives a Set
		// agg is what the reference's agg(a, b) returns.
		agg := func(a, b int) int {
			switch {
			case f.last && f.nonNull && null(b):
				return a
			case f.last:
				return b
			case !seen && (!f.nonNull || !null(b)):
				seen = true
				return b
			}
			return a
		}
		for _, s := range steps {
			switch s.Op {
			case Set:
				chosen = s.Version
			case Add:
				chosen = agg(chosen, s.Version)
			case AddLate:
				chosen = agg(s.Version, chosen)
			case Retract, RetractLate:
				switch {
				case ignoreRetract:
				case !f.last:
					return chosen, errRetract(name)
				case !f.nonNull || !null(s.Version):
					chosen = NoVersion
				}
			}
		}
		return chosen, nil
	}}.inParts(newestParts, ignoreRetract || f.last && !f.nonNull)
}

// extreme keeps the greatest or the least value (reference: FieldMaxAgg,
// FieldMinAgg).
func extreme(name string, ignoreRetract bool) Function {
	sign := 1
	if name == "min" {
		sign = -1
	}
	return chooser(func(chosen int, s Step, c Cells) (int, error) {
		switch {
		case s.Op == Retract || s.Op == RetractLate:
			if ignoreRetract {
				return chosen, nil
			}
			return chosen, errRetract(name)
		case c.Null(s.Version):
			return chosen, nil
		case chosen == NoVersion || c.Null(chosen) || sign*c.Compare(s.Version, chosen) > 0:
			return s.Version, nil
		}
		return chosen, nil
	}).inParts(anyParts, true)
}
