package cast

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tablectl/internal/types"
)

// zoned reports whether the reference's cast depends on the zone of the reading
// process, so that Resolve refuses it.
func zoned(from, to types.Type) bool {
	switch {
	case from.Kind == types.TimestampLTZ:
		return to.Kind != types.TimestampLTZ && to.Kind != types.Int && to.Kind != types.BigInt
	case to.Kind == types.TimestampLTZ:
		return from.Kind != types.Time
	}
	return false
}

// TestGoldens shows that every cast between two scalar types gives what Paimon
// 1.4.2 gives, down to its errors and to which types have no cast.
func TestGoldens(t *testing.T) {
	byPair := map[[2]string][]golden{}
	for _, g := range readGoldens(t) {
		pair := [2]string{g.From, g.To}
		byPair[pair] = append(byPair[pair], g)
	}
	if n := 28 * 28; len(byPair) < n {
		t.Errorf("goldens for %d pairs of types, want all %d", len(byPair), n)
	}
	pairs := slices.SortedFunc(maps.Keys(byPair), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, pair := range pairs {
		goldens := byPair[pair]
		from, to := mustType(t, pair[0]), mustType(t, pair[1])
		cast, err := Resolve(from, to)
		if refused := goldens[0].Unsupported || zoned(from, to); refused || err != nil {
			switch {
			case !refused:
				t.Errorf("%s to %s: %v", from, to, err)
			case err == nil:
				t.Errorf("%s to %s: there is a cast", from, to)
			case !strings.Contains(err.Error(), from.String()) || !strings.Contains(err.Error(), to.String()):
				t.Errorf("%s to %s: the error names neither: %v", from, to, err)
			case !goldens[0].Unsupported && !strings.Contains(err.Error(), "time zone"):
				t.Errorf("%s to %s: the error does not say why: %v", from, to, err)
			}
			continue
		}
		for _, g := range goldens {
			g.check(t, cast, from, to)
		}
	}
}

func (g golden) check(t *testing.T, cast Func, from, to types.Type) {
	t.Helper()
	in, err := parseCell(from, g.In)
	if err != nil {
		t.Fatalf("%s %q: %v", from, g.In, err)
	}
	before := formatCell(from, in)
	v, err := cast(in)
	if after := formatCell(from, in); after != before {
		t.Errorf("%s to %s: changed its input from %q to %q", from, to, before, after)
	}
	want, got := "null", "null"
	switch {
	case g.Error:
		want = "an error"
	case g.Out != nil:
		want = strconv.Quote(*g.Out)
	}
	switch {
	case err != nil && g.Error:
		return
	case err != nil:
		got = fmt.Sprintf("the error %q", err)
	case !v.Null:
		got = strconv.Quote(formatCell(to, v))
	}
	if got != want && !shorterFloat(from, to, want, got) {
		t.Errorf("%s to %s: %q gives %s, want %s", from, to, g.In, got, want)
	}
}

// shorterFloat reports whether two texts or decimals are one FLOAT or DOUBLE, but
// want has more digits than are needed: the goldens are from Java 17, and Java
// prints the fewest digits, though at least two, only since 19.
func shorterFloat(from, to types.Type, want, got string) bool {
	bits := 64 // FLOAT becomes DOUBLE on its way to DECIMAL
	if from.Kind == types.Float && to.Kind != types.Decimal {
		bits = 32
	}
	if !floating(from.Kind) || !text(to.Kind) && to.Kind != types.Decimal {
		return false
	}
	want, got = strings.Trim(want, `"`), strings.Trim(got, `"`)
	w, wantErr := strconv.ParseFloat(want, bits)
	g, gotErr := strconv.ParseFloat(got, bits)
	return wantErr == nil && gotErr == nil && w == g && max(2, significant(got)) < significant(want)
}

// significant is the number of digits without zeros at either end.
func significant(number string) int {
	mantissa, _, _ := strings.Cut(number, "E")
	return len(strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0"))
}

// TestResolveRefuses shows that types without single cells have no cast, not
// even to text, and that equal types need none, whatever their nullability.
func TestResolveRefuses(t *testing.T) {
	array := types.Type{Kind: types.Array, Element: &types.Type{Kind: types.Int}}
	text := mustType(t, "STRING")
	for _, pair := range [][2]types.Type{{array, text}, {text, array}, {mustType(t, "VARIANT"), text}, {text, mustType(t, "BLOB")}} {
		if _, err := Resolve(pair[0], pair[1]); err == nil {
			t.Errorf("%s to %s: there is a cast", pair[0], pair[1])
		}
	}
	for _, same := range []types.Type{array, mustType(t, "CHAR(3)"), mustType(t, "TIMESTAMP_LTZ(3)")} {
		required := same
		required.NotNull = true
		cast, err := Resolve(same, required)
		if err != nil {
			t.Errorf("%s to itself: %v", same, err)
			continue
		}
		in := types.Value{Bytes: []byte("x"), Int: 1, Nanos: 999}
		if v, err := cast(in); err != nil || string(v.Bytes) != "x" || v.Int != 1 || v.Nanos != 999 {
			t.Errorf("%s to itself changed the value to %+v (%v)", same, v, err)
		}
	}
}

// TestErrorNamesTheValue shows that a cast that fails says of what, from which
// type and to which.
func TestErrorNamesTheValue(t *testing.T) {
	cast, err := Resolve(mustType(t, "VARCHAR(9)"), mustType(t, "INT"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = cast(types.Value{Bytes: []byte("12 apples")})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{`"12 apples"`, "VARCHAR(9)", "INT"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v: does not say %s", err, part)
		}
	}
}
