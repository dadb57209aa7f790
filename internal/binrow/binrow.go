// Package binrow reads and writes Paimon's binary row, the form in which
// manifests hold partitions, keys and statistics.
//
// Serialized, a row is a big-endian arity followed by little-endian row bytes: a
// null-bit area whose first byte is the row kind, one 8-byte slot per field,
// and a variable-length part (reference: BinaryRow, BinaryRowWriter,
// SerializationUtils). The serialized bytes are a row's identity, so rows that
// exist are copied, never re-encoded.
package binrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"

	"tablectl/internal/types"
)

// ErrMalformed is wrapped by every error about bytes that are not a binary row.
var ErrMalformed = errors.New("malformed binary row")

const (
	headerBits    = 8
	inlineMax     = 7
	compactDigits = 18 // decimals of at most this precision are a 64-bit integer
	wideDecimal   = 16 // bytes kept for any other decimal
)

// Row is a view on a serialized row.
type Row struct {
	arity int
	data  []byte // without the arity prefix
}

// Parse checks the frame of a serialized row. Fields are checked when they are read.
func Parse(serialized []byte) (Row, error) {
	if len(serialized) < 4 {
		return Row{}, fmt.Errorf("%w: %d bytes", ErrMalformed, len(serialized))
	}
	arity := binary.BigEndian.Uint32(serialized)
	data := serialized[4:]
	if uint64(arity) > uint64(len(data))/8 || len(data) < fixedSize(int(arity)) {
		return Row{}, fmt.Errorf("%w: %d fields in %d bytes", ErrMalformed, arity, len(data))
	}
	return Row{arity: int(arity), data: data}, nil
}

// Arity is the number of fields.
func (r Row) Arity() int { return r.arity }

func nullBytes(arity int) int { return (arity + 63 + headerBits) / 64 * 8 }

func fixedSize(arity int) int { return nullBytes(arity) + arity*8 }

// Value reads field i as a cell of the scalar type t.
func (r Row) Value(i int, t types.Type) (types.Value, error) {
	if i >= r.arity {
		return types.Value{}, fmt.Errorf("%w: field %d of %d", ErrMalformed, i, r.arity)
	}
	if bit := i + headerBits; r.data[bit/8]&(1<<(bit%8)) != 0 {
		return types.NullValue, nil
	}
	slot := r.data[nullBytes(r.arity)+i*8:][:8]
	word := binary.LittleEndian.Uint64(slot)
	switch t.Kind {
	case types.Boolean:
		return types.Bool(slot[0] != 0), nil
	case types.TinyInt:
		return types.Value{Int: int64(int8(slot[0]))}, nil
	case types.SmallInt:
		return types.Value{Int: int64(int16(word))}, nil
	case types.Int, types.Date, types.Time:
		return types.Value{Int: int64(int32(word))}, nil
	case types.BigInt:
		return types.Value{Int: int64(word)}, nil
	case types.Float:
		return types.Value{Float: float64(math.Float32frombits(uint32(word)))}, nil
	case types.Double:
		return types.Value{Float: math.Float64frombits(word)}, nil
	case types.Char, types.Varchar, types.Binary, types.Varbinary:
		b, err := r.bytes(i, slot, word)
		return types.Value{Bytes: b}, err
	case types.Decimal:
		return r.decimal(i, word, t)
	case types.Timestamp, types.TimestampLTZ:
		return r.timestamp(i, word, t)
	}
	return types.Value{}, fmt.Errorf("%w: field %d has the type %s", ErrMalformed, i, t)
}

func (r Row) bytes(i int, slot []byte, word uint64) ([]byte, error) {
	if mark := slot[7]; mark&0x80 != 0 {
		n := int(mark & 0x7f)
		if n > inlineMax {
			return nil, fmt.Errorf("%w: field %d has %d bytes in its slot", ErrMalformed, i, n)
		}
		return slot[:n:n], nil
	}
	return r.variable(i, word>>32, word&math.MaxUint32)
}

func (r Row) variable(i int, offset, length uint64) ([]byte, error) {
	if end := offset + length; offset < uint64(fixedSize(r.arity)) || end > uint64(len(r.data)) {
		return nil, fmt.Errorf("%w: field %d lies at %d+%d of %d bytes", ErrMalformed, i, offset, length, len(r.data))
	}
	return r.data[offset : offset+length : offset+length], nil
}

func (r Row) decimal(i int, word uint64, t types.Type) (types.Value, error) {
	if t.Precision <= compactDigits {
		return types.Value{Unscaled: big.NewInt(int64(word))}, nil
	}
	b, err := r.variable(i, word>>32, word&math.MaxUint32)
	if err != nil {
		return types.Value{}, err
	}
	if len(b) > wideDecimal {
		return types.Value{}, fmt.Errorf("%w: field %d is a decimal of %d bytes", ErrMalformed, i, len(b))
	}
	return types.Value{Unscaled: types.DecodeUnscaled(b)}, nil
}

func (r Row) timestamp(i int, word uint64, t types.Type) (types.Value, error) {
	if t.Precision <= 3 {
		return types.Value{Int: int64(word)}, nil
	}
	b, err := r.variable(i, word>>32, 8)
	if err != nil {
		return types.Value{}, err
	}
	nanos := word & math.MaxUint32
	if nanos >= 1e6 {
		return types.Value{}, fmt.Errorf("%w: field %d has %d nanoseconds in a millisecond", ErrMalformed, i, nanos)
	}
	return types.Value{Int: int64(binary.LittleEndian.Uint64(b)), Nanos: int32(nanos)}, nil
}

// Decode reads every field of a serialized row. The row must have as many
// fields as there are types.
func Decode(serialized []byte, ts []types.Type) ([]types.Value, error) {
	row, err := Parse(serialized)
	if err != nil {
		return nil, err
	}
	if row.arity != len(ts) {
		return nil, fmt.Errorf("%w: %d fields where %d are expected", ErrMalformed, row.arity, len(ts))
	}
	values := make([]types.Value, len(ts))
	for i, t := range ts {
		if values[i], err = row.Value(i, t); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Empty returns the serialized row without fields, which append tables store as
// their keys and which stands for absent statistics.
func Empty() []byte { return Encode(nil, nil) }

// Encode serializes cells of scalar types, byte for byte as the reference does.
// It panics when there are not as many values as types: that is a mistake of
// the caller, not of the data.
func Encode(ts []types.Type, values []types.Value) []byte {
	if len(ts) != len(values) {
		panic(fmt.Sprintf("binrow: %d values for %d types", len(values), len(ts)))
	}
	out := make([]byte, 4+fixedSize(len(ts)), 4+fixedSize(len(ts))+32)
	binary.BigEndian.PutUint32(out, uint32(len(ts)))
	for i, t := range ts {
		out = appendField(out, len(ts), i, t, values[i])
	}
	return out
}

func appendField(out []byte, arity, i int, t types.Type, v types.Value) []byte {
	pos := 4 + nullBytes(arity) + i*8
	offset := uint64(len(out) - 4)
	if v.Null {
		bit := i + headerBits
		out[4+bit/8] |= 1 << (bit % 8)
		// Room is kept even for nulls, so that a writer can update in place.
		switch {
		case t.Kind == types.Decimal && t.Precision > compactDigits:
			binary.LittleEndian.PutUint64(out[pos:], offset<<32)
			out = append(out, make([]byte, wideDecimal)...)
		case (t.Kind == types.Timestamp || t.Kind == types.TimestampLTZ) && t.Precision > 3:
			binary.LittleEndian.PutUint64(out[pos:], offset<<32)
			out = append(out, make([]byte, 8)...)
		}
		return out
	}
	slot := out[pos : pos+8]
	switch t.Kind {
	case types.Boolean, types.TinyInt:
		slot[0] = byte(v.Int)
	case types.SmallInt:
		binary.LittleEndian.PutUint16(slot, uint16(v.Int))
	case types.Int, types.Date, types.Time:
		binary.LittleEndian.PutUint32(slot, uint32(v.Int))
	case types.BigInt:
		binary.LittleEndian.PutUint64(slot, uint64(v.Int))
	case types.Float:
		binary.LittleEndian.PutUint32(slot, math.Float32bits(float32(v.Float)))
	case types.Double:
		binary.LittleEndian.PutUint64(slot, math.Float64bits(v.Float))
	case types.Char, types.Varchar, types.Binary, types.Varbinary:
		if len(v.Bytes) <= inlineMax {
			copy(slot, v.Bytes)
			slot[7] = 0x80 | byte(len(v.Bytes))
			return out
		}
		binary.LittleEndian.PutUint64(slot, offset<<32|uint64(len(v.Bytes)))
		out = append(out, v.Bytes...)
		out = append(out, make([]byte, -len(v.Bytes)&7)...)
	case types.Decimal:
		if t.Precision <= compactDigits {
			binary.LittleEndian.PutUint64(slot, uint64(v.Unscaled.Int64()))
			return out
		}
		b := types.EncodeUnscaled(v.Unscaled)
		binary.LittleEndian.PutUint64(slot, offset<<32|uint64(len(b)))
		out = append(out, b...)
		out = append(out, make([]byte, wideDecimal-len(b))...)
	case types.Timestamp, types.TimestampLTZ:
		if t.Precision <= 3 {
			binary.LittleEndian.PutUint64(slot, uint64(v.Int))
			return out
		}
		binary.LittleEndian.PutUint64(slot, offset<<32|uint64(uint32(v.Nanos)))
		out = binary.LittleEndian.AppendUint64(out, uint64(v.Int))
	default:
		panic("binrow: cannot encode " + t.String())
	}
	return out
}
