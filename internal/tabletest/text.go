package tabletest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tablectl/internal/types"
)

// Cells are trees. A null is nil, whatever its type. Else the cell of a scalar
// type is a types.Value, that of an ARRAY a List, of a MAP or MULTISET a Map, of
// a ROW a Struct, and of a VARIANT a Variant.
type (
	// List holds the elements of an ARRAY.
	List []any
	// Map holds the entries of a MAP, or the elements of a MULTISET with their
	// counts, in the order in which they are stored.
	Map []Pair
	// Pair is an entry of a Map.
	Pair struct{ Key, Value any }
	// Struct holds the members of a ROW.
	Struct []any
	// Variant is a VARIANT in its binary form.
	Variant struct{ Value, Metadata []byte }
)

// MapTypes returns the types of the keys and values of a MAP, or of the elements
// and counts of a MULTISET.
func MapTypes(t types.Type) (key, value types.Type) {
	if t.Kind == types.Multiset {
		return *t.Element, types.Type{Kind: types.Int, NotNull: true}
	}
	return *t.Key, *t.Element
}

// Line is the canonical text of a row.
func Line(fields []types.Field, row []any) string { return string(appendRow(nil, fields, row)) }

// TextLines are the canonical texts of rows, in their order.
func TextLines(fields []types.Field, rows [][]any) []string {
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = Line(fields, r)
	}
	return lines
}

func appendRow(b []byte, fields []types.Field, row []any) []byte {
	b = append(b, '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(quote(b, f.Name), ':')
		b = appendCell(b, f.Type, row[i])
	}
	return append(b, '}')
}

func appendCell(b []byte, t types.Type, cell any) []byte {
	switch c := cell.(type) {
	case nil:
		return append(b, "null"...)
	case List:
		b = append(b, '[')
		for i, e := range c {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCell(b, *t.Element, e)
		}
		return append(b, ']')
	case Map:
		key, value := MapTypes(t)
		entries := make([][]byte, len(c))
		for i, p := range c {
			e := append(appendCell([]byte{'['}, key, p.Key), ',')
			entries[i] = append(appendCell(e, value, p.Value), ']')
		}
		slices.SortFunc(entries, bytes.Compare)
		return append(append(append(b, '['), bytes.Join(entries, []byte{','})...), ']')
	case Struct:
		return appendRow(b, t.Fields, c)
	case Variant:
		return quote(b, c.json())
	case types.Value:
		return appendScalar(b, t, c)
	}
	panic(fmt.Sprintf("a cell of type %s is a %T", t, cell))
}

func appendScalar(b []byte, t types.Type, v types.Value) []byte {
	switch t.Kind {
	case types.Boolean:
		return strconv.AppendBool(b, v.Int != 0)
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return strconv.AppendInt(b, v.Int, 10)
	case types.Float:
		return quote(b, strconv.FormatFloat(v.Float, 'e', -1, 32))
	case types.Double:
		return quote(b, strconv.FormatFloat(v.Float, 'e', -1, 64))
	case types.Decimal:
		return quote(b, types.FormatDecimal(v.Unscaled, t.Scale))
	case types.Char, types.Varchar:
		return quote(b, string(v.Bytes))
	case types.Binary, types.Varbinary:
		return quote(b, hex.EncodeToString(v.Bytes))
	case types.Date:
		return quote(b, types.FormatDate(v.Int))
	case types.Time:
		return quote(b, types.FormatTime(v.Int, 3))
	case types.Timestamp:
		return quote(b, strings.Replace(types.FormatTimestamp(v, 9), " ", "T", 1))
	case types.TimestampLTZ:
		return quote(b, strings.Replace(types.FormatTimestamp(v, 9), " ", "T", 1)+"Z")
	}
	panic(fmt.Sprintf("no text for values of type %s", t))
}

var shortEscapes = map[byte]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

func quote(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case shortEscapes[c] != "":
			b = append(b, shortEscapes[c]...)
		case c < 0x20:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// difference describes two lines that differ, cut to where they do.
func difference(line int, got, want string) string {
	same := 0
	for same < min(len(got), len(want)) && got[same] == want[same] {
		same++
	}
	const before, most = 60, 400
	cut := func(s string) string {
		from := max(0, same-before)
		if len(s)-from > most {
			s = s[:from+most] + "…"
		}
		if from > 0 {
			return "…" + s[from:]
		}
		return s
	}
	return fmt.Sprintf("row %d, byte %d:\n got %s\nwant %s", line, same, cut(got), cut(want))
}
