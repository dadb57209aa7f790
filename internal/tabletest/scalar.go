package tabletest

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"tablectl/internal/types"
)

const (
	julianEpoch = 2440588 // the Julian day of 1970-01-01
	nanosPerDay = 24 * 60 * 60 * 1e9
)

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

// encodeScalar is a cell as columns of scalarType store it.
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
