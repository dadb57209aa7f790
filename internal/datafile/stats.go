package datafile

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/parquet"

	"tablectl/internal/types"
)

// StatsMode says what is kept of a column's statistics (reference:
// metadata.stats-mode and its collectors). The zero value keeps nothing.
type StatsMode struct {
	Counts bool // null counts
	Bounds bool // minimum and maximum
	Length int  // characters or bytes to which bounds are cut; 0 leaves them whole
}

var truncateMode = regexp.MustCompile(`^truncate\(\s*([0-9]+)\s*\)$`)

// ParseStatsMode reads none, counts, full or truncate(n).
func ParseStatsMode(s string) (StatsMode, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	switch s {
	case "none":
		return StatsMode{}, nil
	case "counts":
		return StatsMode{Counts: true}, nil
	case "full":
		return StatsMode{Counts: true, Bounds: true}, nil
	}
	if m := truncateMode.FindStringSubmatch(s); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			return StatsMode{Counts: true, Bounds: true, Length: n}, nil
		}
	}
	return StatsMode{}, fmt.Errorf("statistics mode %q is not none, counts, truncate(n) or full", s)
}

// ColumnStats are the statistics of one column of a file. A column of which
// nothing is known is the zero value with Null bounds and a nil count.
type ColumnStats struct {
	Min, Max  types.Value
	NullCount *int64
}

// noStats is what is known of a nested column.
var noStats = ColumnStats{Min: types.NullValue, Max: types.NullValue}

// collector gathers the bounds of one leaf.
type collector[T parquet.ColumnTypes] struct {
	compare  func(a, b T) int // nil: bounds are not kept
	nan      func(T) bool     // nil: the type has none
	seen     bool
	seenNaN  bool
	min, max T
	nulls    int64
}

// comparison returns the order of a type's stored values, or nil where the
// reference keeps no bounds: for bytes, and for timestamps stored as INT96.
func comparison[T parquet.ColumnTypes](t types.Type) func(a, b T) int {
	var f any
	var zero T
	switch any(zero).(type) {
	case bool:
		f = func(a, b bool) int { return btoi(a) - btoi(b) }
	case int32:
		f = cmp.Compare[int32]
	case int64:
		f = cmp.Compare[int64]
	case float32:
		f = func(a, b float32) int { return types.CompareFloat(float64(a), float64(b)) }
	case float64:
		f = types.CompareFloat
	case parquet.ByteArray:
		if t.Kind == types.Char || t.Kind == types.Varchar {
			f = func(a, b parquet.ByteArray) int { return bytes.Compare(a, b) }
		}
	case parquet.FixedLenByteArray:
		f = compareSigned
	}
	g, _ := f.(func(a, b T) int)
	return g
}

// notANumber tells NaN. A column with one has no bounds: not all readers order it
// as Paimon does, and to some nothing is less than NaN.
func notANumber[T parquet.ColumnTypes]() func(T) bool {
	var f any
	var zero T
	switch any(zero).(type) {
	case float32:
		f = func(v float32) bool { return v != v }
	case float64:
		f = func(v float64) bool { return v != v }
	}
	g, _ := f.(func(T) bool)
	return g
}

// compareSigned orders big-endian two's complements of the same length.
func compareSigned(a, b parquet.FixedLenByteArray) int {
	if len(a) > 0 && len(b) > 0 && (a[0]^b[0])&0x80 != 0 {
		return int(b[0]&0x80) - int(a[0]&0x80)
	}
	return bytes.Compare(a, b)
}

func (c *collector[T]) add(vals []T) {
	if c.compare == nil || len(vals) == 0 {
		return
	}
	low, high := vals[0], vals[0]
	if c.seen {
		low, high = c.min, c.max
	}
	for _, v := range vals {
		if c.compare(v, low) < 0 {
			low = v
		} else if c.compare(v, high) > 0 {
			high = v
		}
	}
	// In Paimon's order NaN is the greatest, so it shows at the upper end.
	c.seenNaN = c.seenNaN || c.nan != nil && c.nan(high)
	if !c.seen || c.compare(low, c.min) != 0 {
		c.min = detach(low)
	}
	if !c.seen || c.compare(high, c.max) != 0 {
		c.max = detach(high)
	}
	c.seen = true
}

// result cuts the bounds to what the mode keeps.
func (c *collector[T]) result(t types.Type, mode StatsMode, decode func(T) (types.Value, error)) (ColumnStats, error) {
	s := noStats
	if !mode.Counts {
		return s, nil
	}
	nulls := c.nulls
	s.NullCount = &nulls
	if !mode.Bounds || !c.seen || c.seenNaN {
		return s, nil
	}
	low, err := decode(c.min)
	if err != nil {
		return s, err
	}
	high, err := decode(c.max)
	if err != nil {
		return s, err
	}
	if mode.Length > 0 && (t.Kind == types.Char || t.Kind == types.Varchar) {
		cut, ok := truncateUp(high.Bytes, mode.Length)
		if !ok {
			return s, nil // no short text is above: then no bounds at all
		}
		low.Bytes, high.Bytes = truncateDown(low.Bytes, mode.Length), cut
	}
	s.Min, s.Max = low, high
	return s, nil
}

// truncateDown returns the first n characters: at most the text.
func truncateDown(text []byte, n int) []byte {
	for i := range string(text) {
		if n == 0 {
			return text[:i:i]
		}
		n--
	}
	return text
}

// truncateUp returns a text of at most n characters that is not less than the
// text: its first n with the last that can be incremented incremented.
func truncateUp(text []byte, n int) ([]byte, bool) {
	head := truncateDown(text, n)
	if len(head) == len(text) {
		return text, true
	}
	if !utf8.Valid(head) {
		return nil, false
	}
	chars := []rune(string(head))
	for i := len(chars) - 1; i >= 0; i-- {
		next := chars[i] + 1
		if next >= 0xd800 && next <= 0xdfff {
			next = 0xe000 // surrogates are not characters
		}
		if chars[i] != utf8.RuneError && next <= utf8.MaxRune {
			return []byte(string(append(chars[:i:i], next))), true
		}
	}
	return nil, false
}
