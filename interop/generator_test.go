//go:build interop

package interop

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// A generator makes up tables, types and values. Values are as the Java peer's write takes them, and within
// what all readers can hold.
type generator struct{ *rand.Rand }

func pick[T any](g generator, choices ...T) T { return choices[g.IntN(len(choices))] }

func (g generator) chance(p float64) bool { return g.Float64() < p }

// weighted is an index, each as likely as its weight says.
func (g generator) weighted(weights ...int) int {
	var sum int
	for _, w := range weights {
		sum += w
	}
	n := g.IntN(sum)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	panic("unreachable")
}

// row makes up a row as a JSON object.
func (g generator) row(columns []column) string {
	members := map[string]any{}
	for _, c := range columns {
		if !g.chance(c.nullRate) {
			members[c.Name] = c.value()
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		panic(err) // values are texts, numbers, and lists and maps of them
	}
	return string(text)
}

// column makes up a column.
func (g generator) column(name string) column {
	const depth = 2
	typ, value := g.typ(depth)
	c := column{field{name, typ}, value, pick(g, 0, 0.1, 0.5, 1)}
	if g.chance(0.15) {
		c.Type += " NOT NULL"
		c.nullRate = 0
	}
	return c
}

// partitionColumn makes up a column of few values.
func (g generator) partitionColumn(name string) column {
	c := column{field: field{name, pick(g, "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "STRING")}}
	value := g.scalar(c.Type)
	if c.Type == "STRING" {
		value = func() any { return pick(g, "a", "b c", "d/e=f%g", "ü日😀", "__DEFAULT_PARTITION__") }
	}
	values := make([]any, 1+g.IntN(2))
	for i := range values {
		values[i] = value()
	}
	c.value = func() any { return pick(g, values...) }
	c.nullRate = pick(g, 0, 0.2)
	return c
}

// typ makes up a type, nested at most depth times, and how its values are made.
func (g generator) typ(depth int) (string, func() any) {
	if depth == 0 || g.chance(0.7) {
		typ := g.scalarType()
		return typ, g.scalar(typ)
	}
	switch g.weighted(40, 25, 30, 5) {
	case 0:
		elem, value := g.typ(depth - 1)
		if g.chance(0.2) {
			return "ARRAY<" + elem + " NOT NULL>", func() any { return g.list(value, 0) }
		}
		return "ARRAY<" + elem + ">", func() any { return g.list(value, 0.2) }
	case 1:
		key := pick(g, "INT", "BIGINT", "STRING", "DATE")
		elem, value := g.typ(depth - 1)
		return "MAP<" + key + "," + elem + ">", g.entries(g.scalar(key), value, 0.2)
	case 2:
		return g.rowType(depth)
	default:
		key := pick(g, "INT", "STRING")
		return "MULTISET<" + key + ">", g.entries(g.scalar(key), func() any { return 1 + g.IntN(5) }, 0)
	}
}

func (g generator) rowType(depth int) (string, func() any) {
	var fields []string
	values := map[string]func() any{}
	for i := range 1 + g.IntN(3) {
		name := fmt.Sprintf("f%d", i)
		typ, value := g.typ(depth - 1)
		fields = append(fields, name+" "+typ)
		values[name] = value
	}
	return "ROW<" + strings.Join(fields, ", ") + ">", func() any {
		row := map[string]any{}
		for i := range fields {
			name := fmt.Sprintf("f%d", i)
			row[name] = g.orNull(values[name], 0.2)
		}
		return row
	}
}

func (g generator) orNull(value func() any, nullRate float64) any {
	if g.chance(nullRate) {
		return nil
	}
	return value()
}

func (g generator) list(value func() any, nullRate float64) []any {
	list := []any{}
	for range g.IntN(5) {
		list = append(list, g.orNull(value, nullRate))
	}
	return list
}

// entries makes lists of pairs, the text of a map, with distinct keys.
func (g generator) entries(key, value func() any, nullRate float64) func() any {
	return func() any {
		pairs, seen := []any{}, map[any]bool{}
		for range g.IntN(5) {
			k, v := key(), g.orNull(value, nullRate)
			if !seen[k] {
				seen[k] = true
				pairs = append(pairs, []any{k, v})
			}
		}
		return pairs
	}
}

// scalarType makes up a type that is not nested.
func (g generator) scalarType() string {
	kind := pick(g, "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "CHAR", "VARCHAR",
		"STRING", "BINARY", "VARBINARY", "BYTES", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
	switch kind {
	case "DECIMAL":
		precision := 1 + g.IntN(38)
		return fmt.Sprintf("DECIMAL(%d,%d)", precision, g.IntN(precision+1))
	case "CHAR", "VARCHAR", "BINARY", "VARBINARY":
		return fmt.Sprintf("%s(%d)", kind, 1+g.IntN(20))
	case "TIME":
		return "TIME(3)"
	case "TIMESTAMP", "TIMESTAMP_LTZ":
		return fmt.Sprintf("%s(%d)", kind, g.IntN(10))
	}
	return kind
}

// scalar is how values of a type that is not nested are made.
func (g generator) scalar(typ string) func() any {
	kind, rest, _ := strings.Cut(typ, "(")
	first, second, _ := strings.Cut(strings.TrimSuffix(rest, ")"), ",")
	n, _ := strconv.Atoi(first)
	scale, _ := strconv.Atoi(second)
	switch kind {
	case "BOOLEAN":
		return func() any { return g.chance(0.5) }
	case "TINYINT":
		return func() any { return g.integer(8) }
	case "SMALLINT":
		return func() any { return g.integer(16) }
	case "INT":
		return func() any { return g.integer(32) }
	case "BIGINT":
		return func() any { return g.integer(64) }
	case "FLOAT":
		return func() any { return strconv.FormatFloat(g.float(), 'e', -1, 32) }
	case "DOUBLE":
		return func() any { return strconv.FormatFloat(g.float(), 'e', -1, 64) }
	case "DECIMAL":
		return func() any { return g.decimal(n, scale) }
	case "CHAR", "VARCHAR":
		return func() any { return g.text(n) }
	case "STRING":
		return func() any { return g.text(pick(g, 3, 40)) }
	case "BINARY":
		return func() any { return g.bytes(n) }
	case "VARBINARY":
		return func() any { return g.bytes(g.IntN(n + 1)) }
	case "BYTES":
		return func() any { return g.bytes(g.IntN(30)) }
	case "DATE":
		return func() any { return g.moment(0).Format(time.DateOnly) }
	case "TIME":
		return func() any { return g.moment(0).Format("15:04:05.000") }
	case "TIMESTAMP":
		return func() any { return timestamp(g.moment(n), n) }
	case "TIMESTAMP_LTZ":
		return func() any { return timestamp(g.moment(n), n) + "Z" }
	}
	panic("no values of type " + typ)
}

// integer is a signed integer of so many bits: often small, now and then the least or the greatest.
func (g generator) integer(bits int) int64 {
	shift := 64 - bits
	switch g.weighted(60, 30, 5, 5) {
	case 0:
		return g.Int64N(20) - 10
	case 1:
		return int64(g.Uint64()) >> shift
	case 2:
		return math.MinInt64 >> shift
	default:
		return math.MaxInt64 >> shift
	}
}

func (g generator) float() float64 {
	switch g.weighted(60, 20, 20) {
	case 0:
		return float64(g.IntN(2000)-1000) / 8
	case 1:
		return g.NormFloat64() * math.Pow(10, float64(g.IntN(60)-30))
	default:
		return pick(g, math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 5e-324, math.MaxFloat32)
	}
}

func (g generator) decimal(precision, scale int) string {
	digits := make([]byte, precision)
	for i := range digits {
		digits[i] = byte('0' + g.IntN(10))
	}
	for i := range g.IntN(precision + 1) {
		digits[i] = '0'
	}
	text := "0" + string(digits[:precision-scale])
	if scale > 0 {
		text += "." + string(digits[precision-scale:])
	}
	return pick(g, "", "-") + text
}

// text is a text of at most n characters.
func (g generator) text(n int) string {
	const common, rare = "abcdefghij", "\x00\t\n\"\\'<é日😀\u2028\uffff"
	var b strings.Builder
	for range g.IntN(n + 1) {
		if g.chance(0.9) {
			b.WriteByte(common[g.IntN(len(common))])
		} else {
			b.WriteRune(pick(g, []rune(rare)...))
		}
	}
	return b.String()
}

// bytes is n bytes in hex.
func (g generator) bytes(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return hex.EncodeToString(b)
}

// moment is a time of the precision, in years that 64 bits hold in nanoseconds if it needs them.
func (g generator) moment(precision int) time.Time {
	first, last := 1, 9999
	if precision > 6 {
		first, last = 1678, 2261
	}
	if g.chance(0.7) {
		first, last = 1969, 2040
	}
	from := time.Date(first, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	to := time.Date(last+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	return time.Unix(from+g.Int64N(to-from), g.Int64N(1e9)).UTC()
}

// timestamp is the text of a time with so many digits of a second.
func timestamp(at time.Time, digits int) string {
	text := at.Format("2006-01-02T15:04:05.000000000")
	if digits == 0 {
		return text[:len("2006-01-02T15:04:05")]
	}
	return text[:len("2006-01-02T15:04:05.")+digits]
}
