package datafile

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/parquet"
	"pgregory.net/rapid"

	"tablectl/internal/types"
)

// drawText makes up texts around the edges of Unicode, which need not be valid.
func drawText(t *rapid.T, label string) []byte {
	char := rapid.OneOf(
		rapid.SampledFrom([]string{
			"a", "b", "\x00", "\x7f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\ufffc", "\ufffd", "\uffff",
			"\U00010000", "\U0010fffe", "\U0010ffff",
		}),
		rapid.Map(rapid.Rune(), func(r rune) string { return string(r) }),
		rapid.SampledFrom([]string{"\U0010ffff", "\xff", "\xed\xa0\x80", "\xc3"}),
	)
	return []byte(strings.Join(rapid.SliceOfN(char, 0, 40).Draw(t, label), ""))
}

// TestTruncatedBounds shows that bounds of texts, however short they are cut,
// bound every text, and are texts.
func TestTruncatedBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := types.Type{Kind: types.Varchar, Length: types.MaxLength}
		n := rapid.IntRange(1, 20).Draw(t, "characters")
		c := collector[parquet.ByteArray]{compare: comparison[parquet.ByteArray](typ)}
		var all [][]byte
		for range rapid.IntRange(1, 3).Draw(t, "pages") {
			var vals []parquet.ByteArray
			for range rapid.IntRange(0, 5).Draw(t, "values") {
				vals = append(vals, drawText(t, "text"))
			}
			for _, v := range vals {
				all = append(all, bytes.Clone(v))
			}
			c.add(vals)
			for _, v := range vals {
				clear(v) // the page that the values point into is gone
			}
		}
		decode := func(v parquet.ByteArray) (types.Value, error) { return types.Value{Bytes: v}, nil }
		s, err := c.result(typ, StatsMode{Counts: true, Bounds: true, Length: n}, decode)
		if err != nil {
			t.Fatal(err)
		}
		if s.Min.Null != s.Max.Null {
			t.Fatalf("one bound only: %+v", s)
		}
		if s.Min.Null {
			// Without bounds only where there are no values, or no text of so few
			// characters is above.
			high := []byte{}
			for _, v := range all {
				if bytes.Compare(v, high) > 0 {
					high = v
				}
			}
			if len(all) > 0 && utf8.Valid(high) && strings.Trim(firstChars(high, n), "\U0010ffff\ufffd") != "" {
				t.Fatalf("no bounds for %q", all)
			}
			return
		}
		for _, v := range all {
			if bytes.Compare(v, s.Min.Bytes) < 0 || bytes.Compare(v, s.Max.Bytes) > 0 {
				t.Fatalf("%q is not within %q and %q", v, s.Min.Bytes, s.Max.Bytes)
			}
			if !utf8.Valid(v) {
				return // what is not text cannot make text
			}
		}
		for _, b := range [][]byte{s.Min.Bytes, s.Max.Bytes} {
			if !utf8.Valid(b) || utf8.RuneCount(b) > n {
				t.Fatalf("the bound %q is no text of at most %d characters", b, n)
			}
		}
	})
}

func firstChars(text []byte, n int) string {
	chars := []rune(string(text))
	return string(chars[:min(n, len(chars))])
}

func TestTruncateUp(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
		none bool
	}{
		{text: "abc", n: 3, want: "abc"},
		{text: "abcd", n: 3, want: "abd"},
		{text: "", n: 1, want: ""},
		{text: "aéx", n: 2, want: "aê"},
		{text: "a\U0010ffffx", n: 2, want: "b"},
		{text: "\U0010ffff\U0010ffffx", n: 2, none: true},
		{text: strings.Repeat("\U0010ffff", 16) + "x", n: 16, none: true},
		{text: strings.Repeat("\U0010ffff", 16), n: 16, want: strings.Repeat("\U0010ffff", 16)},
		{text: "a\ud7ffx", n: 2, want: "a\ue000"}, // over the gap of the surrogates
		{text: "a\x7fx", n: 2, want: "a\u0080"},
		{text: "a\u07ffx", n: 2, want: "a\u0800"},
		{text: "a\uffffx", n: 2, want: "a\U00010000"},
		{text: "a\xffb", n: 2, none: true},
		{text: "ab\xff", n: 2, want: "ac"},
	} {
		got, ok := truncateUp([]byte(c.text), c.n)
		if ok == c.none || ok && string(got) != c.want {
			t.Errorf("%q, %d characters: %q, %v; want %q", c.text, c.n, got, ok, c.want)
		}
	}
}

func TestParseStatsMode(t *testing.T) {
	for text, want := range map[string]StatsMode{
		"none": {}, " Counts ": {Counts: true}, "FULL": {Counts: true, Bounds: true}, "truncate(16)": {Counts: true, Bounds: true, Length: 16},
		"truncate( 1 )": {Counts: true, Bounds: true, Length: 1},
	} {
		if got, err := ParseStatsMode(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "truncate", "truncate(0)", "truncate(-1)", "truncate(99999999999999999999)", "all"} {
		if got, err := ParseStatsMode(text); err == nil {
			t.Errorf("%q: %+v, want an error", text, got)
		}
	}
}

// TestCompareSigned orders two's complements of the same length like numbers.
func TestCompareSigned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 16).Draw(t, "bytes")
		draw := func(label string) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, label) }
		a, b := draw("a"), draw("b")
		got, want := compareSigned(a, b), types.DecodeUnscaled(a).Cmp(types.DecodeUnscaled(b))
		if (got < 0) != (want < 0) || (got > 0) != (want > 0) {
			t.Fatalf("%x and %x: %d, want %d", a, b, got, want)
		}
	})
}
