package merge

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"tablectl/internal/types"
)

// The functions on nested values. Where the reference keeps elements in the order of
// a hash table, they are kept in the order in which they came.

// collect joins arrays (reference: FieldCollectAgg).
func collect(t types.Type, distinct, ignoreRetract bool) (Function, error) {
	if t.Kind != types.Array {
		return Function{}, fmt.Errorf("the aggregate function collect needs an ARRAY column, not %s", t)
	}
	identity := func(v types.Value) string { return string(types.AppendIdentity(nil, *t.Element, v)) }
	add := func(acc, in types.Value) (types.Value, error) {
		switch {
		case acc.Null && in.Null:
			return acc, nil
		case !distinct && acc.Null:
			return in, nil
		case !distinct && in.Null:
			return acc, nil
		case !distinct:
			return types.Value{Items: slices.Concat(acc.Items, in.Items)}, nil
		}
		var all []types.Value
		seen := map[string]bool{}
		for _, v := range slices.Concat(acc.Items, in.Items) {
			if id := identity(v); !seen[id] {
				seen[id] = true
				all = append(all, v)
			}
		}
		return types.Value{Items: all}, nil
	}
	// Elements of bytes are only equal where they are kept apart, in the reference.
	bytes := t.Element.Kind == types.Binary || t.Element.Kind == types.Varbinary
	retract := func(acc, in types.Value) (types.Value, error) {
		if acc.Null || in.Null || bytes && !distinct {
			return acc, nil
		}
		gone := map[string]int{}
		for _, v := range in.Items {
			gone[identity(v)]++
		}
		var rest []types.Value
		for _, v := range acc.Items {
			if id := identity(v); gone[id] > 0 {
				gone[id]--
			} else {
				rest = append(rest, v)
			}
		}
		return types.Value{Items: rest}, nil
	}
	// A late version is added behind the others like any other, but where retracts
	// are ignored (reference: FieldIgnoreRetractAgg, which knows no late versions).
	late := add
	if ignoreRetract {
		late = func(acc, in types.Value) (types.Value, error) { return add(in, acc) }
	}
	return folding{"collect", add, late, retract}.function(ignoreRetract).inParts(newestParts, ignoreRetract), nil
}

// entries are the entries of a map while they are changed.
type entries struct {
	key   types.Type
	at    map[string]int // by identity of the key, the index of the entry
	items []types.Value
}

func entriesOf(t types.Type, maps ...types.Value) *entries {
	key, _ := t.EntryTypes()
	e := &entries{key: key, at: map[string]int{}}
	for _, m := range maps {
		for i := 0; i+1 < len(m.Items); i += 2 {
			e.put(m.Items[i], m.Items[i+1])
		}
	}
	return e
}

func (e *entries) id(key types.Value) string { return string(types.AppendIdentity(nil, e.key, key)) }

func (e *entries) get(key types.Value) types.Value {
	if i, ok := e.at[e.id(key)]; ok {
		return e.items[i+1]
	}
	return types.NullValue
}

func (e *entries) put(key, value types.Value) {
	id := e.id(key)
	if i, ok := e.at[id]; ok {
		e.items[i+1] = value
		return
	}
	e.at[id] = len(e.items)
	e.items = append(e.items, key, value)
}

func (e *entries) remove(key types.Value) { delete(e.at, e.id(key)) }

// value is the map, without what was removed.
func (e *entries) value() types.Value {
	kept := make([]types.Value, 0, 2*len(e.at))
	for i := 0; i < len(e.items); i += 2 {
		if at, ok := e.at[e.id(e.items[i])]; ok && at == i {
			kept = append(kept, e.items[i], e.items[i+1])
		}
	}
	return types.Value{Items: kept}
}

// mergeMap joins maps; the later value of a key counts (reference: FieldMergeMapAgg).
func mergeMap(t types.Type, ignoreRetract bool) (Function, error) {
	if t.Kind != types.Map {
		return Function{}, fmt.Errorf("the aggregate function merge_map needs a MAP column, not %s", t)
	}
	add := func(a, b types.Value) (types.Value, error) { return entriesOf(t, a, b).value(), nil }
	retract := func(acc, in types.Value) (types.Value, error) {
		e := entriesOf(t, acc)
		for i := 0; i+1 < len(in.Items); i += 2 {
			e.remove(in.Items[i])
		}
		return e.value(), nil
	}
	return computing("merge_map", add, retract, nil, ignoreRetract).inParts(newestParts, ignoreRetract), nil
}

// mergeMapByTime joins maps of rows; of each key the row with the greater time
// counts, and a null removes it (reference: FieldMergeMapWithKeyTimeAgg). Times are
// compared as Java compares strings.
func mergeMapByTime(t types.Type, timeField string, ignoreRetract bool) (Function, error) {
	const name = "merge_map_with_keytime"
	if t.Kind != types.Map || t.Element.Kind != types.Row || len(t.Element.Fields) < 2 {
		return Function{}, fmt.Errorf("the aggregate function %s needs a column of type MAP with values of type ROW that have two members or more, not %s", name, t)
	}
	fields := t.Element.Fields
	at := len(fields) - 1
	if timeField != "" {
		if at = memberIndex(fields, timeField); at < 0 {
			return Function{}, fmt.Errorf("ts-field names %s, which %s does not have", timeField, t.Element)
		}
	}
	if k := fields[at].Type.Kind; k != types.Char && k != types.Varchar {
		return Function{}, fmt.Errorf("the aggregate function %s needs a time that is a string, but %s is %s", name, fields[at].Name, fields[at].Type)
	}
	add := func(a, b types.Value) (types.Value, error) {
		e := entriesOf(t, a)
		for i := 0; i+1 < len(b.Items); i += 2 {
			key, row := b.Items[i], b.Items[i+1]
			if row.Null {
				e.remove(key)
				continue
			}
			if row.Items[at].Null {
				continue
			}
			old := e.get(key)
			if old.Null || old.Items[at].Null || compareUTF16(row.Items[at].Bytes, old.Items[at].Bytes) > 0 {
				e.put(key, row)
			}
		}
		return e.value(), nil
	}
	return computing(name, add, nil, nil, ignoreRetract).inParts(noParts, false), nil
}

// compareUTF16 orders texts by their UTF-16 units (reference: java.lang.String).
func compareUTF16(a, b []byte) int {
	return slices.Compare(utf16.Encode([]rune(string(a))), utf16.Encode([]rune(string(b))))
}

func memberIndex(fields []types.Field, name string) int {
	return slices.IndexFunc(fields, func(f types.Field) bool { return f.Name == name })
}

// nestedRows merges arrays of rows, which are told apart by some of their members
// (reference: FieldNestedUpdateAgg, FieldNestedPartialUpdateAgg).
type nestedRows struct {
	row      types.Type
	keys     []int // none: all rows are kept
	sequence []int // the row with the greater ones counts
	limit    int   // of rows
	nullKeys string
}

// What to do with rows that have a null among their keys.
const (
	nullsMerge  = "merge"
	nullsIgnore = "ignore"
	nullsError  = "error"
)

func (b *builder) nestedRows(f types.Field, function string) (nestedRows, error) {
	if f.Type.Kind != types.Array || f.Type.Element.Kind != types.Row {
		return nestedRows{}, fmt.Errorf("the aggregate function %s needs a column of type ARRAY with elements of type ROW, not %s", function, f.Type)
	}
	n := nestedRows{row: *f.Type.Element, limit: math.MaxInt32, nullKeys: nullsMerge}
	option := func(name string) (string, bool) {
		v, ok := b.Options[fieldsPrefix+f.Name+"."+name]
		return v, ok
	}
	members := func(option, list string) (indexes []int, err error) {
		for _, name := range strings.Split(list, ",") {
			at := memberIndex(n.row.Fields, strings.TrimSpace(name))
			if at < 0 {
				return nil, fmt.Errorf("%s names %q, which %s does not have", option, name, n.row)
			}
			indexes = append(indexes, at)
		}
		return indexes, nil
	}
	var err error
	if list, ok := option("nested-key"); ok {
		if n.keys, err = members("nested-key", list); err != nil {
			return n, err
		}
	}
	if list, ok := option("nested-sequence-field"); ok {
		if n.sequence, err = members("nested-sequence-field", list); err != nil {
			return n, err
		}
	}
	strategy, hasStrategy := option("nested-key-null-strategy")
	if hasStrategy {
		n.nullKeys = strings.ToLower(strings.TrimSpace(strategy))
	}
	text, limited := option("count-limit")
	if limited {
		if n.limit, err = strconv.Atoi(strings.TrimSpace(text)); err != nil {
			return n, fmt.Errorf("count-limit=%s is no number", text)
		}
	}
	switch {
	case !slices.Contains([]string{nullsMerge, nullsIgnore, nullsError}, n.nullKeys):
		return n, fmt.Errorf("nested-key-null-strategy=%s is none of merge, ignore, error", strategy)
	case len(n.keys) == 0 && (hasStrategy || len(n.sequence) > 0):
		return n, fmt.Errorf("nested-key-null-strategy and nested-sequence-field need nested-key")
	}
	for _, i := range n.sequence {
		if m := n.row.Fields[i]; !m.Type.Scalar() {
			return n, fmt.Errorf("nested-sequence-field: %s of type %s has no order", m.Name, m.Type)
		}
	}
	return n, nil
}

func (n nestedRows) function(name string, ignoreRetract bool) (Function, error) {
	f := folding{name: name, add: n.update, retract: n.remove}
	parts := newestParts
	switch {
	case name == "nested_partial_update" && len(n.keys) == 0:
		return Function{}, fmt.Errorf("the aggregate function %s needs nested-key", name)
	case name == "nested_partial_update":
		f.add, f.retract = n.partialUpdate, nil
	case len(n.keys) == 0:
		f.add, f.retract = n.join, n.removeEqual
	case n.limit < math.MaxInt32:
		parts = noParts // which rows are within the limit depends on those before
	}
	f.late = func(acc, in types.Value) (types.Value, error) { return f.add(in, acc) }
	return f.function(ignoreRetract).inParts(parts, ignoreRetract), nil
}

// join puts one array behind the other, within the limit.
func (n nestedRows) join(acc, in types.Value) (types.Value, error) {
	if in.Null || !acc.Null && len(acc.Items) >= n.limit {
		return acc, nil
	}
	room := max(n.limit-len(acc.Items), 0)
	rows, more := notNull(acc.Items), notNull(in.Items)
	return types.Value{Items: append(rows, more[:min(room, len(more))]...)}, nil
}

func notNull(items []types.Value) []types.Value {
	return slices.DeleteFunc(slices.Clone(items), func(v types.Value) bool { return v.Null })
}

func (n nestedRows) removeEqual(acc, in types.Value) (types.Value, error) {
	if acc.Null || in.Null {
		return acc, nil
	}
	gone := map[string]bool{}
	for _, row := range notNull(in.Items) {
		gone[string(types.AppendIdentity(nil, n.row, row))] = true
	}
	rest := slices.DeleteFunc(notNull(acc.Items), func(row types.Value) bool {
		return gone[string(types.AppendIdentity(nil, n.row, row))]
	})
	return types.Value{Items: rest}, nil
}

// keyed are rows by their keys, in the order in which they came.
type keyed struct {
	nestedRows
	at   map[string]int
	rows []types.Value // Null where the row was removed
}

func (n nestedRows) keyed() *keyed { return &keyed{nestedRows: n, at: map[string]int{}} }

// each calls a function with the key of every row that counts.
func (n nestedRows) each(rows []types.Value, do func(key string, row types.Value)) error {
	for _, row := range rows {
		if row.Null {
			continue
		}
		var key []byte
		null := false
		for _, i := range n.keys {
			null = null || row.Items[i].Null
			key = types.AppendIdentity(key, n.row.Fields[i].Type, row.Items[i])
		}
		if null && n.nullKeys == nullsError {
			return fmt.Errorf("a nested row has a null among its keys (nested-key-null-strategy=error)")
		}
		if !null || n.nullKeys == nullsMerge {
			do(string(key), row)
		}
	}
	return nil
}

func (k *keyed) put(key string, row types.Value) {
	k.at[key] = len(k.rows)
	k.rows = append(k.rows, row)
}

func (k *keyed) upsert(rows []types.Value, limit int) error {
	return k.each(rows, func(key string, row types.Value) {
		at, ok := k.at[key]
		switch {
		case ok && k.compareSequence(row, k.rows[at]) >= 0:
			k.rows[at] = row
		case !ok && len(k.at) < limit:
			k.put(key, row)
		}
	})
}

func (n nestedRows) compareSequence(a, b types.Value) int {
	for _, i := range n.sequence {
		if c := types.Compare(n.row.Fields[i].Type.Kind, a.Items[i], b.Items[i]); c != 0 {
			return c
		}
	}
	return 0
}

func (k *keyed) value() types.Value { return types.Value{Items: notNull(k.rows)} }

// update replaces rows of the same key and adds the others, within the limit.
func (n nestedRows) update(acc, in types.Value) (types.Value, error) {
	if in.Null {
		return acc, nil
	}
	k := n.keyed()
	if err := k.upsert(acc.Items, math.MaxInt); err != nil {
		return acc, err
	}
	err := k.upsert(in.Items, n.limit)
	return k.value(), err
}

func (n nestedRows) remove(acc, in types.Value) (types.Value, error) {
	if acc.Null || in.Null {
		return acc, nil
	}
	k := n.keyed()
	k.sequence = nil // the later one of two rows with a key counts
	if err := k.upsert(acc.Items, math.MaxInt); err != nil {
		return acc, err
	}
	err := n.each(in.Items, func(key string, _ types.Value) {
		if at, ok := k.at[key]; ok {
			k.rows[at] = types.NullValue
			delete(k.at, key)
		}
	})
	return k.value(), err
}

// partialUpdate fills rows of the same key in with what is not null.
func (n nestedRows) partialUpdate(acc, in types.Value) (types.Value, error) {
	if in.Null {
		return acc, nil
	}
	k := n.keyed()
	err := n.each(slices.Concat(acc.Items, in.Items), func(key string, row types.Value) {
		at, ok := k.at[key]
		if !ok {
			k.put(key, types.Value{Items: slices.Clone(row.Items)})
			return
		}
		for i, v := range row.Items {
			if !v.Null {
				k.rows[at].Items[i] = v
			}
		}
	})
	return k.value(), err
}
