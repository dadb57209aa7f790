package readback

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"tablectl/internal/types"
)

const (
	maxDecimal   = 64      // bytes
	julianEpoch  = 2440588 // the Julian day of 1970-01-01
	millisPerDay = 24 * 60 * 60 * 1000
)

type decodeFunc = func(parquet.Value) (types.Value, error)

// decoder returns what makes a cell of the type of a stored value.
func decoder(t types.Type, stored parquet.Type) (decodeFunc, error) {
	var f decodeFunc
	switch stored.Kind() {
	case parquet.Boolean:
		if t.Kind == types.Boolean {
			f = func(v parquet.Value) (types.Value, error) { return types.Bool(v.Boolean()), nil }
		}
	case parquet.Int32:
		f = integer(t, stored, func(v parquet.Value) int64 { return int64(v.Int32()) })
	case parquet.Int64:
		f = integer(t, stored, parquet.Value.Int64)
	case parquet.Int96:
		if t.Kind == types.Timestamp || t.Kind == types.TimestampLTZ {
			f = julian
		}
	case parquet.Float:
		if t.Kind == types.Float {
			f = func(v parquet.Value) (types.Value, error) { return types.Value{Float: float64(v.Float())}, nil }
		}
	case parquet.Double:
		if t.Kind == types.Double {
			f = func(v parquet.Value) (types.Value, error) { return types.Value{Float: v.Double()}, nil }
		}
	case parquet.ByteArray, parquet.FixedLenByteArray:
		switch t.Kind {
		case types.Char, types.Varchar, types.Binary, types.Varbinary:
			f = func(v parquet.Value) (types.Value, error) { return types.Value{Bytes: v.ByteArray()}, nil }
		case types.Decimal:
			f = unscaled
		}
	}
	if f == nil {
		return nil, fmt.Errorf("a %s is stored as %s: %w", t, stored.Kind(), ErrUnsupported)
	}
	return f, nil
}

// integer decodes what is stored as a number. Writers keep narrow types in wider ones.
func integer(t types.Type, stored parquet.Type, number func(parquet.Value) int64) decodeFunc {
	switch t.Kind {
	case types.BigInt:
		return func(v parquet.Value) (types.Value, error) { return types.Value{Int: number(v)}, nil }
	case types.TinyInt, types.SmallInt, types.Int, types.Date, types.Time:
		return func(v parquet.Value) (types.Value, error) {
			n := number(v)
			if n != int64(int32(n)) {
				return types.Value{}, fmt.Errorf("%d is not a %s", n, t)
			}
			return types.Value{Int: n}, nil
		}
	case types.Decimal:
		return func(v parquet.Value) (types.Value, error) { return types.Value{Unscaled: big.NewInt(number(v))}, nil }
	case types.Timestamp, types.TimestampLTZ:
		nanos := nanosPerUnit(t, stored)
		if nanos == 0 {
			return nil
		}
		perMilli := 1e6 / nanos
		return func(v parquet.Value) (types.Value, error) {
			millis, rest := floorDiv(number(v), perMilli)
			return types.Value{Int: millis, Nanos: int32(rest * nanos)}, nil
		}
	}
	return nil
}

// nanosPerUnit is the unit of a timestamp: what the annotation says, or, without
// one, milliseconds or microseconds as the type's precision needs; else 0.
func nanosPerUnit(t types.Type, stored parquet.Type) int64 {
	if l := stored.LogicalType(); l != nil {
		if ts, ok := l.Value.(*format.TimestampType); ok {
			switch ts.Unit.Value.(type) {
			case *format.MilliSeconds:
				return 1e6
			case *format.MicroSeconds:
				return 1e3
			case *format.NanoSeconds:
				return 1
			}
		}
	}
	if c := stored.ConvertedType(); c != nil {
		switch *c {
		case deprecated.TimestampMillis:
			return 1e6
		case deprecated.TimestampMicros:
			return 1e3
		}
	}
	switch {
	case t.Precision <= 3:
		return 1e6
	case t.Precision <= 6:
		return 1e3
	}
	return 0
}

// julian decodes nanoseconds of a Julian day. They are negative, or more than a day,
// in files of some writers.
func julian(v parquet.Value) (types.Value, error) {
	words := v.Int96()
	millis, rest := floorDiv(int64(uint64(words[1])<<32|uint64(words[0])), 1e6)
	days := int64(int32(words[2])) - julianEpoch
	return types.Value{Int: days*millisPerDay + millis, Nanos: int32(rest)}, nil
}

func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}

// unscaled decodes a big-endian two's complement.
func unscaled(v parquet.Value) (types.Value, error) {
	b := v.ByteArray()
	switch {
	case len(b) > maxDecimal:
		return types.Value{}, fmt.Errorf("a decimal of %d bytes", len(b))
	case len(b) == 0:
		return types.Value{Unscaled: new(big.Int)}, nil
	case len(b) <= 8:
		var word [8]byte
		copy(word[:], b)
		n := int64(binary.BigEndian.Uint64(word[:])) >> (64 - 8*len(b))
		return types.Value{Unscaled: big.NewInt(n)}, nil
	}
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return types.Value{Unscaled: n}, nil
}
