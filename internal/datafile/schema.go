package datafile

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"tablectl/internal/types"
)

// Field ids of the parts of nested types are derived from the id of the column
// around them (reference: SpecialFields).
const (
	nestedIDBase  = 536870911
	nestedIDDepth = 1024
)

const rootName = "paimon_schema"

// leaf is one primitive column of the files that are written.
type leaf struct {
	column int    // index of the top-level column that it is part of
	name   string // dotted path, for messages
	typ    types.Type
	top    bool // the column is scalar, so the leaf is all of it
}

// target is the Parquet schema of the files that are written.
type target struct {
	fields []types.Field
	root   *schema.GroupNode
	schema *schema.Schema
	leaves []leaf // by column of the schema
}

// newTarget builds the schema exactly as the reference does (ParquetSchemaConverter):
// names, ids, physical and logical types.
func newTarget(fields []types.Field) (*target, error) {
	nodes := make(schema.FieldList, len(fields))
	for i, f := range fields {
		n, err := node(f.Name, f.Type, f.ID, f.ID, 0)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		nodes[i] = n
	}
	root, err := schema.NewGroupNode(rootName, parquet.Repetitions.Required, nodes, -1)
	if err != nil {
		return nil, err
	}
	t := &target{fields: fields, root: root, schema: schema.NewSchema(root)}
	for i, f := range fields {
		t.leaves = append(t.leaves, leavesOf(leaf{column: i, name: f.Name, typ: f.Type, top: f.Type.Scalar()})...)
	}
	return t, nil
}

// leafOf is the index of the first leaf of a column.
func (t *target) leafOf(column int) int {
	return slices.IndexFunc(t.leaves, func(l leaf) bool { return l.column == column })
}

// mover makes the mover for a plan, from a file of that schema.
func (t *target) mover(p plan, source *schema.Schema, dst taker) (mover, error) {
	if p.source < 0 {
		return &fixedMover{plan: p, required: t.fields[p.leaf.column].Type.NotNull, dst: dst}, nil
	}
	column := source.Column(p.source)
	kind, err := physicalOf(column)
	if err != nil {
		return nil, err
	}
	return kind.mover(p, column, dst)
}

func repetition(t types.Type) parquet.Repetition {
	if t.NotNull {
		return parquet.Repetitions.Required
	}
	return parquet.Repetitions.Optional
}

// node builds the node of a value. The id is its own; column and depth are those
// of the column around it, from which the ids of its parts are derived.
func node(name string, t types.Type, id, column, depth int) (schema.Node, error) {
	rep := repetition(t)
	below := depth + 1
	switch t.Kind {
	case types.Array:
		element, err := node("element", *t.Element, nestedIDBase+column*nestedIDDepth+below, column, below)
		if err != nil {
			return nil, err
		}
		list, err := schema.NewGroupNode("list", parquet.Repetitions.Repeated, schema.FieldList{element}, -1)
		if err != nil {
			return nil, err
		}
		return schema.NewGroupNodeLogical(name, rep, schema.FieldList{list}, schema.NewListLogicalType(), int32(id))
	case types.Map, types.Multiset:
		keyType, valueType := t.EntryTypes()
		key, err := node("key", keyType, nestedIDBase-column*nestedIDDepth-below, column, below)
		if err != nil {
			return nil, err
		}
		value, err := node("value", valueType, nestedIDBase+column*nestedIDDepth+below, column, below)
		if err != nil {
			return nil, err
		}
		// The reference also gives this group the old annotation MAP_KEY_VALUE, which
		// no reader needs. The Parquet library would add a logical type to it, and
		// that makes the reference warn of every file.
		entries, err := schema.NewGroupNode("key_value", parquet.Repetitions.Repeated, schema.FieldList{key, value}, -1)
		if err != nil {
			return nil, err
		}
		return schema.NewGroupNodeLogical(name, rep, schema.FieldList{entries}, schema.MapLogicalType{}, int32(id))
	case types.Row:
		members := make(schema.FieldList, len(t.Fields))
		for i, f := range t.Fields {
			n, err := node(f.Name, f.Type, f.ID, f.ID, 0)
			if err != nil {
				return nil, err
			}
			members[i] = n
		}
		return schema.NewGroupNode(name, rep, members, int32(id))
	case types.Variant:
		members := make(schema.FieldList, len(variantFields))
		for i, f := range variantFields {
			members[i] = schema.NewByteArrayNode(f.Name, parquet.Repetitions.Required, int32(f.ID))
		}
		return schema.NewGroupNode(name, rep, members, int32(id))
	}
	return scalarNode(name, rep, t, int32(id))
}

// variantFields are the parts of a VARIANT.
var variantFields = []types.Field{
	{ID: 0, Name: "value", Type: types.Type{Kind: types.Varbinary, Length: types.MaxLength, NotNull: true}},
	{ID: 1, Name: "metadata", Type: types.Type{Kind: types.Varbinary, Length: types.MaxLength, NotNull: true}},
}

func scalarNode(name string, rep parquet.Repetition, t types.Type, id int32) (schema.Node, error) {
	logical := func(l schema.LogicalType, physical parquet.Type, length int) (schema.Node, error) {
		return schema.NewPrimitiveNodeLogical(name, rep, l, physical, length, id)
	}
	switch t.Kind {
	case types.Char, types.Varchar:
		return logical(schema.StringLogicalType{}, parquet.Types.ByteArray, -1)
	case types.Binary, types.Varbinary:
		return schema.NewByteArrayNode(name, rep, id), nil
	case types.Boolean:
		return schema.NewBooleanNode(name, rep, id), nil
	case types.TinyInt:
		return logical(schema.NewIntLogicalType(8, true), parquet.Types.Int32, -1)
	case types.SmallInt:
		return logical(schema.NewIntLogicalType(16, true), parquet.Types.Int32, -1)
	case types.Int:
		return schema.NewInt32Node(name, rep, id), nil
	case types.BigInt:
		return schema.NewInt64Node(name, rep, id), nil
	case types.Float:
		return schema.NewFloat32Node(name, rep, id), nil
	case types.Double:
		return schema.NewFloat64Node(name, rep, id), nil
	case types.Date:
		return logical(schema.DateLogicalType{}, parquet.Types.Int32, -1)
	case types.Time:
		return logical(schema.NewTimeLogicalType(true, schema.TimeUnitMillis), parquet.Types.Int32, -1)
	case types.Decimal:
		l := schema.NewDecimalLogicalType(int32(t.Precision), int32(t.Scale))
		switch {
		case t.Precision <= 9:
			return logical(l, parquet.Types.Int32, -1)
		case t.Precision <= 18:
			return logical(l, parquet.Types.Int64, -1)
		}
		return logical(l, parquet.Types.FixedLenByteArray, decimalBytes(t.Precision))
	case types.Timestamp, types.TimestampLTZ:
		if t.Precision > 6 {
			return schema.NewInt96Node(name, rep, id), nil
		}
		unit := schema.TimeUnitMicros
		if t.Precision <= 3 {
			unit = schema.TimeUnitMillis
		}
		return logical(schema.NewTimestampLogicalType(t.Kind == types.TimestampLTZ, unit), parquet.Types.Int64, -1)
	}
	return nil, fmt.Errorf("type %s: %w", t, ErrUnsupported)
}

// decimalBytes is the length of the shortest two's complement that holds every
// decimal of that many digits.
func decimalBytes(precision int) int {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	return limit.BitLen()/8 + 1 // one bit more than the largest magnitude, for the sign
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The shapes of nested nodes in files that are read: the names of the inner
// groups do not matter, their structure does.

// listElement returns the element of a LIST, and whether it has a node of its
// own below the repeated one.
func listElement(n schema.Node) (element schema.Node, own bool, err error) {
	group, ok := n.(*schema.GroupNode)
	if !ok || group.NumFields() != 1 || group.Field(0).RepetitionType() != parquet.Repetitions.Repeated {
		return nil, false, errors.New("not a list")
	}
	repeated, ok := group.Field(0).(*schema.GroupNode)
	if !ok || repeated.NumFields() != 1 {
		return group.Field(0), false, nil // the old form: the repeated node is the element
	}
	return repeated.Field(0), true, nil
}

// mapEntry returns the key and the value of a MAP.
func mapEntry(n schema.Node) (key, value schema.Node, err error) {
	group, ok := n.(*schema.GroupNode)
	if ok && group.NumFields() == 1 {
		if entries, ok := group.Field(0).(*schema.GroupNode); ok && entries.NumFields() == 2 &&
			entries.RepetitionType() == parquet.Repetitions.Repeated {
			return entries.Field(0), entries.Field(1), nil
		}
	}
	return nil, nil, errors.New("not a map")
}

// member returns the member of that name, or nil.
func member(n schema.Node, name string) schema.Node {
	group, ok := n.(*schema.GroupNode)
	if !ok {
		return nil
	}
	for i := range group.NumFields() {
		if group.Field(i).Name() == name {
			return group.Field(i)
		}
	}
	return nil
}
