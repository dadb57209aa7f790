package bytesize

import (
	"math"
	"strings"
	"testing"
)

// TestParse shows the units, all of 1024, and what is not a size.
func TestParse(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "1": 1, "007": 7, "1b": 1, "1 b": 1, "2bytes": 2, "2 BYTES": 2,
		"1k": 1 << 10, "1kb": 1 << 10, "3 Kibibytes": 3 << 10, "128m": 128 << 20, "128 mb": 128 << 20, "128 MB": 128 << 20, "1mebibytes": 1 << 20,
		"2g": 2 << 30, "2Gb": 2 << 30, "2 gibibytes": 2 << 30, "1t": 1 << 40, "1 tb": 1 << 40, "1\ttebibytes": 1 << 40,
		" 256 mb\n": 256 << 20, "9223372036854775807": math.MaxInt64, "8388607t": 8388607 << 40, "0 tb": 0,
	} {
		if got, err := Parse(in); err != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", " ", "b", "mb", "-1", "+1", "1.5mb", "1e3", "1 0", "1_000", "1 mb x", "1 zb", "1 eb", "1 bit", "1 byte", "0x10", "١",
		"9223372036854775808", "8388608t", "9223372036854775807k", strings.Repeat("9", 1000),
	} {
		if got, err := Parse(in); err == nil {
			t.Errorf("%q is %d, want an error", in, got)
		} else if !strings.Contains(err.Error(), "128 mb") {
			t.Errorf("%q: the error shows no size that is right: %v", in, err)
		}
	}
}
