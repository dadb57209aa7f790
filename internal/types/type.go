// Package types holds Paimon's data types: their grammar as schema files spell
// it, and the scalar values that partitions, statistics and filters are made of.
//
// A Type is one node of a column's type; a Field is a named Type with the id
// that identifies it over the life of a table. Nothing here reads files.
package types

import (
	"fmt"
	"strings"
)

// Kind is the root of a data type.
type Kind uint8

// The kinds of Paimon's type system, in the order of the reference's
// DataTypeRoot.
const (
	Invalid Kind = iota
	Char
	Varchar
	Boolean
	Binary
	Varbinary
	Decimal
	TinyInt
	SmallInt
	Int
	BigInt
	Float
	Double
	Date
	Time
	Timestamp
	TimestampLTZ
	Variant
	Blob
	Geometry
	Geography
	Vector
	Array
	Multiset
	Map
	Row
)

var kindNames = [...]string{
	Invalid: "INVALID", Char: "CHAR", Varchar: "VARCHAR", Boolean: "BOOLEAN", Binary: "BINARY",
	Varbinary: "VARBINARY", Decimal: "DECIMAL", TinyInt: "TINYINT", SmallInt: "SMALLINT", Int: "INT",
	BigInt: "BIGINT", Float: "FLOAT", Double: "DOUBLE", Date: "DATE", Time: "TIME", Timestamp: "TIMESTAMP",
	TimestampLTZ: "TIMESTAMP_LTZ", Variant: "VARIANT", Blob: "BLOB", Geometry: "GEOMETRY",
	Geography: "GEOGRAPHY", Vector: "VECTOR", Array: "ARRAY", Multiset: "MULTISET", Map: "MAP", Row: "ROW",
}

func (k Kind) String() string { return kindNames[k] }

// MaxLength is the length of STRING and BYTES: the longest CHAR, VARCHAR,
// BINARY or VARBINARY that can be declared.
const MaxLength = 2147483647

// Type is a data type. Which of the fields matter depends on Kind.
type Type struct {
	Kind    Kind
	NotNull bool

	Length    int     // CHAR, VARCHAR (characters), BINARY, VARBINARY (bytes), VECTOR (elements)
	Precision int     // DECIMAL (digits), TIME, TIMESTAMP, TIMESTAMP_LTZ (digits of the second's fraction)
	Scale     int     // DECIMAL
	Key       *Type   // MAP
	Element   *Type   // ARRAY, VECTOR, MULTISET; the value of a MAP
	Fields    []Field // ROW
}

// Field is a column, or a member of a ROW.
type Field struct {
	ID          int
	Name        string
	Type        Type
	Description *string
	Default     *string
}

// Scalar reports whether values of the type are single cells, not containers
// and not the types that Paimon keeps in a form of their own.
func (t Type) Scalar() bool { return t.Kind >= Char && t.Kind <= TimestampLTZ }

// EntryTypes returns the types of keys and values of a MAP or MULTISET: keys are
// never null, and a MULTISET maps its elements to their counts.
func (t Type) EntryTypes() (key, value Type) {
	if t.Kind == Multiset {
		key, value = *t.Element, Type{Kind: Int, NotNull: true}
	} else {
		key, value = *t.Key, *t.Element
	}
	key.NotNull = true
	return key, value
}

// Same reports whether two types store the same values in the same form. Unlike
// ==, it looks through pointers; nullability and the names of row members do not
// matter, ids do.
func (t Type) Same(u Type) bool {
	if t.Kind != u.Kind || t.Length != u.Length || t.Precision != u.Precision || t.Scale != u.Scale {
		return false
	}
	if (t.Key == nil) != (u.Key == nil) || (t.Element == nil) != (u.Element == nil) || len(t.Fields) != len(u.Fields) {
		return false
	}
	if t.Key != nil && !t.Key.Same(*u.Key) || t.Element != nil && !t.Element.Same(*u.Element) {
		return false
	}
	for i, f := range t.Fields {
		if f.ID != u.Fields[i].ID || !f.Type.Same(u.Fields[i].Type) {
			return false
		}
	}
	return true
}

// String spells the type as a schema file does; nested types are written in
// SQL form, which schema files write as JSON objects.
func (t Type) String() string {
	s := t.bare()
	if t.NotNull {
		s += " NOT NULL"
	}
	return s
}

func (t Type) bare() string {
	switch t.Kind {
	case Char, Binary:
		return fmt.Sprintf("%s(%d)", t.Kind, t.Length)
	case Varchar:
		if t.Length == MaxLength {
			return "STRING"
		}
		return fmt.Sprintf("VARCHAR(%d)", t.Length)
	case Varbinary:
		if t.Length == MaxLength {
			return "BYTES"
		}
		return fmt.Sprintf("VARBINARY(%d)", t.Length)
	case Decimal:
		return fmt.Sprintf("DECIMAL(%d, %d)", t.Precision, t.Scale)
	case Time, Timestamp:
		return fmt.Sprintf("%s(%d)", t.Kind, t.Precision)
	case TimestampLTZ:
		return fmt.Sprintf("TIMESTAMP(%d) WITH LOCAL TIME ZONE", t.Precision)
	case Array, Multiset:
		return fmt.Sprintf("%s<%s>", t.Kind, t.Element)
	case Vector:
		return fmt.Sprintf("VECTOR<%s, %d>", t.Element, t.Length)
	case Map:
		return fmt.Sprintf("MAP<%s, %s>", t.Key, t.Element)
	case Row:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = fmt.Sprintf("`%s` %s", f.Name, f.Type)
		}
		return "ROW<" + strings.Join(parts, ", ") + ">"
	}
	return t.Kind.String()
}
