package types

import (
	"encoding/binary"
	"math"
	"slices"
)

// AppendIdentity appends bytes that tell a cell from every other cell of its type
// that is not equal to it. NaN equals itself, -0.0 does not equal 0.0, and the order
// of the entries of a map does not matter.
func AppendIdentity(b []byte, t Type, v Value) []byte {
	if v.Null {
		return append(b, 0)
	}
	b = append(b, 1)
	switch t.Kind {
	case Char, Varchar, Binary, Varbinary:
		return appendSized(b, v.Bytes)
	case Decimal:
		return appendSized(append(b, byte(1+v.Unscaled.Sign())), v.Unscaled.Bytes())
	case Float, Double:
		bits := math.Float64bits(v.Float)
		if math.IsNaN(v.Float) {
			bits = math.Float64bits(math.NaN())
		}
		return binary.BigEndian.AppendUint64(b, bits)
	case Array:
		b = binary.AppendUvarint(b, uint64(len(v.Items)))
		for _, item := range v.Items {
			b = AppendIdentity(b, *t.Element, item)
		}
		return b
	case Map, Multiset:
		key, value := t.EntryTypes()
		entries := make([]string, 0, len(v.Items)/2)
		for i := 0; i+1 < len(v.Items); i += 2 {
			entry := AppendIdentity(nil, key, v.Items[i])
			entries = append(entries, string(AppendIdentity(entry, value, v.Items[i+1])))
		}
		slices.Sort(entries)
		b = binary.AppendUvarint(b, uint64(len(entries)))
		for _, e := range entries {
			b = append(b, e...)
		}
		return b
	case Row:
		for i, item := range v.Items {
			b = AppendIdentity(b, t.Fields[i].Type, item)
		}
		return b
	case Variant:
		for _, item := range v.Items {
			b = appendSized(b, item.Bytes)
		}
		return b
	case Timestamp, TimestampLTZ:
		b = binary.BigEndian.AppendUint32(b, uint32(v.Nanos))
	}
	return binary.BigEndian.AppendUint64(b, uint64(v.Int))
}

func appendSized(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}
