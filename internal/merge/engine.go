package merge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tablectl/internal/types"
)

// The merge engines, as the option merge-engine spells them. FirstRow is known by
// name only.
const (
	Deduplicate   = "deduplicate"
	PartialUpdate = "partial-update"
	Aggregation   = "aggregation"
	FirstRow      = "first-row"
)

// ErrUnsupported is wrapped when a table wants an engine or a function that is
// not there.
var ErrUnsupported = errors.New("not supported")

// Definition is what of a table an engine depends on.
type Definition struct {
	Engine         string // "" is deduplicate
	Fields         []types.Field
	PrimaryKeys    []string
	SequenceFields []string
	Options        map[string]string
}

// NewEngine makes the engine of a table. It refuses what the reference refuses
// when it opens a table, and what is not supported, naming the option.
func NewEngine(d Definition) (*Engine, error) {
	b := builder{Definition: d, groupOf: map[int]int{}}
	if b.Engine == "" {
		b.Engine = Deduplicate
	}
	e := &Engine{name: b.Engine, classes: 1, ignoreDelete: b.ignoreDelete(), Columns: make([]Column, len(d.Fields)), follows: make([]bool, len(d.Fields))}
	for i, f := range d.Fields {
		e.follows[i] = slices.Contains(d.PrimaryKeys, f.Name) || slices.Contains(d.SequenceFields, f.Name)
	}
	var err error
	switch e.name {
	case Deduplicate:
		for i := range e.Columns {
			e.Columns[i].Function = take
		}
	case PartialUpdate:
		err = b.partialUpdate(e)
	case Aggregation:
		err = b.aggregation(e)
	case FirstRow:
		err = fmt.Errorf("merge-engine first-row: %w", ErrUnsupported)
	default:
		err = fmt.Errorf("merge-engine=%s is none of deduplicate, partial-update, aggregation, first-row", e.name)
	}
	if err == nil {
		err = b.err
	}
	return e, err
}

type builder struct {
	Definition
	groupOf map[int]int // sequence group of a column
	err     error
}

func (b *builder) enabled(key string) bool {
	v, ok := b.Options[key]
	if !ok {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "true":
		return true
	case "false":
		return false
	}
	if b.err == nil {
		b.err = fmt.Errorf("option %s=%s: expected true or false", key, v)
	}
	return false
}

// ignoreDelete looks at the option and at the names that it had; the first one
// that is there counts.
func (b *builder) ignoreDelete() bool {
	for _, key := range []string{"ignore-delete", "first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"} {
		if _, ok := b.Options[key]; ok {
			return b.enabled(key)
		}
	}
	return false
}

func (b *builder) column(name, option string) (int, error) {
	i := slices.IndexFunc(b.Fields, func(f types.Field) bool { return f.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("option %s names the column %q, which the table does not have", option, name)
	}
	return i, nil
}

func (b *builder) columns(list, option string) ([]int, error) {
	var all []int
	for _, name := range strings.Split(list, ",") {
		i, err := b.column(name, option)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

const (
	fieldsPrefix   = "fields."
	groupSuffix    = ".sequence-group"
	defaultOption  = "fields.default-aggregate-function"
	removeOnDelete = "partial-update.remove-record-on-delete"
	removeOnGroup  = "partial-update.remove-record-on-sequence-group"
	removeOnAgg    = "aggregation.remove-record-on-delete"
)

func (b *builder) partialUpdate(e *Engine) error {
	protected, err := b.groups(e)
	if err != nil {
		return err
	}
	e.removeOn = b.enabled(removeOnDelete)
	list, byGroup := b.Options[removeOnGroup]
	switch {
	case e.removeOn && e.ignoreDelete:
		return fmt.Errorf("options ignore-delete and %s exclude each other", removeOnDelete)
	case byGroup && e.ignoreDelete:
		return fmt.Errorf("options ignore-delete and %s exclude each other", removeOnGroup)
	case e.removeOn && len(e.Groups) > 0:
		return fmt.Errorf("sequence groups and the option %s exclude each other", removeOnDelete)
	}
	e.removeGroup = make([]bool, len(e.Groups))
	if byGroup {
		fields, err := b.columns(list, removeOnGroup)
		if err != nil {
			return err
		}
		for _, f := range fields {
			g, ok := b.groupOf[f]
			if !ok || !slices.Contains(e.Groups[g], f) {
				return fmt.Errorf("option %s names %s, which is no sequence field of a group", removeOnGroup, b.Fields[f].Name)
			}
			e.removeGroup[g] = true
		}
	}
	for i, f := range b.Fields {
		g, grouped := b.groupOf[i]
		c := &e.Columns[i]
		if grouped {
			c.Class = 1 + g
		}
		name := b.functionName(f.Name)
		switch {
		case grouped && slices.Contains(e.Groups[g], i), slices.Contains(b.PrimaryKeys, f.Name):
			c.Function = take
		case name == "" && grouped:
			c.Function = takeGrouped
		case name == "":
			c.Function = takeNonNull
		case !protected[i] && name != "last_non_null_value":
			return fmt.Errorf("column %s has the aggregate function %s, but is in no sequence group", f.Name, name)
		case !protected[i]:
			c.Function = takeNonNull
		default:
			if c.Function, err = b.function(f, name); err != nil {
				return err
			}
			if c.Function.parts == newestParts {
				// A version that is the newest of the key may be late in its group.
				c.Function.parts = noParts
			}
		}
	}
	return nil
}

// groups reads the sequence groups, and tells which columns they protect.
func (b *builder) groups(e *Engine) (protected map[int]bool, err error) {
	protected = map[int]bool{}
	for _, key := range sortedKeys(b.Options) {
		inner, ok := strings.CutSuffix(key, groupSuffix)
		if inner, ok = cutBoth(inner, ok); !ok {
			continue
		}
		sequence, err := b.columns(inner, key)
		if err != nil {
			return nil, err
		}
		members, err := b.columns(b.Options[key], key)
		if err != nil {
			return nil, err
		}
		g := len(e.Groups)
		for _, i := range slices.Concat(sequence, members) {
			other, ok := b.groupOf[i]
			if ok && other == g && slices.Contains(sequence, i) {
				continue // a sequence field may be among its own members
			}
			if ok {
				return nil, fmt.Errorf("option %s: column %s is in two sequence groups", key, b.Fields[i].Name)
			}
			if slices.Contains(b.PrimaryKeys, b.Fields[i].Name) {
				return nil, fmt.Errorf("option %s: column %s of the primary key cannot be in a sequence group", key, b.Fields[i].Name)
			}
			b.groupOf[i] = g
		}
		for _, i := range sequence {
			if !b.Fields[i].Type.Scalar() {
				return nil, fmt.Errorf("option %s: column %s of type %s has no order", key, b.Fields[i].Name, b.Fields[i].Type)
			}
		}
		for _, i := range members {
			protected[i] = true
		}
		e.Groups = append(e.Groups, sequence)
	}
	e.classes = 1 + len(e.Groups)
	return protected, nil
}

func cutBoth(key string, ok bool) (string, bool) {
	inner, prefixed := strings.CutPrefix(key, fieldsPrefix)
	return inner, ok && prefixed
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (b *builder) aggregation(e *Engine) error {
	e.removeOn = b.enabled(removeOnAgg)
	for i, f := range b.Fields {
		name := b.functionName(f.Name)
		switch {
		case slices.Contains(b.SequenceFields, f.Name):
			name = "last_value"
		case slices.Contains(b.PrimaryKeys, f.Name):
			name = "primary-key"
		case name == "":
			name = "last_non_null_value"
		}
		if e.removeOn && b.enabled(fieldsPrefix+f.Name+".ignore-retract") {
			return fmt.Errorf("options %s and fields.%s.ignore-retract exclude each other", removeOnAgg, f.Name)
		}
		var err error
		if e.Columns[i].Function, err = b.function(f, name); err != nil {
			return err
		}
	}
	return nil
}

// functionName is what the options say of a column, "" if nothing.
func (b *builder) functionName(column string) string {
	if name, ok := b.Options[fieldsPrefix+column+".aggregate-function"]; ok {
		return name
	}
	return b.Options[defaultOption]
}

func (b *builder) function(f types.Field, name string) (Function, error) {
	ignore := b.enabled(fieldsPrefix + f.Name + ".ignore-retract")
	fail := func(format string, args ...any) (Function, error) {
		return Function{}, fmt.Errorf("column %s: %w", f.Name, fmt.Errorf(format, args...))
	}
	var fn Function
	var err error
	switch name {
	case "primary-key":
		fn = take
	case "last_value":
		fn = choosing(name, firstLast{last: true}, ignore)
	case "last_non_null_value":
		fn = choosing(name, firstLast{last: true, nonNull: true}, ignore)
	case "first_value":
		fn = choosing(name, firstLast{}, ignore)
	case "first_non_null_value", "first_not_null_value":
		fn = choosing(name, firstLast{nonNull: true}, ignore)
	case "max", "min":
		if !f.Type.Scalar() || f.Type.Kind == types.Boolean {
			return fail("the aggregate function %s needs a column with an order, not %s", name, f.Type)
		}
		fn = extreme(name, ignore)
	case "sum", "product":
		fn, err = arithmetic(name, f.Type, ignore)
	case "bool_and", "bool_or":
		fn, err = logical(name, f.Type, ignore)
	case "listagg":
		delimiter, ok := b.Options[fieldsPrefix+f.Name+".list-agg-delimiter"]
		if !ok {
			delimiter = ","
		}
		fn, err = listAgg(f.Type, []byte(delimiter), b.enabled(fieldsPrefix+f.Name+".distinct"), ignore)
	case "collect":
		fn, err = collect(f.Type, b.enabled(fieldsPrefix+f.Name+".distinct"), ignore)
	case "merge_map":
		fn, err = mergeMap(f.Type, ignore)
	case "merge_map_with_keytime":
		fn, err = mergeMapByTime(f.Type, b.Options[fieldsPrefix+f.Name+".ts-field"], ignore)
	case "nested_update", "nested_partial_update":
		var rows nestedRows
		if rows, err = b.nestedRows(f, name); err == nil {
			fn, err = rows.function(name, ignore)
		}
	case "rbm32", "rbm64", "hll_sketch", "theta_sketch":
		return fail("the aggregate function %s: %w", name, ErrUnsupported)
	default:
		return fail("there is no aggregate function %q", name)
	}
	if err != nil {
		return fail("%w", err)
	}
	return fn, nil
}
