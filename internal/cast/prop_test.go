package cast

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"tablectl/internal/types"
)

func mustCast(t interface{ Fatal(...any) }, from, to types.Type, v types.Value) types.Value {
	cast, err := Resolve(from, to)
	if err != nil {
		t.Fatal(err)
	}
	r, err := cast(v)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestIntegerWidening shows that integers keep their order in every wider type,
// and come back unchanged from those that hold them exactly.
func TestIntegerWidening(t *testing.T) {
	limits := map[types.Kind]int64{types.TinyInt: math.MaxInt8, types.SmallInt: math.MaxInt16, types.Int: math.MaxInt32, types.BigInt: math.MaxInt64}
	rapid.Check(t, func(t *rapid.T) {
		from := types.Type{Kind: rapid.SampledFrom([]types.Kind{types.TinyInt, types.SmallInt, types.Int, types.BigInt}).Draw(t, "from")}
		scale := rapid.IntRange(0, 19).Draw(t, "scale")
		to := rapid.SampledFrom([]types.Type{
			{Kind: types.SmallInt},
			{Kind: types.Int},
			{Kind: types.BigInt},
			{Kind: types.Float},
			{Kind: types.Double},
			{Kind: types.Decimal, Precision: 19 + scale, Scale: scale},
		}).Draw(t, "to")
		if integer(to.Kind) && to.Kind < from.Kind {
			t.Skip("narrower")
		}
		limit := limits[from.Kind]
		numbers := rapid.Int64Range(-limit-1, limit)
		a, b := types.Value{Int: numbers.Draw(t, "a")}, types.Value{Int: numbers.Draw(t, "b")}
		before := types.Compare(from.Kind, a, b)
		x, y := mustCast(t, from, to, a), mustCast(t, from, to, b)
		after := types.Compare(to.Kind, x, y)
		if floating(to.Kind) {
			if before*after < 0 || before == 0 && after != 0 {
				t.Fatalf("%d and %d compare %d, as %s %d", a.Int, b.Int, before, to, after)
			}
			return
		}
		if before != after {
			t.Fatalf("%d and %d compare %d, as %s %d", a.Int, b.Int, before, to, after)
		}
		if back := mustCast(t, to, from, x); back.Int != a.Int {
			t.Fatalf("%d comes back from %s as %d", a.Int, to, back.Int)
		}
	})
}

// TestDecimalRescale shows that a decimal is rounded half up, away from zero, to
// the new scale, and is null if that has too many digits.
func TestDecimalRescale(t *testing.T) {
	decimals := rapid.Custom(func(t *rapid.T) types.Type {
		precision := rapid.IntRange(1, 38).Draw(t, "precision")
		return types.Type{Kind: types.Decimal, Precision: precision, Scale: rapid.IntRange(0, precision).Draw(t, "scale")}
	})
	rapid.Check(t, func(t *rapid.T) {
		from, to := decimals.Draw(t, "from"), decimals.Draw(t, "to")
		digits := rapid.StringMatching(fmt.Sprintf("-?[0-9]{1,%d}", from.Precision)).Draw(t, "unscaled")
		unscaled, _ := new(big.Int).SetString(digits, 10)
		v := mustCast(t, from, to, types.Value{Unscaled: unscaled})

		exact := new(big.Rat).SetFrac(new(big.Int).Mul(new(big.Int).Abs(unscaled), pow10(to.Scale)), pow10(from.Scale))
		exact.Add(exact, big.NewRat(1, 2))
		want := new(big.Int).Quo(exact.Num(), exact.Denom()) // floor(|x| + 1/2)
		if unscaled.Sign() < 0 {
			want.Neg(want)
		}
		switch fit := len(new(big.Int).Abs(want).String()) <= to.Precision || want.Sign() == 0; {
		case v.Null == fit:
			t.Fatalf("%s from %s to %s is null: %t, but fits: %t", digits, from, to, v.Null, fit)
		case fit && v.Unscaled.Cmp(want) != 0:
			t.Fatalf("%s from %s to %s is %s, want %s", digits, from, to, v.Unscaled, want)
		}
	})
}

// TestTextLength shows that CHAR and VARCHAR cut and pad text in code points.
func TestTextLength(t *testing.T) {
	runes := rapid.RuneFrom([]rune("a éß日本😀\u0301 \x00"))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(runes).Draw(t, "text")
		n := rapid.IntRange(1, 12).Draw(t, "length")
		want := []rune(s)
		if len(want) > n {
			want = want[:n]
		}
		in := types.Value{Bytes: []byte(s)}
		from := types.Type{Kind: types.Varchar, Length: types.MaxLength}
		if v := mustCast(t, from, types.Type{Kind: types.Varchar, Length: n}, in); string(v.Bytes) != string(want) {
			t.Fatalf("%q as VARCHAR(%d) is %q, want %q", s, n, v.Bytes, string(want))
		}
		padded := string(want) + strings.Repeat(" ", n-len(want))
		if v := mustCast(t, from, types.Type{Kind: types.Char, Length: n}, in); string(v.Bytes) != padded {
			t.Fatalf("%q as CHAR(%d) is %q, want %q", s, n, v.Bytes, padded)
		}
	})
}

// TestExponents shows that text with a huge exponent is worked out at once: as a
// decimal it is zero or null, never a number of a billion digits.
func TestExponents(t *testing.T) {
	text := mustType(t, "STRING")
	zero := "0." + strings.Repeat("0", 38)
	for _, tt := range []struct {
		in, whole, fraction string // as DECIMAL(38, 0) and DECIMAL(38, 38)
	}{
		{"1e999999999", "null", "null"},
		{"-1e2147483647", "null", "null"},
		{"1e-999999999", "0", zero},
		{"-1e-2147483647", "0", zero},
		{"0e2147483647", "0", zero},
		{"0e-2147483647", "0", zero},
		{strings.Repeat("9", 100_000) + "e-99999", "10", "null"},
		{"0." + strings.Repeat("0", 100_000) + "1", "0", zero},
	} {
		for to, want := range map[string]string{"DECIMAL(38, 0)": tt.whole, "DECIMAL(38, 38)": tt.fraction} {
			to := mustType(t, to)
			cast, err := Resolve(text, to)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan string, 1)
			go func() {
				switch v, err := cast(types.Value{Bytes: []byte(tt.in)}); {
				case err != nil:
					done <- "an error"
				case v.Null:
					done <- "null"
				default:
					done <- formatCell(to, v)
				}
			}()
			select {
			case got := <-done:
				if got != want {
					t.Errorf("%.20s… as %s is %s, want %s", tt.in, to, got, want)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%.20s… as %s is not done after 20 seconds", tt.in, to)
			}
		}
	}
}

// fits reports whether a value is one that the type can hold.
func fits(typ types.Type, v types.Value) bool {
	switch typ.Kind {
	case types.Char:
		return utf8.RuneCount(v.Bytes) == typ.Length
	case types.Varchar:
		return utf8.RuneCount(v.Bytes) <= typ.Length
	case types.Binary:
		return len(v.Bytes) == typ.Length
	case types.Varbinary:
		return len(v.Bytes) <= typ.Length
	case types.Boolean:
		return v.Int == 0 || v.Int == 1
	case types.TinyInt:
		return v.Int == int64(int8(v.Int))
	case types.SmallInt:
		return v.Int == int64(int16(v.Int))
	case types.Int, types.Date, types.Time:
		return v.Int == int64(int32(v.Int))
	case types.Float:
		return v.Float != v.Float || v.Float == float64(float32(v.Float))
	case types.Decimal:
		return v.Unscaled != nil && v.Unscaled.CmpAbs(pow10(typ.Precision)) < 0
	case types.Timestamp:
		return v.Nanos >= 0 && v.Nanos < 1e6
	}
	return true
}

// FuzzCast shows that no text makes a cast panic or give what its type cannot
// hold, and that what came out can be made text again.
func FuzzCast(f *testing.F) {
	for _, s := range []string{
		"", " ", "-", "1", "-1.5", "1e999999999", "1e-999999999", "0x1p-1074", "NaN", "true", "2024-02-29", "2024-", "--",
		"24:00:00", "12:34:56.789-01:30", "2024-02-29 12:34:56.123456789", "+10000-01-01 24:00:00", "9223372036854775808", "日本語", "\xff\xc3",
	} {
		f.Add(s)
	}
	var targets []types.Type
	for _, s := range []string{
		"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(1, 1)", "DECIMAL(38, 10)", "CHAR(3)", "VARCHAR(5)",
		"BINARY(3)", "VARBINARY(5)", "DATE", "TIME(0)", "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(5)", "TIMESTAMP(6)", "TIMESTAMP(9)",
	} {
		targets = append(targets, mustType(f, s))
	}
	text := mustType(f, "STRING")
	f.Fuzz(func(t *testing.T, s string) {
		for _, to := range targets {
			cast, err := Resolve(text, to)
			if err != nil {
				t.Fatal(err)
			}
			v, err := cast(types.Value{Bytes: []byte(s)})
			if err != nil || v.Null {
				continue
			}
			if !fits(to, v) {
				t.Errorf("%q as %s is %+v", s, to, v)
			}
			mustCast(t, to, text, v)
		}
	})
}
