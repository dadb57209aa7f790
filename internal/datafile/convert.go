package datafile

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"tablectl/internal/types"
)

// timeUnit is the unit of an INT64 timestamp in a file: what its annotation
// says, else what the reference assumes from the declared precision.
func timeUnit(t types.Type, descr *schema.Column) schema.TimeUnitType {
	if l, ok := descr.LogicalType().(schema.TimestampLogicalType); ok {
		return l.TimeUnit()
	}
	if l, ok := descr.LogicalType().(*schema.TimestampLogicalType); ok {
		return l.TimeUnit()
	}
	if t.Precision <= 3 || t.Precision > 6 {
		return schema.TimeUnitMillis
	}
	return schema.TimeUnitMicros
}

// sameForm reports whether values can be passed from one column to the other
// as they are: same type, same physical type, same unit.
func sameForm(from, to types.Type, source, dest *schema.Column) bool {
	if !from.Same(to) || source.PhysicalType() != dest.PhysicalType() {
		return false
	}
	switch physical := source.PhysicalType(); {
	case physical == parquet.Types.FixedLenByteArray:
		return source.TypeLength() == dest.TypeLength()
	case physical == parquet.Types.Int64 && (to.Kind == types.Timestamp || to.Kind == types.TimestampLTZ):
		return timeUnit(from, source) == timeUnit(to, dest)
	}
	return true
}

// decoder returns the function that turns a stored value into a cell of the
// type. Files of other writers keep narrow integers and decimals in wider
// physical types.
func decoder[T parquet.ColumnTypes](t types.Type, descr *schema.Column) (func(T) (types.Value, error), error) {
	var f any
	var zero T
	switch any(zero).(type) {
	case bool:
		if t.Kind == types.Boolean {
			f = func(v bool) (types.Value, error) { return types.Bool(v), nil }
		}
	case int32:
		f = decodeInt32(t)
	case int64:
		f = decodeInt64(t, descr)
	case parquet.Int96:
		if t.Kind == types.Timestamp || t.Kind == types.TimestampLTZ {
			f = func(v parquet.Int96) (types.Value, error) { return decodeInt96(v), nil }
		}
	case float32:
		if t.Kind == types.Float {
			f = func(v float32) (types.Value, error) { return types.Value{Float: float64(v)}, nil }
		}
	case float64:
		if t.Kind == types.Double {
			f = func(v float64) (types.Value, error) { return types.Value{Float: v}, nil }
		}
	case parquet.ByteArray:
		if g := decodeBytes(t); g != nil {
			f = func(v parquet.ByteArray) (types.Value, error) { return g(v) }
		}
	case parquet.FixedLenByteArray:
		if g := decodeBytes(t); g != nil {
			f = func(v parquet.FixedLenByteArray) (types.Value, error) { return g(v) }
		}
	}
	if g, ok := f.(func(T) (types.Value, error)); ok && g != nil {
		return g, nil
	}
	return nil, fmt.Errorf("a column of type %s is stored as %s: %w", t, descr.PhysicalType(), ErrUnsupported)
}

func decodeInt32(t types.Type) func(int32) (types.Value, error) {
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.Date, types.Time:
		return func(v int32) (types.Value, error) { return types.Value{Int: int64(v)}, nil }
	case types.Decimal:
		return func(v int32) (types.Value, error) { return types.Value{Unscaled: big.NewInt(int64(v))}, nil }
	}
	return nil
}

func decodeInt64(t types.Type, descr *schema.Column) func(int64) (types.Value, error) {
	switch t.Kind {
	case types.BigInt:
		return func(v int64) (types.Value, error) { return types.Value{Int: v}, nil }
	case types.TinyInt, types.SmallInt, types.Int, types.Date:
		return func(v int64) (types.Value, error) {
			if v != int64(int32(v)) {
				return types.Value{}, fmt.Errorf("%d does not fit the type %s", v, t)
			}
			return types.Value{Int: v}, nil
		}
	case types.Decimal:
		return func(v int64) (types.Value, error) { return types.Value{Unscaled: big.NewInt(v)}, nil }
	case types.Timestamp, types.TimestampLTZ:
		perMilli := map[schema.TimeUnitType]int64{schema.TimeUnitMillis: 1, schema.TimeUnitMicros: 1e3, schema.TimeUnitNanos: 1e6}[timeUnit(t, descr)]
		if perMilli == 0 {
			return nil
		}
		return func(v int64) (types.Value, error) {
			millis, rest := v/perMilli, v%perMilli
			if rest < 0 {
				millis, rest = millis-1, rest+perMilli
			}
			return types.Value{Int: millis, Nanos: int32(rest * (1e6 / perMilli))}, nil
		}
	}
	return nil
}

func decodeBytes(t types.Type) func([]byte) (types.Value, error) {
	switch t.Kind {
	case types.Char, types.Varchar, types.Binary, types.Varbinary:
		return func(v []byte) (types.Value, error) { return types.Value{Bytes: v}, nil }
	case types.Decimal:
		return func(v []byte) (types.Value, error) {
			if len(v) > 64 {
				return types.Value{}, fmt.Errorf("decimal of %d bytes", len(v))
			}
			return types.Value{Unscaled: types.DecodeUnscaled(v)}, nil
		}
	}
	return nil
}

const (
	julianEpoch  = 2440588 // the Julian day of 1970-01-01
	millisPerDay = 24 * 60 * 60 * 1000
)

// decodeInt96 accepts negative nanoseconds of the day, which the reference
// writes before 1970.
func decodeInt96(v parquet.Int96) types.Value {
	nanos := int64(binary.LittleEndian.Uint64(v[:8]))
	day := int64(int32(binary.LittleEndian.Uint32(v[8:]))) - julianEpoch
	millis, rest := nanos/1e6, nanos%1e6
	if rest < 0 {
		millis, rest = millis-1, rest+1e6
	}
	return types.Value{Int: day*millisPerDay + millis, Nanos: int32(rest)}
}

func encodeInt96(v types.Value) (parquet.Int96, error) {
	day, millis := v.Int/millisPerDay, v.Int%millisPerDay
	if millis < 0 {
		day, millis = day-1, millis+millisPerDay
	}
	var out parquet.Int96
	if julian := day + julianEpoch; julian != int64(int32(julian)) {
		return out, fmt.Errorf("timestamp of %d ms is out of range", v.Int)
	}
	binary.LittleEndian.PutUint64(out[:8], uint64(millis*1e6+int64(v.Nanos)))
	binary.LittleEndian.PutUint32(out[8:], uint32(int32(day+julianEpoch)))
	return out, nil
}

// encoder returns the function that turns a cell of the type into the stored
// value of the column that is written.
func encoder[T parquet.ColumnTypes](t types.Type, descr *schema.Column) func(types.Value) (T, error) {
	var f any
	var zero T
	switch any(zero).(type) {
	case bool:
		f = func(v types.Value) (bool, error) { return v.Int != 0, nil }
	case int32:
		f = func(v types.Value) (int32, error) {
			if t.Kind == types.Decimal {
				return int32(v.Unscaled.Int64()), nil
			}
			return int32(v.Int), nil
		}
	case int64:
		f = encodeInt64(t)
	case parquet.Int96:
		f = encodeInt96
	case float32:
		f = func(v types.Value) (float32, error) { return float32(v.Float), nil }
	case float64:
		f = func(v types.Value) (float64, error) { return v.Float, nil }
	case parquet.ByteArray:
		f = func(v types.Value) (parquet.ByteArray, error) { return v.Bytes, nil }
	case parquet.FixedLenByteArray:
		length := descr.TypeLength()
		f = func(v types.Value) (parquet.FixedLenByteArray, error) {
			b := types.EncodeUnscaled(v.Unscaled)
			if len(b) > length {
				return nil, fmt.Errorf("decimal of %d bytes in a column of %d", len(b), length)
			}
			out := make([]byte, length)
			if v.Unscaled.Sign() < 0 {
				for i := range out {
					out[i] = 0xff
				}
			}
			copy(out[length-len(b):], b)
			return out, nil
		}
	}
	return f.(func(types.Value) (T, error))
}

func encodeInt64(t types.Type) func(types.Value) (int64, error) {
	switch t.Kind {
	case types.Decimal:
		return func(v types.Value) (int64, error) { return v.Unscaled.Int64(), nil }
	case types.Timestamp, types.TimestampLTZ:
		if t.Precision <= 3 {
			return func(v types.Value) (int64, error) { return v.Int, nil }
		}
		return func(v types.Value) (int64, error) {
			if v.Int > math.MaxInt64/1000 || v.Int < math.MinInt64/1000 {
				return 0, fmt.Errorf("timestamp of %d ms is out of range", v.Int)
			}
			return v.Int*1000 + int64(v.Nanos/1000), nil
		}
	}
	return func(v types.Value) (int64, error) { return v.Int, nil }
}
