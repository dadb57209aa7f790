package merge_test

import (
	"strings"
	"testing"

	"tablectl/internal/merge"
)

// TestEnginesRefused has what the reference refuses when it opens a table, and
// sequence fields of two groups, which it takes in the order of a hash map.
func TestEnginesRefused(t *testing.T) {
	const (
		removeOnDelete = "partial-update.remove-record-on-delete"
		removeOnGroup  = "partial-update.remove-record-on-sequence-group"
		removeOnAgg    = "aggregation.remove-record-on-delete"
		groupOfA       = "fields.g.sequence-group=a"
	)
	refused := func(engine string, cases [][2]string) {
		t.Helper()
		for _, c := range cases {
			w := world{engine: engine, columns: "k INT NOT NULL, a INT, b STRING, g INT, h INT, l ARRAY OF INT", options: c[0]}
			w.refused(t, false, strings.Fields(c[1])...)
		}
	}
	refused("rowstore", [][2]string{{"", "merge-engine=rowstore"}})
	refused(merge.Deduplicate, [][2]string{
		{"ignore-delete=yes", "ignore-delete=yes"},
		{"deduplicate.ignore-delete=1", "deduplicate.ignore-delete=1"},
	})
	refused(merge.PartialUpdate, [][2]string{
		{"ignore-delete=", "ignore-delete="},
		{removeOnDelete + "=no", removeOnDelete + "=no"},
		{"ignore-delete=true; " + removeOnDelete + "=true", "ignore-delete " + removeOnDelete},
		{"ignore-delete=true; " + groupOfA + "; " + removeOnGroup + "=g", "ignore-delete " + removeOnGroup},
		{groupOfA + "; " + removeOnDelete + "=true", "sequence groups " + removeOnDelete},
		{"fields.x.sequence-group=a", `fields.x.sequence-group "x"`},
		{"fields.g,x.sequence-group=a", `fields.g,x.sequence-group "x"`},
		{"fields.g.sequence-group=a,x", `fields.g.sequence-group "x"`},
		{"fields.g.sequence-group=", `fields.g.sequence-group ""`},
		{groupOfA + "; fields.h.sequence-group=b,a", "fields.h.sequence-group a two sequence groups"},
		{"fields.g.sequence-group=a,a", "fields.g.sequence-group a two sequence groups"},
		{groupOfA + "; fields.g,h.sequence-group=b", "fields.g.sequence-group g two sequence groups"},
		{"fields.g.sequence-group=a,k", "fields.g.sequence-group k primary key"},
		{"fields.k.sequence-group=a", "fields.k.sequence-group k primary key"},
		{"fields.l.sequence-group=a", "fields.l.sequence-group l ARRAY<INT> no order"},
		{removeOnGroup + "=x", removeOnGroup + ` "x"`},
		{removeOnGroup + "=g", removeOnGroup + " g"},
		{groupOfA + "; " + removeOnGroup + "=g,a", removeOnGroup + " a"},
		{"fields.a.aggregate-function=sum", "column a function sum sequence group"},
		{groupOfA + "; fields.default-aggregate-function=last_value", "column b function last_value sequence group"},
		{"fields.g.sequence-group=b; fields.b.aggregate-function=sum", "column b sum STRING"},
		{groupOfA + "; fields.a.aggregate-function=sum; fields.a.ignore-retract=y", "fields.a.ignore-retract=y"},
	})
	refused(merge.Aggregation, [][2]string{
		{"fields.a.aggregate-function=median", `column a "median"`},
		{"fields.a.aggregate-function=SUM", `column a "SUM"`},
		{"fields.default-aggregate-function=median", `column a "median"`},
		{"fields.b.aggregate-function=sum", "column b sum STRING"},
		{"fields.b.aggregate-function=product", "column b product STRING"},
		{"fields.l.aggregate-function=max", "column l max ARRAY<INT>"},
		{"fields.l.aggregate-function=min", "column l min ARRAY<INT>"},
		{"fields.a.aggregate-function=bool_and", "column a bool_and INT"},
		{"fields.a.aggregate-function=bool_or", "column a bool_or INT"},
		{"fields.a.aggregate-function=listagg", "column a listagg INT"},
		{"fields.b.aggregate-function=listagg; fields.b.distinct=?", "fields.b.distinct=?"},
		{removeOnAgg + "=maybe", removeOnAgg + "=maybe"},
		{removeOnAgg + "=true; fields.a.ignore-retract=true", removeOnAgg + " fields.a.ignore-retract"},
		{"fields.a.ignore-retract=maybe", "fields.a.ignore-retract=maybe"},
	})
	listAgg := world{engine: merge.Aggregation, columns: "k INT NOT NULL, v VARCHAR(10)"}
	listAgg.options = "fields.v.aggregate-function=listagg"
	listAgg.refused(t, false, "column v", "listagg", "VARCHAR(10)")
}

// TestEnginesNotSupported has what Paimon has and this package has not.
func TestEnginesNotSupported(t *testing.T) {
	world{engine: merge.FirstRow, columns: "k INT NOT NULL"}.refused(t, true, "first-row")
	for function := range strings.FieldsSeq("rbm32 rbm64 hll_sketch theta_sketch") {
		w := world{engine: merge.Aggregation, columns: "k INT NOT NULL, v BYTES"}
		w.options = "fields.v.aggregate-function=" + function
		w.refused(t, true, "column v", function)
		w.engine, w.columns = merge.PartialUpdate, w.columns+", g INT"
		w.options += "; fields.g.sequence-group=v"
		w.refused(t, true, "column v", function)
	}
}

// TestOptionsOfOtherEngines opens tables whose options speak of engines that they
// do not have.
func TestOptionsOfOtherEngines(t *testing.T) {
	for _, w := range []world{
		{engine: merge.Deduplicate, options: "fields.v.aggregate-function=median; fields.x.sequence-group=y"},
		{engine: merge.Aggregation, options: "fields.x.sequence-group=y; partial-update.remove-record-on-delete=?"},
	} {
		w.columns = "k INT NOT NULL, v STRING"
		if got := w.outcome(t, "+I 1 a; +I 1 b"); got != "+I@2 1 b" {
			t.Errorf("%+v: got %s", w, got)
		}
	}
}
