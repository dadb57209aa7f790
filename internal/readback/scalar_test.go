package readback_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"tablectl/internal/readback"
	"tablectl/internal/types"
)

// TestStoredForms reads scalars in forms that Paimon itself does not write, or at
// their limits.
func TestStoredForms(t *testing.T) {
	fixed := func(b ...byte) parquet.Value { return parquet.FixedLenByteArrayValue(b) }
	raw := func(b ...byte) parquet.Value { return parquet.ByteArrayValue(b) }
	leaf := parquet.Leaf
	nanos := parquet.Timestamp(parquet.Nanosecond)
	for _, tt := range []struct {
		typ    string
		node   parquet.Node
		stored parquet.Value
		want   string
	}{
		{"TIMESTAMP(9)", nanos, parquet.Int64Value(-1), "1969-12-31 23:59:59.999999999"},
		{"TIMESTAMP(9)", nanos, parquet.Int64Value(1_000_001), "1970-01-01 00:00:00.001000001"},
		{"TIMESTAMP(6)", parquet.Timestamp(parquet.Microsecond), parquet.Int64Value(-1), "1969-12-31 23:59:59.999999"},
		{"TIMESTAMP(3)", parquet.Timestamp(parquet.Millisecond), parquet.Int64Value(-1), "1969-12-31 23:59:59.999"},
		{"TIMESTAMP(3)", leaf(parquet.Int64Type), parquet.Int64Value(1), "1970-01-01 00:00:00.001"},
		{"TIMESTAMP(6)", leaf(parquet.Int64Type), parquet.Int64Value(1), "1970-01-01 00:00:00.000001"},
		{"TIMESTAMP(9)", leaf(parquet.Int64Type), parquet.Int64Value(1), "error"},
		{"TIMESTAMP_LTZ(9)", leaf(parquet.Int96Type), parquet.Int96Value(deprecated.Int96{1, 0, 2440588}), "1970-01-01 00:00:00.000000001Z"},
		{"TIMESTAMP(9)", leaf(parquet.Int96Type), parquet.Int96Value(deprecated.Int96{math.MaxUint32, math.MaxUint32, 2440588}), "1969-12-31 23:59:59.999999999"},
		{"DECIMAL(5, 2)", leaf(parquet.Int32Type), parquet.Int32Value(-105), "-1.05"},
		{"DECIMAL(5, 2)", leaf(parquet.Int64Type), parquet.Int64Value(105), "1.05"},
		{"DECIMAL(5, 2)", leaf(parquet.FixedLenByteArrayType(3)), fixed(0xff, 0xff, 0x97), "-1.05"},
		{"DECIMAL(5, 2)", leaf(parquet.ByteArrayType), raw(105), "1.05"},
		{"DECIMAL(5, 2)", leaf(parquet.ByteArrayType), raw(), "0.00"},
		{"DECIMAL(38, 0)", leaf(parquet.ByteArrayType), raw(0xff, 0, 0, 0, 0, 0, 0, 0, 0), "-18446744073709551616"},
		{"DECIMAL(38, 0)", leaf(parquet.ByteArrayType), parquet.ByteArrayValue(make([]byte, 65)), "error"},
		{"INT", leaf(parquet.Int64Type), parquet.Int64Value(math.MinInt32), "-2147483648"},
		{"INT", leaf(parquet.Int64Type), parquet.Int64Value(math.MaxInt32 + 1), "error"},
		{"DATE", leaf(parquet.Int32Type), parquet.Int32Value(-1), "1969-12-31"},
		{"TIME(3)", leaf(parquet.Int32Type), parquet.Int32Value(1), "00:00:00.001"},
		{"BIGINT", leaf(parquet.Int32Type), parquet.Int32Value(-1), "-1"},
		{"BOOLEAN", leaf(parquet.BooleanType), parquet.BooleanValue(true), "true"},
		{"BINARY(2)", leaf(parquet.FixedLenByteArrayType(2)), fixed(1, 0xff), "01ff"},
		{"STRING", leaf(parquet.ByteArrayType), raw('a', 0), "a\x00"},
		{"FLOAT", leaf(parquet.DoubleType), parquet.DoubleValue(1), "error"},
		{"STRING", leaf(parquet.Int32Type), parquet.Int32Value(1), "error"},
		{"BLOB", leaf(parquet.ByteArrayType), raw(1), "error"},
	} {
		typ, err := types.Parse(tt.typ)
		if err != nil {
			t.Fatal(err)
		}
		got := "error"
		if v, err := stored(t, typ, tt.node, tt.stored); err == nil {
			got = types.Format(typ, v)
		}
		if got != tt.want {
			t.Errorf("%s of %s is %q, want %q", tt.typ, tt.node.Type(), got, tt.want)
		}
	}
	for _, bits := range []uint32{0x7fc00001, 0xffc00000, 0x80000000} {
		v, err := stored(t, types.Type{Kind: types.Float}, leaf(parquet.FloatType), parquet.FloatValue(math.Float32frombits(bits)))
		if got := math.Float32bits(float32(v.Float)); err != nil || got != bits {
			t.Errorf("%x is read as %x, %v", bits, got, err)
		}
	}
}

// stored writes one value and reads it.
func stored(t *testing.T, typ types.Type, node parquet.Node, v parquet.Value) (types.Value, error) {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[any](&out, parquet.NewSchema("s", parquet.Group{"c": node}))
	if _, err := w.WriteRows([]parquet.Row{{v.Level(0, 0, 0)}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := readback.New(bytes.NewReader(out.Bytes()), int64(out.Len()), "f", []types.Field{{Name: "c", Type: typ}})
	if err != nil {
		return types.Value{}, err
	}
	row, err := r.Next()
	if err != nil {
		return types.Value{}, err
	}
	return row[0], nil
}
