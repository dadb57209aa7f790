package merge_test

import (
	"strings"
	"testing"

	"tablectl/internal/merge"
)

// TestFirstAfterRemoval removes the row after a first value was seen. The first
// value is one of the key: a removal puts another in its place, but does not make
// the function look for a first value again.
func TestFirstAfterRemoval(t *testing.T) {
	w := world{engine: merge.Aggregation, columns: "k INT NOT NULL, a STRING, b STRING"}
	w.options = "aggregation.remove-record-on-delete=true;" +
		" fields.a.aggregate-function=first_value; fields.b.aggregate-function=first_non_null_value"
	w.run(t, []mergeCase{
		{"at the start", "", "-D 1 a a; +I 1 b b; +I 1 c c", "+I@3 1 b b"},
		{"after a value", "", "+I 1 a a; -D 1 b b; +I 1 c c", "+I@3 1 b b"},
		{"after a null", "", "+I 1 null null; -D 1 b b; +I 1 c c", "+I@3 1 b c"},
	})
	w = world{engine: merge.PartialUpdate, columns: "k INT NOT NULL, g INT, a STRING"}
	w.options = "fields.g.sequence-group=a; fields.a.aggregate-function=first_value;" +
		" partial-update.remove-record-on-sequence-group=g"
	w.run(t, []mergeCase{{"in a sequence group", "", "+I 1 1 a; -D 1 2 b; +I 1 3 c", "+I@3 1 3 b"}})
}

// TestSumBeyondLong adds decimals of 18 digits until 64 bits do not hold them. That
// is one digit more than any such type has, so that the sum is null.
func TestSumBeyondLong(t *testing.T) {
	most := strings.Repeat("+I 999999999999999999; ", 10)
	checkFunctions(t, []functionCase{
		{"sum", "DECIMAL(18,0)", "", most + "+I null", "null"},
		{"sum", "DECIMAL(18,0)", "", most + "+I 7", "7"},
	})
}
