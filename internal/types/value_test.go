package types

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustParse(t *testing.T, s string) Type {
	t.Helper()
	typ, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// TestParseLiteral shows the literals of every type, by what Format makes of them.
func TestParseLiteral(t *testing.T) {
	for _, tt := range []struct{ typ, in, want string }{
		{"BOOLEAN", "true", "true"},
		{"BOOLEAN", "False", "false"},
		{"TINYINT", "-128", "-128"},
		{"TINYINT", "127", "127"},
		{"SMALLINT", "-32768", "-32768"},
		{"INT", "2147483647", "2147483647"},
		{"BIGINT", "-9223372036854775808", "-9223372036854775808"},
		{"BIGINT", "007", "7"},
		{"FLOAT", "0.1", "0.1"},
		{"FLOAT", "16777217", "1.6777216e+07"},
		{"DOUBLE", "-0.0", "-0"},
		{"DOUBLE", "1e300", "1e+300"},
		{"DOUBLE", "16777217", "1.6777217e+07"},
		{"DECIMAL(5, 2)", "1.5", "1.50"},
		{"DECIMAL(5, 2)", "-999.99", "-999.99"},
		{"DECIMAL(5, 2)", "000999.9900", "999.99"},
		{"DECIMAL(5, 2)", "-0", "0.00"},
		{"DECIMAL(5, 2)", "5.", "5.00"},
		{"DECIMAL(2, 2)", ".07", "0.07"},
		{"DECIMAL(2, 2)", "-0.99", "-0.99"},
		{"DECIMAL(38, 0)", strings.Repeat("9", 38), strings.Repeat("9", 38)},
		{"CHAR(3)", " a ", " a "},
		{"STRING", "", ""},
		{"STRING", "日本\x00", "日本\x00"},
		{"BYTES", "00fFa0", "00ffa0"},
		{"BINARY(2)", "", ""},
		{"DATE", "2024-02-29", "2024-02-29"},
		{"DATE", "0001-01-01", "0001-01-01"},
		{"DATE", "1969-12-31", "1969-12-31"},
		{"TIME(0)", "23:59:59", "23:59:59"},
		{"TIME(3)", "12:34:56.7", "12:34:56.700"},
		{"TIME(3)", "00:00:00.001", "00:00:00.001"},
		{"TIMESTAMP(0)", "2024-02-29 12:34:56", "2024-02-29 12:34:56"},
		{"TIMESTAMP(0)", "2024-02-29 12:34:56.000", "2024-02-29 12:34:56"},
		{"TIMESTAMP(3)", "2024-02-29T12:34:56.12", "2024-02-29 12:34:56.120"},
		{"TIMESTAMP(3)", "2024-02-29 12:34", "2024-02-29 12:34:00.000"},
		{"TIMESTAMP(6)", "2024-02-29", "2024-02-29 00:00:00.000000"},
		{"TIMESTAMP(9)", "1969-12-31 23:59:59.999999999", "1969-12-31 23:59:59.999999999"},
		{"TIMESTAMP(9)", "0001-01-01 00:00:00.000000001", "0001-01-01 00:00:00.000000001"},
		{"TIMESTAMP_LTZ(3)", "2024-02-29 12:34:56.123", "2024-02-29 12:34:56.123Z"},
	} {
		typ := mustParse(t, tt.typ)
		v, err := ParseLiteral(typ, tt.in)
		if err != nil {
			t.Errorf("%s %q: %v", tt.typ, tt.in, err)
			continue
		}
		if got := Format(typ, v); got != tt.want {
			t.Errorf("%s %q is %q, want %q", tt.typ, tt.in, got, tt.want)
		}
	}
}

// TestParseLiteralRejects shows that what is not a value of the type, or not
// exactly one, is an error that says of which type.
func TestParseLiteralRejects(t *testing.T) {
	for typ, literals := range map[string][]string{
		"BOOLEAN":          {"", "1", "yes", "t", " true", "null"},
		"TINYINT":          {"", "128", "-129", "1.0", "1e2", " 1", "0x1", "1_0", "a"},
		"SMALLINT":         {"32768"},
		"INT":              {"2147483648", "--1", "١"},
		"BIGINT":           {"9223372036854775808", "-9223372036854775809"},
		"FLOAT":            {"", "a", "3.5e38", "0x10", "1,5", "1_0", "1f"},
		"DOUBLE":           {"1e400", "-1e400", " 1", "1e"},
		"DECIMAL(5, 2)":    {"", ".", "-", "--1", "1000", "1.001", "-1000.00", "1e2", "1.2.3", "1x2", " 1", "1-", "NaN"},
		"DECIMAL(2, 2)":    {"1", "0.001"},
		"BYTES":            {"0", "0g", " 00", "0x00"},
		"DATE":             {"", "2024-2-9", "2023-02-29", "2024-13-01", "20240229", "2024-02-29 00:00:00", "24-01-01", "10000-01-01"},
		"TIME(0)":          {"", "24:00:00", "12:60:00", "12:34", "12:34:56,7", "12:34:56.5", "-1:00:00"},
		"TIME(2)":          {"12:34:56.789"},
		"TIME(3)":          {"12:34:56.7891", "12:34:56.0001", "12:34:56."},
		"TIMESTAMP(0)":     {"2024-02-29 12:34:56.5", "12:34:56", "2024-02-30", "2024-02-29 24:00:00", "2024-02-29TT12:34:56"},
		"TIMESTAMP(3)":     {"", "2024-02-29 12:34:56.1234", "2024-02-29 12:34:56,123", "2024-02-29 12:34:56+01:00"},
		"TIMESTAMP(9)":     {"2024-02-29 12:34:56.1234567891"},
		"TIMESTAMP_LTZ(3)": {"2024-02-29 12:34:56.1234", "now"},
		"VARIANT":          {"1", ""},
	} {
		parsed := mustParse(t, typ)
		for _, s := range literals {
			v, err := ParseLiteral(parsed, s)
			if err == nil {
				t.Errorf("%s %q is %s, want an error", typ, s, Format(parsed, v))
			} else if want := fmt.Sprintf("%q is not a %s: ", s, parsed); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s %q: error %v", typ, s, err)
			}
		}
	}
}

// cells draws a value that a type can hold, not null.
func cells(t *rapid.T, typ Type) Value {
	const firstDay, lastDay = -719162, 2932896 // of the years 1 to 9999
	switch typ.Kind {
	case Char, Varchar:
		return Value{Bytes: []byte(rapid.String().Draw(t, "text"))}
	case Binary, Varbinary:
		return Value{Bytes: rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")}
	case Boolean:
		return Bool(rapid.Bool().Draw(t, "bool"))
	case Decimal:
		n, _ := new(big.Int).SetString(rapid.StringMatching(fmt.Sprintf("-?[0-9]{1,%d}", typ.Precision)).Draw(t, "unscaled"), 10)
		return Value{Unscaled: n}
	case Float:
		return Value{Float: float64(rapid.Float32().Draw(t, "float"))}
	case Double:
		return Value{Float: rapid.Float64().Draw(t, "double")}
	case Date:
		return Value{Int: rapid.Int64Range(firstDay, lastDay).Draw(t, "days")}
	case Time:
		unit := int64(math.Pow10(max(0, 3-typ.Precision)))
		return Value{Int: rapid.Int64Range(0, millisPerDay-1).Draw(t, "millis") / unit * unit}
	case Timestamp, TimestampLTZ:
		unit := int64(math.Pow10(9 - typ.Precision))
		nanos := rapid.Int64Range(0, 999_999_999).Draw(t, "nanos") / unit * unit
		seconds := rapid.Int64Range(firstDay*86400, lastDay*86400).Draw(t, "seconds")
		return Value{Int: seconds*1000 + nanos/1e6, Nanos: int32(nanos % 1e6)}
	}
	bits := map[Kind]int{TinyInt: 8, SmallInt: 16, Int: 32, BigInt: 64}[typ.Kind]
	return Value{Int: rapid.Int64().Draw(t, "int") >> (64 - bits)}
}

// TestFormatParse shows that Format writes literals that ParseLiteral reads back
// as the same cell.
func TestFormatParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := scalarTypes(t)
		v := cells(t, typ)
		s := strings.TrimSuffix(Format(typ, v), map[bool]string{true: "Z"}[typ.Kind == TimestampLTZ])
		back, err := ParseLiteral(typ, s)
		if err != nil || Compare(typ.Kind, v, back) != 0 {
			t.Fatalf("%s %+v is written %q and read as %+v (%v)", typ, v, s, back, err)
		}
	})
	if s := Format(Type{Kind: Int}, NullValue); s != "null" {
		t.Errorf("null is written %q", s)
	}
}

// TestCompare shows the order of cells of every kind: each list ascends.
func TestCompare(t *testing.T) {
	floats := []Value{NullValue, {Float: math.Inf(-1)}, {Float: -1}, {Float: math.Copysign(0, -1)}, {}, {Float: 5e-324}, {Float: math.Inf(1)}, {Float: math.NaN()}}
	texts := []Value{NullValue, {}, {Bytes: []byte{0}}, {Bytes: []byte("a")}, {Bytes: []byte("a\x00")}, {Bytes: []byte("b")}, {Bytes: []byte{0x7f}}, {Bytes: []byte{0x80}}, {Bytes: []byte{0xff}}}
	ints := []Value{NullValue, {Int: math.MinInt64}, {Int: -1}, {}, {Int: 1}, {Int: math.MaxInt64}}
	times := []Value{NullValue, {Int: -1, Nanos: 999_999}, {}, {Nanos: 1}, {Int: 1}, {Int: 1, Nanos: 2}}
	decimals := []Value{NullValue, {Unscaled: big.NewInt(-1)}, {Unscaled: new(big.Int)}, {Unscaled: pow2(70)}, {Unscaled: pow2(71)}}
	for kind := Char; kind <= TimestampLTZ; kind++ {
		ascending := ints
		switch kind {
		case Char, Varchar, Binary, Varbinary:
			ascending = texts
		case Float, Double:
			ascending = floats
		case Decimal:
			ascending = decimals
		case Timestamp, TimestampLTZ:
			ascending = times
		}
		for i, a := range ascending {
			for j, b := range ascending {
				if got := Compare(kind, a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
					t.Errorf("%s: %+v and %+v compare %d", kind, a, b, got)
				}
			}
		}
	}
	if other := math.Float64frombits(0x7ff8000000000001); CompareFloat(math.NaN(), other) != 0 || CompareFloat(-other, other) != 0 {
		t.Error("NaN is not equal to NaN")
	}
}

func pow2(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }

// TestUnscaled shows the bytes of unscaled decimals, which are Java's
// BigInteger.toByteArray, and that they read back, also with sign bytes too many.
func TestUnscaled(t *testing.T) {
	for n, want := range map[int64]string{
		0: "00", 1: "01", 127: "7f", 128: "0080", 255: "00ff", 256: "0100", 32767: "7fff", 32768: "008000",
		-1: "ff", -128: "80", -129: "ff7f", -256: "ff00", -32768: "8000", -32769: "ff7fff", math.MinInt64: "8000000000000000", math.MaxInt64: "7fffffffffffffff",
	} {
		if got := fmt.Sprintf("%x", EncodeUnscaled(big.NewInt(n))); got != want {
			t.Errorf("%d is encoded as %s, want %s", n, got, want)
		}
		if got := DecodeUnscaled(EncodeUnscaled(big.NewInt(n))); got.Cmp(big.NewInt(n)) != 0 {
			t.Errorf("%s is read back as %s, want %d", want, got, n)
		}
	}
	if n := DecodeUnscaled(nil); n.Sign() != 0 {
		t.Errorf("no bytes are %s", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := DecodeUnscaled(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes"))
		b := EncodeUnscaled(n)
		if len(b) == 0 || len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
			t.Fatalf("%s is encoded as %x, which is not the shortest", n, b)
		}
		padded := append(bytes.Repeat([]byte{byte(n.Sign() >> 1)}, rapid.IntRange(0, 3).Draw(t, "padding")), b...)
		if got := DecodeUnscaled(padded); got.Cmp(n) != 0 {
			t.Fatalf("%s is read back from %x as %s", n, padded, got)
		}
	})
}

// TestJavaFloat shows the text of FLOAT and DOUBLE in Java 19 and later: the
// fewest digits that read back, but the nearest ones if two are as good as one.
func TestJavaFloat(t *testing.T) {
	for _, tt := range []struct {
		f    float64
		bits int
		want string
	}{
		{0, 64, "0.0"},
		{math.Copysign(0, -1), 32, "-0.0"},
		{1, 32, "1.0"},
		{-1.5, 64, "-1.5"},
		{0.001, 64, "0.001"},
		{0.00099, 64, "9.9E-4"},
		{9999999, 64, "9999999.0"},
		{1e7, 64, "1.0E7"},
		{-12345678, 64, "-1.2345678E7"},
		{1e23, 64, "1.0E23"},
		{2e23, 64, "2.0E23"},
		{8.41e21, 64, "8.41E21"},
		{0.30000000000000004, 64, "0.30000000000000004"},
		{math.MaxFloat64, 64, "1.7976931348623157E308"},
		{math.SmallestNonzeroFloat64, 64, "4.9E-324"},
		{2 * math.SmallestNonzeroFloat64, 64, "9.9E-324"},
		{float64(float32(3.4e10)), 32, "3.4E10"},
		{float64(float32(0.1)), 32, "0.1"},
		{1 << 31, 32, "2.1474836E9"},
		{math.MaxFloat32, 32, "3.4028235E38"},
		{math.SmallestNonzeroFloat32, 32, "1.4E-45"},
		{2 * math.SmallestNonzeroFloat32, 32, "2.8E-45"},
		{math.NaN(), 64, "NaN"},
		{math.Inf(1), 32, "Infinity"},
		{math.Inf(-1), 64, "-Infinity"},
	} {
		if got := JavaFloat(tt.f, tt.bits); got != tt.want {
			t.Errorf("%v of %d bits is %q, want %q", tt.f, tt.bits, got, tt.want)
		}
	}
}
