package table

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tablectl/internal/types"
)

// node is a predicate that is written as SQL and as a dict, and evaluated here
// without anything of the package: cells and literals are texts.
type node struct {
	op       string // of leaf, or AND, OR, NOT
	column   string
	negate   bool
	literals []string
	children []node
}

// propertyColumns are the columns of random predicates, of everyType, with the
// order of their texts.
var propertyColumns = map[string]func(a, b string) int{
	"p": strings.Compare, "a`b": strings.Compare, "in": strings.Compare, "d": strings.Compare,
	"n":   func(a, b string) int { return number(a).Cmp(number(b)) },
	"dec": func(a, b string) int { return number(a).Cmp(number(b)) },
	"g":   func(a, b string) int { return number(a).Cmp(number(b)) },
}

func number(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("not a number: " + s)
	}
	return r
}

func isText(column string) bool { return column == "p" || column == "a`b" || column == "in" }

var texts = []string{
	"", "a", "b", "ab", "abc", "A", " ", "a b", "it's", "''", "`", `\`, `a\`, `\%`, "%", "_", "a%", "100%", "null", "AND", "NOT", "DATE", "(a)",
	"é", "日本", "😀", "\uffff", "\n", "x=1", "1", "01", "__DEFAULT_PARTITION__", "aaab", "b,c", "!",
}

func genLiteral(t *rapid.T, column string) string {
	switch column {
	case "n":
		return strconv.Itoa(rapid.SampledFrom([]int{0, 1, 2, -1, 10, 9, 2147483647, -2147483648}).Draw(t, "int"))
	case "dec":
		return rapid.SampledFrom([]string{"0.00", "1.50", "-0.01", "10.00", "9.99", "99999999.99"}).Draw(t, "decimal")
	case "g":
		return rapid.SampledFrom([]string{"0.5", "1.5", "-2", "1e3", "1e-3", "1e300"}).Draw(t, "double")
	case "d":
		return rapid.SampledFrom([]string{"2024-02-29", "1969-12-31", "1970-01-01", "0001-01-01", "9999-12-31"}).Draw(t, "date")
	}
	return rapid.SampledFrom(texts).Draw(t, "text")
}

var leafOps = []string{"=", "<>", "<", "<=", ">", ">=", "IN", "BETWEEN", "IS NULL", "LIKE"}

func genNode(t *rapid.T, depth int) node {
	kind := "leaf"
	if depth > 0 {
		kind = rapid.SampledFrom([]string{"leaf", "AND", "OR", "NOT"}).Draw(t, "kind")
	}
	switch kind {
	case "AND", "OR":
		n := node{op: kind}
		for range rapid.IntRange(1, 3).Draw(t, "children") {
			n.children = append(n.children, genNode(t, depth-1))
		}
		return n
	case "NOT":
		return node{op: kind, children: []node{genNode(t, depth-1)}}
	}
	n := node{column: rapid.SampledFrom([]string{"p", "a`b", "in", "n", "dec", "g", "d"}).Draw(t, "column")}
	n.op = rapid.SampledFrom(leafOps).Draw(t, "op")
	if n.op == "LIKE" && !isText(n.column) {
		n.column = "p"
	}
	n.negate = slices.Index(leafOps, n.op) >= 6 && rapid.Bool().Draw(t, "negate")
	count := map[string]int{"IS NULL": 0, "BETWEEN": 2, "IN": 3}
	for range func() int {
		if c, ok := count[n.op]; ok {
			return c
		}
		return 1
	}() {
		n.literals = append(n.literals, genLiteral(t, n.column))
	}
	return n
}

// value is the truth of the node for a partition; columns that it lacks are null.
func (n node) value(partition cells) truth {
	switch n.op {
	case "AND", "OR":
		result := map[string]truth{"AND": yes, "OR": no}[n.op]
		for _, c := range n.children {
			v := c.value(partition)
			if n.op == "AND" && v < result || n.op == "OR" && v > result {
				result = v
			}
		}
		return result
	case "NOT":
		return map[truth]truth{yes: no, no: yes, unknown: unknown}[n.children[0].value(partition)]
	}
	cell, ok := partition[n.column]
	if n.op == "IS NULL" {
		return truthOf(ok == n.negate)
	}
	if !ok {
		return unknown
	}
	compare := func(i int) int { return propertyColumns[n.column](cell, n.literals[i]) }
	var result bool
	switch n.op {
	case "=":
		result = compare(0) == 0
	case "<>":
		result = compare(0) != 0
	case "<":
		result = compare(0) < 0
	case "<=":
		result = compare(0) <= 0
	case ">":
		result = compare(0) > 0
	case ">=":
		result = compare(0) >= 0
	case "BETWEEN":
		result = compare(0) >= 0 && compare(1) <= 0
	case "IN":
		for i := range n.literals {
			result = result || compare(i) == 0
		}
	case "LIKE":
		result = likePattern(n.literals[0]).MatchString(cell)
	}
	return truthOf(result != n.negate)
}

// likePattern translates a pattern of LIKE.
func likePattern(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for rs := []rune(pattern); len(rs) > 0; rs = rs[1:] {
		switch {
		case rs[0] == '%':
			b.WriteString(".*")
		case rs[0] == '_':
			b.WriteString(".")
		case rs[0] == '\\' && len(rs) > 1:
			rs = rs[1:]
			fallthrough
		default:
			b.WriteString(regexp.QuoteMeta(string(rs[0])))
		}
	}
	return regexp.MustCompile(b.String() + `\z`)
}

// spelling makes arbitrary choices in how a node is written.
type spelling struct{ t *rapid.T }

func (s spelling) oneOf(ways ...string) string { return rapid.SampledFrom(ways).Draw(s.t, "way") }

func (s spelling) word(w string) string {
	return s.oneOf(" ", "\n", "  ") + s.oneOf(w, strings.ToLower(w), w[:1]+strings.ToLower(w[1:])) + s.oneOf(" ", "\t")
}

func (s spelling) sql(n node) string {
	text := s.bare(n)
	if s.oneOf("", "(") == "(" {
		return "(" + s.oneOf("", " ") + text + ")"
	}
	return text
}

func (s spelling) bare(n node) string {
	switch n.op {
	case "AND", "OR":
		parts := make([]string, len(n.children))
		for i, c := range n.children {
			// What binds less tightly needs parentheses.
			if parts[i] = s.sql(c); c.op == "OR" || c.op == "AND" && len(n.children) > 1 {
				parts[i] = "(" + parts[i] + ")"
			}
		}
		return strings.Join(parts, s.word(n.op))
	case "NOT":
		text := s.sql(n.children[0])
		if op := n.children[0].op; op == "AND" || op == "OR" {
			text = "(" + text + ")"
		}
		return s.word("NOT") + text
	}
	column := n.column
	if column == "in" || column == "a`b" || s.oneOf("bare", "quoted") == "quoted" {
		column = "`" + strings.ReplaceAll(column, "`", "``") + "`"
	}
	not := ""
	if n.negate {
		not = s.word("NOT")
	}
	literals := make([]string, len(n.literals))
	for i, l := range n.literals {
		literals[i] = s.literal(n.column, l)
	}
	switch n.op {
	case "IN":
		return column + not + s.word("IN") + "(" + strings.Join(literals, s.oneOf(",", " , ")) + ")"
	case "BETWEEN":
		return column + not + s.word("BETWEEN") + literals[0] + s.word("AND") + literals[1]
	case "LIKE":
		return column + not + s.word("LIKE") + literals[0]
	case "IS NULL":
		return column + s.word("IS") + not + s.word("NULL")
	case "<>":
		return column + s.oneOf("<>", "!=", " <> ") + literals[0]
	}
	return column + s.oneOf("", " ") + n.op + s.oneOf("", " ") + literals[0]
}

var safeWord = regexp.MustCompile(`^[a-z%0-9\pL_\\]+$`)

func (s spelling) literal(column, l string) string {
	switch quoted := "'" + strings.ReplaceAll(l, "'", "''") + "'"; {
	case column == "d":
		return s.oneOf(l, quoted, "DATE "+quoted, "date"+quoted)
	case !isText(column):
		return l
	case safeWord.MatchString(l) && !slices.Contains(keywords, strings.ToUpper(l)):
		return s.oneOf(l, quoted)
	default:
		return quoted
	}
}

// dict writes the node as a dict, or says that dicts have no such form: they
// have no NOT, so it goes down to the leaves, and not below LIKE.
func (n node) dict(negate bool) (map[string]any, bool) {
	switch n.op {
	case "NOT":
		return n.children[0].dict(!negate)
	case "AND", "OR":
		method := map[string]string{"AND": "and", "OR": "or"}[n.op]
		if negate {
			method = map[string]string{"and": "or", "or": "and"}[method]
		}
		children := make([]any, len(n.children))
		for i, c := range n.children {
			child, ok := c.dict(negate)
			if !ok {
				return nil, false
			}
			children[i] = child
		}
		return map[string]any{"method": method, "children": children}, true
	}
	methods := map[string][2]string{
		"=": {"equal", "notEqual"}, "<>": {"notEqual", "equal"}, "<": {"lessThan", "greaterOrEqual"}, "<=": {"lessOrEqual", "greaterThan"},
		">": {"greaterThan", "lessOrEqual"}, ">=": {"greaterOrEqual", "lessThan"}, "IN": {"in", "notIn"}, "BETWEEN": {"between", "notBetween"},
		"IS NULL": {"isNull", "isNotNull"}, "LIKE": {"like", ""},
	}
	pair := methods[n.op]
	method := pair[0]
	if negate != n.negate {
		method = pair[1]
	}
	literals := make([]any, len(n.literals))
	for i, l := range n.literals {
		if literals[i] = l; n.column == "n" || n.column == "g" {
			literals[i] = json.RawMessage(l)
		}
	}
	return map[string]any{"method": method, "field": n.column, "literals": literals}, method != ""
}

func TestFilterForms(t *testing.T) {
	s := everyType()
	rapid.Check(t, func(rt *rapid.T) {
		n := genNode(rt, 3)
		sql := spelling{rt}.sql(n)
		filters := map[string]Filter{}
		f, err := ParseWhere(s, sql)
		if err != nil {
			rt.Fatal(err)
		}
		filters[sql] = f
		if dict, ok := n.dict(false); ok {
			text, err := json.Marshal(dict)
			if err != nil {
				rt.Fatal(err)
			}
			if f, err = ParseFilterJSON(s, string(text)); err != nil {
				rt.Fatal(err)
			}
			filters[string(text)] = f
		}
		for range 8 {
			partition := cells{}
			for _, column := range []string{"p", "a`b", "in", "n", "dec", "g", "d"} {
				if rapid.IntRange(0, 3).Draw(rt, "null") > 0 {
					partition[column] = genLiteral(rt, column)
				}
			}
			want := n.value(partition) == yes
			for text, f := range filters {
				if got := f.Matches(row(t, s, partition)); got != want {
					rt.Fatalf("%s of %v: got %v, want %v", text, partition, got, want)
				}
			}
		}
	})
}

func TestLikeAgainstRegexp(t *testing.T) {
	s := everyType()
	alphabet := rapid.SampledFrom([]string{"a", "b", "%", "_", `\`, "é", "\n", "%%", "ab", "."})
	rapid.Check(t, func(rt *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(alphabet, 0, 8).Draw(rt, "pattern"), "")
		f, err := ParseWhere(s, "p LIKE '"+pattern+"'")
		if err != nil {
			rt.Fatal(err)
		}
		for range 10 {
			text := strings.Join(rapid.SliceOfN(alphabet, 0, 8).Draw(rt, "text"), "")
			if got, want := f.Matches(row(rt, s, cells{"p": text})), likePattern(pattern).MatchString(text); got != want {
				rt.Fatalf("%q LIKE %q: got %v, want %v", text, pattern, got, want)
			}
		}
	})
	// A pattern that makes naive matchers take for ever.
	f, err := ParseWhere(s, "p LIKE '"+strings.Repeat("a%", 500)+"b'")
	if err != nil {
		t.Fatal(err)
	}
	if f.Matches(row(t, s, cells{"p": strings.Repeat("a", 5000)})) {
		t.Error("matched")
	}
}

// TestMatchesReadsByPosition makes sure that cells are found by partition key,
// not by the order of the schema's columns.
func TestMatchesReadsByPosition(t *testing.T) {
	s := everyType()
	slices.Reverse(s.PartitionKeys)
	for i, column := range s.PartitionKeys {
		values := make([]types.Value, len(s.PartitionKeys))
		for j := range values {
			values[j].Null = j == i
		}
		f, err := ParseWhere(s, fmt.Sprintf("`%s` IS NULL", strings.ReplaceAll(column, "`", "``")))
		if err != nil {
			t.Fatal(err)
		}
		if !f.Matches(values) {
			t.Errorf("%s looks at another column than %d", f, i)
		}
	}
}
