package table

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

type cells = map[string]string

// whereCases are filters with the value that they have for a partition. A
// partition is selected only by yes; for the others, NOT tells no from unknown.
var whereCases = []struct {
	name, where string
	partition   cells
	want        truth
}{
	{"equal", "p = 'a'", cells{"p": "a"}, yes},
	{"not equal to", "p = 'a'", cells{"p": "b"}, no},
	{"case counts in values", "p = 'A'", cells{"p": "a"}, no},
	{"blanks count in values", "p = 'a '", cells{"p": "a"}, no},
	{"empty string", "p = ''", cells{"p": ""}, yes},
	{"!=", "p != 'a'", cells{"p": "b"}, yes},
	{"<>", "p <> 'a'", cells{"p": "a"}, no},
	{"<", "n < 5", cells{"n": "4"}, yes},
	{"< at the bound", "n < 5", cells{"n": "5"}, no},
	{"<=", "n <= 5", cells{"n": "5"}, yes},
	{">", "n > 5", cells{"n": "5"}, no},
	{">=", "n >= 5", cells{"n": "5"}, yes},
	{"numbers, not texts", "n > 9", cells{"n": "10"}, yes},
	{"texts, not numbers", "p > 9", cells{"p": "10"}, no},
	{"bytes order, not UTF-16 order", "p > '\uffff'", cells{"p": "\U0001f600"}, yes},
	{"in", "p IN ('a', 'b')", cells{"p": "b"}, yes},
	{"in one", "p IN ('a')", cells{"p": "b"}, no},
	{"not in", "p NOT IN ('a', 'b')", cells{"p": "c"}, yes},
	{"between", "n BETWEEN 1 AND 3", cells{"n": "1"}, yes},
	{"between, upper bound", "n BETWEEN 1 AND 3", cells{"n": "3"}, yes},
	{"between, outside", "n BETWEEN 1 AND 3", cells{"n": "4"}, no},
	{"between, bounds reversed", "n BETWEEN 3 AND 1", cells{"n": "2"}, no},
	{"not between", "n NOT BETWEEN 1 AND 3", cells{"n": "4"}, yes},
	{"between then and", "n BETWEEN 1 AND 3 AND p = a", cells{"n": "2", "p": "b"}, no},
	{"like", "p LIKE 'a%'", cells{"p": "abc"}, yes},
	{"like is of the whole value", "p LIKE 'a'", cells{"p": "ab"}, no},
	{"not like", "p NOT LIKE 'a%'", cells{"p": "b"}, yes},
	{"is null", "p IS NULL", cells{}, yes},
	{"is null of a value", "p IS NULL", cells{"p": ""}, no},
	{"is not null", "p IS NOT NULL", cells{"p": ""}, yes},
	{"is not null of null", "p IS NOT NULL", cells{}, no},

	{"null equals nothing", "p = 'a'", cells{}, unknown},
	{"null differs from nothing", "p <> 'a'", cells{}, unknown},
	{"null is not in", "p NOT IN ('a')", cells{}, unknown},
	{"null is not between", "n NOT BETWEEN 1 AND 3", cells{}, unknown},
	{"null is not like", "p NOT LIKE '%'", cells{}, unknown},
	{"not unknown", "NOT p = 'a'", cells{}, unknown},
	{"unknown and no", "p = 'a' AND n = 1", cells{"n": "2"}, no},
	{"unknown and yes", "p = 'a' AND n = 1", cells{"n": "1"}, unknown},
	{"unknown or yes", "p = 'a' OR n = 1", cells{"n": "1"}, yes},
	{"unknown or no", "p = 'a' OR n = 1", cells{"n": "2"}, unknown},
	{"no third way", "p = 'a' OR NOT p = 'a'", cells{}, unknown},

	{"and binds before or", "p = a OR p = b AND n = 1", cells{"p": "a", "n": "2"}, yes},
	{"and binds before or, right", "n = 1 AND p = b OR p = a", cells{"p": "a", "n": "2"}, yes},
	{"parentheses", "(p = a OR p = b) AND n = 1", cells{"p": "a", "n": "2"}, no},
	{"nested parentheses", "((p = a) AND ((n = 1)))", cells{"p": "a", "n": "1"}, yes},
	{"not binds before and", "NOT p = a AND n = 1", cells{"p": "b", "n": "1"}, yes},
	{"not binds before and, of no", "NOT p = a AND n = 1", cells{"p": "a", "n": "2"}, no},
	{"not of parentheses", "NOT (p = a AND n = 1)", cells{"p": "a", "n": "2"}, yes},
	{"not not", "NOT NOT p = a", cells{"p": "a"}, yes},
	{"three ors", "p = a OR p = b OR p = c", cells{"p": "c"}, yes},
	{"three ands", "p = a AND q = b AND n = 1", cells{"p": "a", "q": "b", "n": "2"}, no},

	{"backticks", "`p` = 'a'", cells{"p": "a"}, yes},
	{"backticks around a keyword", "`in` IN ('in')", cells{"in": "in"}, yes},
	{"backticks around blanks", "`group by` = x", cells{"group by": "x"}, yes},
	{"doubled backtick", "`a``b` = x", cells{"a`b": "x"}, yes},
	{"letters of all kinds", "ünï = 'é'", cells{"ünï": "é"}, yes},
	{"doubled quote", "p = 'it''s'", cells{"p": "it's"}, yes},
	{"only quotes", "p = ''''", cells{"p": "'"}, yes},
	{"no escapes in strings", `p = 'a\n'`, cells{"p": `a\n`}, yes},
	{"keyword in a string", "p = 'AND'", cells{"p": "AND"}, yes},
	{"parenthesis in a string", "p = '(' AND q = ')'", cells{"p": "(", "q": ")"}, yes},
	{"comma in a string", "p IN ('a,b')", cells{"p": "a,b"}, yes},

	{"bare word", "p=a", cells{"p": "a"}, yes},
	{"bare words in a list", "p IN (a,b)", cells{"p": "b"}, yes},
	{"bare words between", "p BETWEEN a AND c", cells{"p": "b"}, yes},
	{"bare word like", "p LIKE a%", cells{"p": "ab"}, yes},
	{"bare number for a string", "p=01", cells{"p": "01"}, yes},
	{"a string of digits is not a number", "p=1", cells{"p": "01"}, no},
	{"bare date for a string", "p>=2024-01-01", cells{"p": "2024-02-29"}, yes},
	{"bare word DATE", "p = DATE", cells{"p": "DATE"}, yes},
	{"no blanks", "p='a'AND(n=1)", cells{"p": "a", "n": "1"}, yes},
	{"many blanks", " \t\n p \n =\u00a0 'a' \n", cells{"p": "a"}, yes},
	{"keywords in any case", "p Is nOt null aNd n bEtWeEn 1 and 2 oR Not p like x", cells{"p": "a", "n": "2"}, yes},

	{"the default partition's name is a string", "p='__DEFAULT_PARTITION__'", cells{}, unknown},
	{"the default partition's name, bare", "p=__DEFAULT_PARTITION__", cells{"p": "__DEFAULT_PARTITION__"}, yes},
}

func TestParseWhere(t *testing.T) {
	s := everyType()
	for _, c := range whereCases {
		t.Run(c.name, func(t *testing.T) {
			p := row(t, s, c.partition)
			for where, want := range map[string]bool{
				c.where:                 c.want == yes,
				"NOT (" + c.where + ")": c.want == no,
			} {
				f, err := ParseWhere(s, where)
				if err != nil {
					t.Fatal(err)
				}
				if got := f.Matches(p); got != want {
					t.Errorf("%s of %v is %v, want %v", where, c.partition, got, want)
				}
				if f.String() != where || len(f.terms) == 0 {
					t.Errorf("%s prints as %q, empty %v", where, f, len(f.terms) == 0)
				}
			}
		})
	}
}

// TestWhereLiterals compares every type with a literal that equals the cell,
// and with those just below and above it.
func TestWhereLiterals(t *testing.T) {
	s := everyType()
	for _, c := range []struct{ column, cell, equal, below, above string }{
		{"c", "abc", "'abc'", "'abb'", "'abd'"},
		{"vc", "abc", "abc", "'ab'", "abcd"},
		{"n", "-2147483648", "-2147483648", "", "-2147483647"},
		{"n", "2147483647", "2147483647", "2147483646", ""},
		{"ti", "-128", "-128", "", "127"},
		{"si", "32767", "32767", "-32768", ""},
		{"bi", "9223372036854775807", "9223372036854775807", "9223372036854775806", ""},
		{"f", "0.1", "0.1", "0.09999999", "0.10000001"},
		{"g", "-1.5", "-1.5e0", "-1.6", "1"},
		{"dec", "12.50", "12.5", "12.49", "12.51"},
		{"dec", "-0.01", "-.01", "-0.02", "0"},
		{"big", "99999999999999999999999999999999999999", "99999999999999999999999999999999999999", "99999999999999999999999999999999999998", ""},
		{"b", "true", "TRUE", "false", ""},
		{"b", "false", "false", "", "true"},
		{"d", "2024-02-29", "'2024-02-29'", "2024-02-28", "DATE '2024-03-01'"},
		{"d", "1969-12-31", "date '1969-12-31'", "'1582-01-01'", "'9999-12-31'"},
		{"Date", "2024-02-29", "DATE '2024-02-29'", "DATE '0001-01-01'", "DATE '2024-03-01'"},
		{"tm", "23:59:59.999", "'23:59:59.999'", "TIME '23:59:59.99'", ""},
		{"ts", "2024-02-29 01:02:03.004", "TIMESTAMP '2024-02-29 01:02:03.004'", "'2024-02-29'", "'2024-02-29T01:02:03.005'"},
		{"ts", "2024-02-29 00:00:00", "2024-02-29", "'2024-02-28 23:59:59.999'", "timestamp '2024-02-29 00:00:00.001'"},
		{"ts9", "1969-12-31 23:59:59.999999999", "'1969-12-31 23:59:59.999999999'", "'1969-12-31 23:59:59.999999998'", "'1970-01-01'"},
		{"lz", "2024-02-29 01:02:03.000004", "'2024-02-29 01:02:03.000004'", "'2024-02-29 01:02'", "'2024-02-29 01:02:03.000005'"},
		{"bin", "00ff", "'00ff'", "00fe", "'00FF00'"},
	} {
		p := row(t, s, cells{c.column: c.cell})
		check := func(where string, want bool) {
			t.Helper()
			f, err := ParseWhere(s, where)
			if err != nil {
				t.Error(err)
			} else if f.Matches(p) != want {
				t.Errorf("%s of %s: got %v, want %v", where, c.cell, !want, want)
			}
		}
		check(c.column+" = "+c.equal, true)
		check(c.column+" < "+c.equal, false)
		check(c.column+" IN ("+c.equal+","+c.equal+")", true)
		if c.below != "" {
			check(c.column+" > "+c.below, true)
			check(c.column+" <= "+c.below, false)
			check(c.column+" BETWEEN "+c.below+" AND "+c.equal, true)
		}
		if c.above != "" {
			check(c.column+" < "+c.above, true)
			check(c.column+" >= "+c.above, false)
			check(c.column+" NOT BETWEEN "+c.above+" AND "+c.above, true)
		}
	}
}

func TestWhereErrors(t *testing.T) {
	s := everyType()
	golden(t, "where_errors.txt", func(where string) string {
		f, err := ParseWhere(s, where)
		if err == nil {
			return "no error"
		}
		if !errors.Is(err, ErrInvalid) || len(f.terms) > 0 {
			t.Errorf("%s: %v does not wrap ErrInvalid, or comes with a filter", where, err)
		}
		return err.Error()
	})
}

func TestWhereWithoutPartitionColumns(t *testing.T) {
	s := everyType()
	s.PartitionKeys = nil
	for where, want := range map[string]string{
		"p = a": `filter "p = a": column "p" is not a partition column; the table has no partition columns: invalid`,
		"x = a": `filter "x = a": unknown column "x"; the table has no partition columns: invalid`,
	} {
		if _, err := ParseWhere(s, where); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", where, err, want)
		}
	}
	if !(Filter{}).Matches(nil) || len((Filter{}).terms) > 0 {
		t.Error("the zero filter does not select everything")
	}
}

func TestWhereLimits(t *testing.T) {
	s := everyType()
	nested := func(open, end string, n int) string {
		return strings.Repeat(open, n) + "p = a" + strings.Repeat(end, n)
	}
	for _, c := range []struct {
		where, want string
	}{
		{nested("(", ")", maxFilterDepth), ""},
		{nested("(", ")", maxFilterDepth+1), "nests deeper than 200 levels"},
		{nested("NOT ", "", maxFilterDepth), ""},
		{nested("NOT ", "", maxFilterDepth+1), "nests deeper than 200 levels"},
		{nested("NOT (", ")", maxFilterDepth), "nests deeper than 200 levels"},
		{nested("(", ")", maxFilterLength/2), "longer than 1048576 bytes"},
		{nested("(", ")", maxFilterLength/2-3), "nests deeper than 200 levels"},
		{"p = '" + strings.Repeat("x", maxFilterLength-6) + "'", ""},
		{"p IN (" + strings.Repeat("x,", 100_000) + "a)", ""},
		{"p = a" + strings.Repeat(" OR p = b", 100_000), ""},
	} {
		_, err := ParseWhere(s, c.where)
		switch {
		case c.want == "" && err != nil:
			t.Error(err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400):
			t.Errorf("%.40s…: got %v, want %s in few words", c.where, err, c.want)
		}
	}
}

func TestFilterAnd(t *testing.T) {
	s := everyType()
	var all Filter
	for _, where := range []string{"p = a OR p = b", "n > 1", "q IS NULL"} {
		f, err := ParseWhere(s, where)
		if err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(all)
		if joined := all.And(f); fmt.Sprint(all) != before {
			t.Errorf("And changed its receiver to %v", all)
		} else {
			all = joined
		}
	}
	for _, c := range []struct {
		partition cells
		want      bool
	}{
		{cells{"p": "a", "n": "2"}, true},
		{cells{"p": "b", "n": "2"}, true},
		{cells{"p": "b", "n": "1"}, false},
		{cells{"p": "c", "n": "2"}, false},
		{cells{"p": "a", "n": "2", "q": "x"}, false},
		{cells{"n": "2"}, false},
	} {
		if all.Matches(row(t, s, c.partition)) != c.want {
			t.Errorf("%s of %v: want %v", all, c.partition, c.want)
		}
	}
}
