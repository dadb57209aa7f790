package types

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
)

// Value is one cell. Which member holds it depends on the type's Kind; the zero
// Value is a valid non-null cell only for numeric and nested kinds.
type Value struct {
	Null bool

	// Int: BOOLEAN (0 or 1), TINYINT to BIGINT, DATE (days since 1970-01-01),
	// TIME (milliseconds of the day), TIMESTAMP and TIMESTAMP_LTZ
	// (milliseconds since the epoch, rounded down).
	Int int64
	// Nanos: TIMESTAMP and TIMESTAMP_LTZ, nanoseconds within the millisecond, 0 to 999999.
	Nanos int32
	// Float: FLOAT and DOUBLE.
	Float float64
	// Bytes: CHAR and VARCHAR (UTF-8), BINARY and VARBINARY.
	Bytes []byte
	// Unscaled: DECIMAL, the value times ten to the power of the type's scale.
	Unscaled *big.Int
	// Items: the elements of an ARRAY, the members of a ROW, the keys and values of a
	// MAP in turn, the elements and counts of a MULTISET in turn, and the value and
	// the metadata of a VARIANT.
	Items []Value
}

// NullValue is the null cell of any type.
var NullValue = Value{Null: true}

// Compare orders two cells of the same scalar kind as Paimon does: nulls first,
// strings and bytes unsigned, -0.0 before 0.0 and NaN last. It returns a negative
// number, zero or a positive number.
func Compare(kind Kind, a, b Value) int {
	if a.Null || b.Null {
		return cmp.Compare(boolInt(!a.Null), boolInt(!b.Null))
	}
	switch kind {
	case Char, Varchar, Binary, Varbinary:
		return bytes.Compare(a.Bytes, b.Bytes)
	case Float, Double:
		return CompareFloat(a.Float, b.Float)
	case Decimal:
		return a.Unscaled.Cmp(b.Unscaled)
	case Timestamp, TimestampLTZ:
		if c := cmp.Compare(a.Int, b.Int); c != 0 {
			return c
		}
		return cmp.Compare(a.Nanos, b.Nanos)
	}
	return cmp.Compare(a.Int, b.Int)
}

// CompareFloat is Java's Double.compare: -0.0 is less than 0.0, NaN equals
// itself and is greater than everything else.
func CompareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return cmp.Compare(boolInt(!math.Signbit(a)), boolInt(!math.Signbit(b)))
	}
	return cmp.Compare(boolInt(math.IsNaN(a)), boolInt(math.IsNaN(b)))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Bool is the cell of a BOOLEAN.
func Bool(b bool) Value { return Value{Int: int64(boolInt(b))} }

// EncodeUnscaled writes a decimal's unscaled value as Java's BigInteger does:
// the shortest big-endian two's complement, at least one byte.
func EncodeUnscaled(n *big.Int) []byte {
	if n.Sign() >= 0 {
		b := n.Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	// -n-1 has the same bits as n, inverted.
	b := new(big.Int).Not(n).Bytes()
	if len(b) == 0 || b[0]&0x80 != 0 {
		b = append([]byte{0}, b...)
	}
	for i := range b {
		b[i] = ^b[i]
	}
	return b
}

// DecodeUnscaled reads a big-endian two's complement of any length; no bytes are zero.
func DecodeUnscaled(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return n
}
