// Package bytesize reads sizes as Paimon's options write them.
package bytesize

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

var quantity = regexp.MustCompile(`^\s*([0-9]+)\s*([a-zA-Z]*)\s*$`)

// shifts gives for every unit the power of two that it stands for.
var shifts = map[string]int{
	"": 0, "b": 0, "bytes": 0, "k": 10, "kb": 10, "kib": 10, "kibibytes": 10, "m": 20, "mb": 20, "mib": 20, "mebibytes": 20,
	"g": 30, "gb": 30, "gib": 30, "gibibytes": 30, "t": 40, "tb": 40, "tib": 40, "tebibytes": 40,
}

// Parse reads a number and an optional unit (b, k, kb, m, mb, g, gb, t, tb, their
// long names, in any case), all of them powers of 1024 (reference: MemorySize).
// The result is in bytes.
func Parse(s string) (int64, error) {
	m := quantity.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size such as 128 mb", s)
	}
	shift, ok := shifts[strings.ToLower(m[2])]
	n, err := strconv.ParseInt(m[1], 10, 64)
	if !ok || err != nil || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is not a size such as 128 mb", s)
	}
	return n << shift, nil
}
