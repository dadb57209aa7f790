package tabletest

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"tablectl/internal/types"
)

// decodeScalar turns a stored value into a cell of the type.
func decodeScalar(t types.Type, stored parquet.Type, v parquet.Value) (any, error) {
	switch stored.Kind() {
	case parquet.Boolean:
		if t.Kind == types.Boolean {
			return types.Bool(v.Boolean()), nil
		}
	case parquet.Int32:
		return decodeInteger(t, stored, int64(v.Int32()))
	case parquet.Int64:
		return decodeInteger(t, stored, v.Int64())
	case parquet.Int96:
		if t.Kind == types.Timestamp || t.Kind == types.TimestampLTZ {
			words := v.Int96()
			nanos := new(big.Int).SetInt64(int64(uint64(words[1])<<32 | uint64(words[0])))
			days := big.NewInt(int64(int32(words[2])) - julianEpoch)
			return instant(nanos.Add(nanos, days.Mul(days, big.NewInt(nanosPerDay)))), nil
		}
	case parquet.Float:
		if t.Kind == types.Float {
			return types.Value{Float: float64(v.Float())}, nil
		}
	case parquet.Double:
		if t.Kind == types.Double {
			return types.Value{Float: v.Double()}, nil
		}
	case parquet.ByteArray, parquet.FixedLenByteArray:
		switch t.Kind {
		case types.Char, types.Varchar, types.Binary, types.Varbinary:
			return types.Value{Bytes: v.ByteArray()}, nil
		case types.Decimal:
			return types.Value{Unscaled: types.DecodeUnscaled(v.ByteArray())}, nil
		}
	}
	return nil, fmt.Errorf("a %s is stored as %s", t, stored.Kind())
}

func decodeInteger(t types.Type, stored parquet.Type, n int64) (any, error) {
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Date, types.Time:
		return types.Value{Int: n}, nil
	case types.Decimal:
		return types.Value{Unscaled: big.NewInt(n)}, nil
	case types.Timestamp, types.TimestampLTZ:
		unit, err := nanosPerUnit(t, stored)
		if err != nil {
			return nil, err
		}
		return instant(new(big.Int).Mul(big.NewInt(n), big.NewInt(unit))), nil
	}
	return nil, fmt.Errorf("a %s is stored as %s", t, stored.Kind())
}

// nanosPerUnit is the unit of a timestamp: what the annotation says, or, without
// one, milliseconds or microseconds as the type's precision needs.
func nanosPerUnit(t types.Type, stored parquet.Type) (int64, error) {
	if l := stored.LogicalType(); l != nil {
		if ts, ok := l.Value.(*format.TimestampType); ok {
			switch ts.Unit.Value.(type) {
			case *format.MilliSeconds:
				return 1e6, nil
			case *format.MicroSeconds:
				return 1e3, nil
			case *format.NanoSeconds:
				return 1, nil
			}
		}
	}
	if c := stored.ConvertedType(); c != nil {
		switch *c {
		case deprecated.TimestampMillis:
			return 1e6, nil
		case deprecated.TimestampMicros:
			return 1e3, nil
		}
	}
	switch {
	case t.Precision <= 3:
		return 1e6, nil
	case t.Precision <= 6:
		return 1e3, nil
	}
	return 0, fmt.Errorf("a %s is stored as INT64 without a unit", t)
}

const (
	julianEpoch = 2440588 // the Julian day of 1970-01-01
	nanosPerDay = 24 * 60 * 60 * 1e9
)

// instant is the cell of a number of nanoseconds since the epoch.
func instant(nanos *big.Int) types.Value {
	millis, rest := new(big.Int).DivMod(nanos, big.NewInt(1e6), new(big.Int))
	return types.Value{Int: millis.Int64(), Nanos: int32(rest.Int64())}
}

// scalarType is the physical and logical type that Paimon writes for a type.
func scalarType(t types.Type) parquet.Node {
	switch t.Kind {
	case types.Char, types.Varchar:
		return parquet.String()
	case types.Binary, types.Varbinary:
		return parquet.Leaf(parquet.ByteArrayType)
	case types.Boolean:
		return parquet.Leaf(parquet.BooleanType)
	case types.TinyInt:
		return parquet.Int(8)
	case types.SmallInt:
		return parquet.Int(16)
	case types.Int:
		return parquet.Leaf(parquet.Int32Type)
	case types.BigInt:
		return parquet.Leaf(parquet.Int64Type)
	case types.Float:
		return parquet.Leaf(parquet.FloatType)
	case types.Double:
		return parquet.Leaf(parquet.DoubleType)
	case types.Date:
		return parquet.Date()
	case types.Time:
		return parquet.Time(parquet.Millisecond)
	case types.Decimal:
		physical := parquet.Int64Type
		if t.Precision <= 9 {
			physical = parquet.Int32Type
		} else if t.Precision > 18 {
			physical = parquet.FixedLenByteArrayType(DecimalBytes(t.Precision))
		}
		return parquet.Decimal(t.Scale, t.Precision, physical)
	case types.Timestamp, types.TimestampLTZ:
		utc := t.Kind == types.TimestampLTZ
		switch {
		case t.Precision <= 3:
			return parquet.TimestampAdjusted(parquet.Millisecond, utc)
		case t.Precision <= 6:
			return parquet.TimestampAdjusted(parquet.Microsecond, utc)
		}
		return parquet.Leaf(parquet.Int96Type)
	}
	panic(fmt.Sprintf("no column for values of type %s", t))
}

// DecimalBytes is how many bytes hold every decimal of that many digits.
func DecimalBytes(precision int) int {
	for n := 1; ; n++ {
		half := new(big.Int).Lsh(big.NewInt(1), uint(8*n-1))
		if half.Cmp(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)) >= 0 {
			return n
		}
	}
}

// encodeScalar is the inverse of decodeScalar for columns of scalarType.
func encodeScalar(t types.Type, v types.Value) parquet.Value {
	switch t.Kind {
	case types.Char, types.Varchar, types.Binary, types.Varbinary:
		return parquet.ByteArrayValue(v.Bytes)
	case types.Boolean:
		return parquet.BooleanValue(v.Int != 0)
	case types.TinyInt, types.SmallInt, types.Int, types.Date, types.Time:
		return parquet.Int32Value(int32(v.Int))
	case types.BigInt:
		return parquet.Int64Value(v.Int)
	case types.Float:
		return parquet.FloatValue(float32(v.Float))
	case types.Double:
		return parquet.DoubleValue(v.Float)
	case types.Decimal:
		switch {
		case t.Precision <= 9:
			return parquet.Int32Value(int32(v.Unscaled.Int64()))
		case t.Precision <= 18:
			return parquet.Int64Value(v.Unscaled.Int64())
		}
		b := make([]byte, DecimalBytes(t.Precision))
		n := new(big.Int).Set(v.Unscaled)
		if n.Sign() < 0 {
			n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		return parquet.FixedLenByteArrayValue(n.FillBytes(b))
	case types.Timestamp, types.TimestampLTZ:
		switch {
		case t.Precision <= 3:
			return parquet.Int64Value(v.Int)
		case t.Precision <= 6:
			return parquet.Int64Value(v.Int*1000 + int64(v.Nanos)/1000)
		}
		nanos := new(big.Int).Mul(big.NewInt(v.Int), big.NewInt(1e6))
		days, rest := new(big.Int).DivMod(nanos.Add(nanos, big.NewInt(int64(v.Nanos))), big.NewInt(nanosPerDay), new(big.Int))
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], rest.Uint64())
		return parquet.Int96Value(deprecated.Int96{
			binary.LittleEndian.Uint32(word[:]), binary.LittleEndian.Uint32(word[4:]), uint32(int32(days.Int64() + julianEpoch)),
		})
	}
	panic(fmt.Sprintf("no stored value for the type %s", t))
}
