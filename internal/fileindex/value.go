package fileindex

import (
	"encoding/binary"
	"fmt"
	"math"

	"tablectl/internal/types"
)

// indexInt is a value as indexes hold it: integers, days, milliseconds of the
// day, timestamps in milliseconds up to precision 3 and in microseconds above,
// decimals unscaled. It is for kinds other than FLOAT, DOUBLE and text.
func indexInt(t types.Type, v types.Value) (int64, error) {
	switch t.Kind {
	case types.Timestamp, types.TimestampLTZ:
		if t.Precision <= 3 {
			return v.Int, nil
		}
		if v.Int > math.MaxInt64/1000-1 || v.Int < math.MinInt64/1000+1 {
			return 0, fmt.Errorf("timestamp of %d ms is out of range", v.Int)
		}
		return v.Int*1000 + int64(v.Nanos/1000), nil
	case types.Decimal:
		if !v.Unscaled.IsInt64() {
			return 0, fmt.Errorf("decimal %s is out of range", v.Unscaled)
		}
		return v.Unscaled.Int64(), nil
	}
	return v.Int, nil
}

// floatBits are the IEEE bits with one NaN for all.
func floatBits(t types.Type, f float64) uint64 {
	if t.Kind == types.Float {
		if math.IsNaN(f) {
			return 0x7fc00000
		}
		return uint64(math.Float32bits(float32(f)))
	}
	if math.IsNaN(f) {
		return 0x7ff8000000000000
	}
	return math.Float64bits(f)
}

// keyWidth is the length of an encoded key, or 0 for text, whose keys vary.
func keyWidth(t types.Type) int {
	switch t.Kind {
	case types.Boolean, types.TinyInt:
		return 1
	case types.SmallInt:
		return 2
	case types.Int, types.Date, types.Time, types.Float:
		return 4
	case types.Char, types.Varchar:
		return 0
	}
	return 8
}

// encodeKey writes a value as bitmap indexes hold it, big-endian.
func encodeKey(t types.Type, v types.Value) ([]byte, error) {
	var n uint64
	switch t.Kind {
	case types.Char, types.Varchar:
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(v.Bytes))), v.Bytes...), nil
	case types.Float, types.Double:
		n = floatBits(t, v.Float)
	default:
		i, err := indexInt(t, v)
		if err != nil {
			return nil, err
		}
		n = uint64(i)
	}
	full := binary.BigEndian.AppendUint64(nil, n)
	return full[8-keyWidth(t):], nil
}
