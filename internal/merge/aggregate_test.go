package merge_test

import (
	"strings"
	"testing"

	"tablectl/internal/merge"
)

// aggregated is what the values of a column become, or a message.
func aggregated(t *testing.T, function, typ, options, records string) string {
	t.Helper()
	w := world{
		engine: merge.Aggregation, columns: "k INT NOT NULL, v " + typ,
		options: strings.TrimSuffix("fields.v.aggregate-function="+function+"; "+options, "; "),
	}
	var lines []string
	for _, r := range split(records, "; ") {
		kind, value, _ := strings.Cut(r, " ")
		lines = append(lines, kind+" 1 "+value)
	}
	merged := w.outcome(t, strings.Join(lines, "; "))
	if _, value, ok := strings.Cut(merged, " 1 "); ok {
		return value
	}
	return merged
}

// functionCase is the values of one column and what they become.
type functionCase struct{ functions, typ, options, records, want string }

func checkFunctions(t *testing.T, cases []functionCase) {
	t.Helper()
	for _, c := range cases {
		for _, function := range strings.Fields(c.functions) {
			got := aggregated(t, function, c.typ, c.options, c.records)
			message, failing := strings.CutPrefix(c.want, "error: ")
			if failing && !strings.Contains(got, message) || !failing && got != c.want {
				t.Errorf("%s of %s, %s, %s\n got %s\nwant %s", function, c.typ, c.options, c.records, got, c.want)
			}
		}
	}
}

func TestAggregateFunctions(t *testing.T) {
	const last = "last_value last_non_null_value"
	const first = "first_value first_non_null_value first_not_null_value"
	checkFunctions(t, []functionCase{
		{last, "STRING", "", "+I a; +U b", "b"},
		{"last_value", "STRING", "", "+I a; +I null", "null"},
		{"last_non_null_value", "STRING", "", "+I a; +I null", "a"},
		{first, "STRING", "", "+I a; +I b; +I c", "a"},
		{"first_value", "STRING", "", "+I null; +I b", "null"},
		{"first_non_null_value first_not_null_value", "STRING", "", "+I null; +I b; +I null; +I c", "b"},
		{"last_value last_non_null_value " + first, "STRING", "", "+I null; +I null", "null"},

		{"max", "INT", "", "+I 3; +I 12; +I 5", "12"},
		{"min", "INT", "", "+I 5; +I 3; +I 12", "3"},
		{"max min", "INT", "", "+I null; +I 3; +I null", "3"},
		{"max min sum product", "INT", "", "+I null; +I null", "null"},
		{"max min", "INT", "aggregation.remove-record-on-delete=true", "+I 3; -D null; +I 5", "5"},
		{"max", "TINYINT", "", "+I -128; +I -1", "-1"},
		{"min", "BIGINT", "", "+I -9223372036854775808; +I 9223372036854775807", "-9223372036854775808"},
		{"max", "STRING", "", "+I b; +I abc; +I é", "é"}, // by bytes
		{"min", "STRING", "", "+I b; +I B; +I a", "B"},
		{"max", "BYTES", "", "+I 7f; +I 80", "80"}, // unsigned
		{"max", "DOUBLE", "", "+I 1.5; +I NaN; +I Inf", "NaN"},
		{"min", "DOUBLE", "", "+I 0; +I -0", "-0"},
		{"max", "DOUBLE", "", "+I -0; +I 0", "0"},
		{"max", "DECIMAL(20,2)", "", "+I -1.50; +I -1.49", "-1.49"},
		{"max", "DATE", "", "+I 1969-12-31; +I 2024-02-29", "2024-02-29"},
		{"min", "TIME(3)", "", "+I 00:00:01; +I 00:00:00.999", "00:00:00.999"},
		{
			"max", "TIMESTAMP(9)", "",
			"+I 2024-02-29T00:00:00.000000001; +I 2024-02-29T00:00:00.000000002", "2024-02-29␣00:00:00.000000002",
		},

		{"bool_and", "BOOLEAN", "", "+I true; +I true; +I null", "true"},
		{"bool_and", "BOOLEAN", "", "+I true; +I false; +I true", "false"},
		{"bool_or", "BOOLEAN", "", "+I null; +I false; +I true; +I false", "true"},
		{"bool_or", "BOOLEAN", "", "+I false; +I false", "false"},
		{"bool_and bool_or", "BOOLEAN", "", "+I null; +I null", "null"},
	})
}

func TestSumAndProduct(t *testing.T) {
	const numeric = "TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL(4,0) DECIMAL(18,0) DECIMAL(38,0)"
	for typ := range strings.FieldsSeq(numeric) {
		checkFunctions(t, []functionCase{
			{"sum", typ, "", "+I 20; +I null; +U 3; -D 5", "18"},
			{"sum", typ, "", "-D 5; +I 20", "15"},
			{"sum", typ, "", "-U 5; -D 6", "-11"},
			{"sum", typ, "", "+I 5; -D null", "5"},
			{"product", typ, "", "+I 4; +I null; +I -5", "-20"},
			{"product", typ, "", "+I 20; -D 5; -D null", "4"},
			{"product", typ, "", "-D 5; +I 4", "4"}, // nothing is there to divide
			{"sum product", typ, "", "-D null; +I null", "null"},
		})
	}
	checkFunctions(t, []functionCase{
		{"sum", "TINYINT", "", "+I 100; +I 27", "127"},
		{"sum", "TINYINT", "", "+I 100; +I 28", "error: sum: the result 128 does not fit the type TINYINT"},
		{"sum", "TINYINT", "", "-D -128; +I 0", "error: sum: the result 128"},
		{"sum", "SMALLINT", "", "+I -32768; -D 1", "error: sum: the result -32769"},
		{"sum", "INT", "", "+I 2147483647; +I 1", "error: sum: the result 2147483648"},
		{"sum", "BIGINT", "", "+I 9223372036854775807; +I 1", "error: sum: the result 9223372036854775808"},
		{"sum", "BIGINT", "", "+I 9223372036854775807; +I 1; -D 1", "error: sum: the result"}, // on the way already
		{"product", "TINYINT", "", "+I 16; +I -8", "-128"},
		{"product", "TINYINT", "", "+I 16; +I 8", "error: product: the result 128 does not fit"},
		{"product", "INT", "", "+I 65536; +I 65536", "error: product: the result 4294967296"},
		{"product", "BIGINT", "", "+I -9223372036854775808; -D -1", "error: product: the result 9223372036854775808"},
		{"product", "INT", "", "+I -7; -D 2", "-3"}, // towards zero
		{"product", "INT", "", "+I 7; -D 0", "error: product: a record is retracted whose value is zero"},
		{"product", "DECIMAL(4,0)", "", "+I 7; -D 0", "error: product: a record is retracted whose value is zero"},
		{"product", "DOUBLE", "", "+I 7; -D 0", "+Inf"},

		{"sum", "DOUBLE", "", "+I 0.1; +I 0.2", "0.30000000000000004"},
		{"sum", "FLOAT", "", "+I 16777216; +I 1", "1.6777216e+07"}, // as floats, not as doubles
		{"sum", "FLOAT", "", "+I 16777216; +I 1; -D 16777216", "0"},
		{"product", "FLOAT", "", "+I 0.1; +I 0.1", "0.010000001"},
		{"sum", "DOUBLE", "", "-D 0; -D null", "-0"},

		// A decimal that is stored as an integer may outgrow its digits; others are null.
		{"sum", "DECIMAL(4,2)", "", "+I 99.99; +I 0.02", "100.01"},
		{"sum", "DECIMAL(18,0)", "", "+I 999999999999999999; +I 1", "1000000000000000000"},
		{"sum", "DECIMAL(9,0)", "", "+I 999999999; +I 999999999", "1999999998"},
		{
			"sum", "DECIMAL(9,0)", "",
			"+I 999999999; +I 999999999; +I 999999999", "error: sum: the result 2999999997 does not fit",
		},
		{"sum", "DECIMAL(19,0)", "", "+I 9999999999999999999; +I 1", "null"},
		{"sum", "DECIMAL(19,0)", "", "+I 9999999999999999999; +I 1; +I 5", "5"},
		{"sum", "DECIMAL(38,2)", "", "-D 0.01; -D 0.02", "-0.03"},
		{"product", "DECIMAL(4,2)", "", "+I 1.11; +I 1.50", "1.67"}, // 1.665
		{"product", "DECIMAL(4,2)", "", "+I 1.11; +I -1.50", "-1.67"},
		{"product", "DECIMAL(4,2)", "", "+I 0.07; +I 0.07", "0.00"},
		{"product", "DECIMAL(4,2)", "", "+I 50; +I 2", "null"},
		{"product", "DECIMAL(4,2)", "", "+I 50; +I 1.99", "99.50"},
		{"product", "DECIMAL(38,10)", "", "+I 1.5; +I 1.5", "2.2500000000"},
		{"product", "DECIMAL(4,2)", "", "+I 1.00; -D 8", "0.13"}, // 0.125
		{"product", "DECIMAL(6,2)", "", "+I 1; -D 125", "0.01"},  // 0.008
		{"product", "DECIMAL(4,2)", "", "+I 1; -D 3", "error: product: 1.00 divided by 3.00 has no exact decimal result"},
		{"product", "DECIMAL(4,2)", "", "+I 0; -D 3", "0.00"},
		{"product", "DECIMAL(4,2)", "", "+I 1; -D 0.01", "null"},
	})
}

func TestListAgg(t *testing.T) {
	const distinct = "fields.v.distinct=true"
	checkFunctions(t, []functionCase{
		{"listagg", "STRING", "", "+I a; +I null; +I b; +U a", "a,b,a"},
		{"listagg", "STRING", "", "+I null; +I null", "null"},
		{"listagg", "STRING", "", "+I a; +I ''; +I b", "a,b"},
		{"listagg", "STRING", "", "+I ''; +I a", "a"},
		{"listagg", "STRING", "", "+I ,; +I ,", ",,,"},
		{"listagg", "STRING", "fields.v.list-agg-delimiter=--", "+I a; +I b", "a--b"},
		{"listagg", "STRING", "fields.v.list-agg-delimiter=", "+I a; +I b", "ab"},
		{"listagg", "STRING", distinct, "+I a; +I b; +I a; +I b", "a,b"},
		{"listagg", "STRING", distinct, "+I a; +I c,a,,c,b", "a,c,b"},
		{"listagg", "STRING", distinct, "+I a,a; +I a", "a,a"}, // what is there stays as it is
		{"listagg", "STRING", distinct + "; fields.v.list-agg-delimiter=--", "+I a--b; +I b--c-", "a--b--c-"},
		// Without a delimiter tokens are words, and are put together as one.
		{"listagg", "STRING", distinct + "; fields.v.list-agg-delimiter=", "+I a␣b; +I b␣c", "a␣bc"},
		{"listagg", "STRING", distinct + "; fields.v.list-agg-delimiter=", "+I ab; +I ba", "abba"},
		{"listagg", "STRING", "fields.v.distinct=false", "+I a; +I a", "a,a"},
	})
}

// TestRetract lists which functions take back what they added, and what becomes of
// them when they need not.
func TestRetract(t *testing.T) {
	checkFunctions(t, []functionCase{
		{"last_value", "STRING", "", "+I a; -D b", "null"},
		{"last_value", "STRING", "", "+I a; -D null; +I c", "c"},
		{"last_non_null_value", "STRING", "", "+I a; -U b", "null"},
		{"last_non_null_value", "STRING", "", "+I a; -U null", "a"},
	})
	for _, c := range []struct{ functions, typ, a, b, ignoring string }{
		{"first_value first_non_null_value min", "STRING", "a", "b", "a"},
		{"max last_value last_non_null_value", "STRING", "a", "b", "b"},
		{"listagg", "STRING", "a", "b", "a,b"},
		{"bool_and", "BOOLEAN", "true", "false", "false"},
		{"bool_or", "BOOLEAN", "false", "true", "true"},
		{"sum", "INT", "3", "4", "7"},
		{"product", "DOUBLE", "3", "4", "12"},
	} {
		records := "+I " + c.a + "; -D " + c.a + "; +I " + c.b + "; -U " + c.b
		checkFunctions(t, []functionCase{{c.functions, c.typ, "fields.v.ignore-retract=true", records, c.ignoring}})
	}
	for _, function := range []string{"first_value", "first_non_null_value", "max", "min", "listagg"} {
		checkFunctions(t, []functionCase{{
			function, "STRING", "", "+I a; -D null", "error: the aggregate function " + function + " cannot retract",
		}})
	}
	for _, function := range []string{"bool_and", "bool_or"} {
		checkFunctions(t, []functionCase{{
			function, "BOOLEAN", "", "+I true; -U null", "error: the aggregate function " + function + " cannot retract",
		}})
	}
}

func TestAggregation(t *testing.T) {
	w := world{engine: merge.Aggregation, columns: "k INT NOT NULL, a INT, b INT, s INT", sequence: "s"}
	w.options = "fields.a.aggregate-function=sum"
	w.run(t, []mergeCase{
		{"each by its own function", "", "+I 1 10 10 1; +U 1 5 null 2", "+I@2 1 15 10 2"},
		{"the default function", "fields.default-aggregate-function=max", "+I 1 10 10 1; +I 1 5 9 0", "+I@2 1 15 10 0"},
		// The sequence field is that of the last record, with a function or not.
		{"of a sequence field", "fields.s.aggregate-function=sum", "+I 1 1 1 5; +I 1 1 1 null", "+I@2 1 2 1 null"},
		{"of the key", "fields.k.aggregate-function=sum", "+I 1 1 1 1; +I 1 1 1 1", "+I@2 1 2 1 1"},
		{"retracted", "", "+I 1 10 10 1; -D 1 3 10 2", "+I@2 1 7 null null"},
		{"deletes are not ignored", "ignore-delete=true", "+I 1 10 10 1; -D 1 3 10 2", "+I@2 1 7 null null"},
		{"deletes only", "", "-D 1 10 10 1; -D 1 3 null 2", "+I@2 1 -13 null null"},
	})
	w.options += "; aggregation.remove-record-on-delete=true"
	w.run(t, []mergeCase{
		{"removed", "", "+I 1 10 10 1; -D 1 3 null 2", "-D@2 1 3 null 2"},
		{"added again", "", "+I 1 10 10 1; -D 1 3 null 2; +I 1 4 5 3", "+I@3 1 7 5 3"},
		{"removed first", "", "-D 1 3 4 1; +I 1 4 null 2", "+I@2 1 7 4 2"},
		{"removed twice", "", "-D 1 3 4 1; -D 1 5 6 2", "-D@2 1 5 6 2"},
		{"an update's old row retracts", "", "+I 1 10 10 1; -U 1 3 10 2", "+I@2 1 7 null null"},
		{"retracted from what was removed", "", "+I 1 9 9 1; -D 1 3 4 2; -U 1 1 null 3", "+I@3 1 2 4 null"},
	})
}
