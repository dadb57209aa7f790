// Package merge says what the versions of one key become when they are merged:
// Paimon's merge engines and aggregate functions. It knows no files; versions are
// numbers, and only what an engine asks for is ever looked at.
//
// A version is one stored record of a key: a row with a sequence number and a
// Kind. An Engine folds the versions of a key, oldest first, into at most one
// record. It does not touch values. It yields Steps, which say for a group of
// columns in which way each version counts, and every column then folds its own
// values by its own Function. So the columns of a table can be merged one after the
// other, and most of them by only choosing a version.
package merge

import "fmt"

// Kind is the kind of a version (reference: RowKind).
type Kind int8

// The kinds. UpdateBefore and Delete retract what was there before.
const (
	Insert Kind = iota
	UpdateBefore
	UpdateAfter
	Delete
)

// Retracts reports whether a version of this kind takes back an older one.
func (k Kind) Retracts() bool { return k == UpdateBefore || k == Delete }

// Valid reports whether there is such a kind.
func (k Kind) Valid() bool { return k >= Insert && k <= Delete }

func (k Kind) String() string {
	if !k.Valid() {
		return fmt.Sprintf("Kind(%d)", int8(k))
	}
	return [...]string{"+I", "-U", "+U", "-D"}[k]
}

// Version is what an engine knows of a record.
type Version struct {
	Sequence int64
	Kind     Kind
}

// Op is the way in which a version counts for a group of columns.
type Op uint8

// The ways. A version is late when its sequence group is older than what is there.
const (
	Set         Op = iota // the values become those of the version, whatever they were
	Add                   // the version adds
	AddLate               // the version adds, but is older
	Retract               // the version retracts
	RetractLate           // the version retracts, but is older
)

// Step applies one version, given by its index among those of the key.
type Step struct {
	Op      Op
	Version int
}

// Groups compares versions by the sequence fields of a sequence group.
type Groups interface {
	// Empty reports whether all sequence fields of the group are null.
	Empty(group, version int) bool
	// Compare orders two versions, nulls first.
	Compare(group, a, b int) int
}

// Result is what the versions of a key become. It is reused from key to key.
type Result struct {
	Drop     bool // there is no record
	Sequence int64
	Kind     Kind
	// Steps, by class, tell how the columns of the class get their values. A class
	// with one Set has the values of that version.
	Steps [][]Step
}

func (r *Result) reset(classes int) {
	r.Drop, r.Sequence, r.Kind = false, 0, Insert
	if len(r.Steps) != classes {
		r.Steps = make([][]Step, classes)
	}
	for i := range r.Steps {
		r.Steps[i] = r.Steps[i][:0]
	}
}

func (r *Result) add(class int, op Op, version int) {
	r.Steps[class] = append(r.Steps[class], Step{op, version})
}

// setAll makes the row that of one version. The steps before stay: functions that
// keep the first value have seen it.
func (r *Result) setAll(version int) {
	for i := range r.Steps {
		r.add(i, Set, version)
	}
}

// Column says how a column is merged.
type Column struct {
	Class    int
	Function Function
}

// Engine merges the versions of a key.
type Engine struct {
	// Columns are by the index of the table's columns.
	Columns []Column
	// Groups are the sequence groups, each with the indexes of its sequence fields.
	Groups [][]int

	name         string
	follows      []bool // by column: its value goes with what versions are ordered by
	classes      int
	ignoreDelete bool
	removeOn     bool   // *.remove-record-on-delete
	removeGroup  []bool // partial-update.remove-record-on-sequence-group, by group
}

// Name is the value of the option merge-engine.
func (e *Engine) Name() string { return e.name }

// Chooses reports whether a row is always that of one version, which replaces the
// others.
func (e *Engine) Chooses() bool { return e.name == Deduplicate }

// Classes is the number of classes that columns have.
func (e *Engine) Classes() int { return e.classes }

// InParts reports whether the newest versions of a key can be merged on their own:
// what becomes of them then stands for them when it is merged with the older ones,
// and the row is the same as if all had been merged at once. ordered says that they
// are the newest in the order in which they are merged, retracts that some of them
// may retract.
func (e *Engine) InParts(ordered, retracts bool) bool {
	if e.name == Deduplicate {
		return true
	}
	if retracts && (e.name == PartialUpdate || e.removeOn) {
		return false
	}
	for i, c := range e.Columns {
		f := c.Function
		if e.follows[i] {
			f = f.inParts(anyParts, ordered)
		}
		if f.parts == noParts || f.parts == newestParts && !ordered || retracts && !f.retracts {
			return false
		}
	}
	return true
}

// Merge folds two or more versions, oldest first. A key with one version is not
// merged: it stays as it is.
func (e *Engine) Merge(versions []Version, groups Groups, r *Result) error {
	r.reset(e.classes)
	switch e.name {
	case PartialUpdate:
		return e.partialUpdate(versions, groups, r)
	case Aggregation:
		e.aggregate(versions, r)
	default:
		e.deduplicate(versions, r)
	}
	return nil
}

// deduplicate keeps the newest version (reference: DeduplicateMergeFunction).
func (e *Engine) deduplicate(versions []Version, r *Result) {
	for i := len(versions) - 1; i >= 0; i-- {
		if e.ignoreDelete && versions[i].Kind.Retracts() {
			continue
		}
		r.Sequence, r.Kind = versions[i].Sequence, versions[i].Kind
		r.add(0, Set, i)
		return
	}
	r.Drop = true
}

// aggregate lets every column aggregate (reference: AggregateMergeFunction).
func (e *Engine) aggregate(versions []Version, r *Result) {
	for i, v := range versions {
		r.Sequence, r.Kind = v.Sequence, Insert
		switch {
		case e.removeOn && v.Kind == Delete:
			r.Kind = Delete
			r.setAll(i)
		case v.Kind.Retracts():
			r.add(0, Retract, i)
		default:
			r.add(0, Add, i)
		}
	}
}

// partialUpdate lets later versions fill in and replace columns (reference:
// PartialUpdateMergeFunction). Class 0 are the columns outside of groups; group g
// has class 1+g.
func (e *Engine) partialUpdate(versions []Version, groups Groups, r *Result) error {
	inserted, filled, removed := false, false, false
	// holder is, by group, the version whose sequence fields the row has.
	holder := make([]int, len(e.Groups))
	for g := range holder {
		holder[g] = -1
	}
	set := func(i int) {
		r.setAll(i)
		for g := range holder {
			holder[g] = i
		}
	}
	for i, v := range versions {
		removed = false
		if !v.Kind.Retracts() {
			r.Sequence = v.Sequence
			r.add(0, Add, i)
			e.addGroups(i, groups, holder, r, Add, AddLate)
			inserted, filled = true, true
			continue
		}
		if !filled {
			set(i)
			filled = true
		}
		if e.ignoreDelete {
			continue
		}
		r.Sequence = v.Sequence
		switch {
		case len(e.Groups) > 0:
			if removed = v.Kind == Delete && e.removes(i, groups, holder); removed {
				set(i)
			} else {
				e.addGroups(i, groups, holder, r, Retract, RetractLate)
			}
		case e.removeOn:
			if removed = v.Kind == Delete; removed {
				set(i)
			}
		default:
			return fmt.Errorf("a record of kind %s reached a partial-update table that does not say what to do with it "+
				"(set ignore-delete, partial-update.remove-record-on-delete or sequence groups)", v.Kind)
		}
	}
	if removed || !inserted {
		r.Kind = Delete
	}
	return nil
}

func (e *Engine) addGroups(i int, groups Groups, holder []int, r *Result, op, late Op) {
	for g := range e.Groups {
		switch {
		case groups.Empty(g, i):
		case newer(groups, g, i, holder[g]):
			r.add(1+g, op, i)
			holder[g] = i
		default:
			r.add(1+g, late, i)
		}
	}
}

// removes reports whether a delete takes the whole row with it.
func (e *Engine) removes(i int, groups Groups, holder []int) bool {
	for g, remove := range e.removeGroup {
		if remove && !groups.Empty(g, i) && newer(groups, g, i, holder[g]) {
			return true
		}
	}
	return false
}

// newer reports whether a version counts as the newest of a group. Sequence
// fields that nothing has set yet are null, and null is before everything.
func newer(groups Groups, g, version, holder int) bool {
	return holder < 0 || groups.Compare(g, version, holder) >= 0
}
