//go:build interop

package interop

import (
	"fmt"
	"slices"
	"strings"
)

// A keyedTable is a new table with primary keys, and how its rows are made.
type keyedTable struct {
	spec    tableSpec
	columns []column
	kinds   []string // of the rows, the more frequent ones more than once
	// orderless says that rows come out the same whatever is merged with what first, so that compactions do
	// not change what later writes do either.
	orderless bool
	expires   bool // some of the rows
}

// keyed makes up a table with primary keys.
func (g generator) keyed() keyedTable {
	k := keyedTable{spec: tableSpec{Options: g.treeOptions()}, kinds: []string{"+I", "+I", "+I", "+U"}}
	if g.chance(0.3) {
		p := g.partitionColumn("p")
		p.Type, p.nullRate = p.Type+" NOT NULL", 0
		k.columns, k.spec.PartitionKeys, k.spec.PrimaryKeys = append(k.columns, p), []string{"p"}, []string{"p"}
	}
	most := pick(g, 1, 3, 12) // values of a column
	for i := range 1 + g.IntN(3) {
		k.columns = append(k.columns, g.pooled(fmt.Sprintf("k%d", i), g.scalarType(), most))
		k.spec.PrimaryKeys = append(k.spec.PrimaryKeys, fmt.Sprintf("k%d", i))
	}
	switch g.weighted(40, 30, 30) {
	case 0:
		g.deduplicate(&k)
	case 1:
		g.partialUpdate(&k)
	default:
		g.aggregation(&k)
	}
	g.Shuffle(len(k.columns), func(i, j int) { k.columns[i], k.columns[j] = k.columns[j], k.columns[i] })
	for _, c := range k.columns {
		k.spec.Fields = append(k.spec.Fields, c.field)
	}
	return k
}

// pooled makes up a column without nulls that has at most so many values, all of which have an order: in keys,
// Java 1.4.2 takes NaN for equal to every number, and the two zeros for equal.
func (g generator) pooled(name, typ string, most int) column {
	c := column{field: field{name, typ + " NOT NULL"}}
	value := g.scalar(typ)
	if typ == "FLOAT" || typ == "DOUBLE" {
		value = func() any { return float64(pick(g, -1, 1)) * (0.125 + float64(g.IntN(1e6))) }
	}
	values := make([]any, most)
	for i := range values {
		values[i] = value()
	}
	c.value = func() any { return pick(g, values...) }
	return c
}

// treeOptions makes up what decides how files are merged, when, and how they are written.
func (g generator) treeOptions() map[string]string {
	options := map[string]string{"bucket": pick(g, "1", "1", "2", "-1")}
	choose := func(name string, values ...string) {
		if i := g.IntN(len(values) + 1); i > 0 {
			options[name] = values[i-1]
		}
	}
	choose("num-sorted-run.compaction-trigger", "1", "2", "3")
	choose("num-levels", "2", "3", "6")
	choose("compaction.max-size-amplification-percent", "0", "10", "100000")
	choose("compaction.size-ratio", "0", "50")
	choose("compaction.force-up-level-0", "true")
	choose("target-file-size", "1 b", "4 kb")
	choose("file.compression", "zstd", "snappy", "lz4", "none")
	choose("file.compression.per.level", "0:lz4,1:zstd")
	choose("file.block-size", "1 kb")
	choose("parquet.page.size", "256")
	choose("metadata.stats-mode", "none", "full")
	choose("changelog-producer", "none", "input")
	if g.chance(0.2) {
		options["data-file.thin-mode"] = "true"
	}
	if g.chance(0.1) {
		options["compaction.force-rewrite-all-files"] = "true"
	}
	return options
}

// sequence gives the table sequence fields, or none.
func (g generator) sequence(k *keyedTable) {
	var names []string
	for i := range g.weighted(50, 35, 15) {
		c := g.pooled(fmt.Sprintf("s%d", i), pick(g, "INT", "BIGINT", "STRING", "TIMESTAMP(3)", "DOUBLE"), pick(g, 2, 5))
		c.Type, c.nullRate = strings.TrimSuffix(c.Type, " NOT NULL"), pick(g, 0, 0.2)
		k.columns, names = append(k.columns, c), append(names, c.Name)
	}
	if names == nil {
		return
	}
	k.orderless = false
	k.spec.Options["sequence.field"] = strings.Join(names, ",")
	if g.chance(0.4) {
		k.spec.Options["sequence.field.sort-order"] = pick(g, "ascending", "descending")
	}
}

func (g generator) deduplicate(k *keyedTable) {
	for i := range 1 + g.IntN(4) {
		k.columns = append(k.columns, g.column(fmt.Sprintf("v%d", i)))
	}
	k.orderless = true
	g.sequence(k)
	if deletes := g.chance(0.7); deletes {
		k.kinds = append(k.kinds, "-D", "-U")
	} else {
		k.orderless = true // a delete that a full compaction has dropped no longer hides what comes late
	}
	if g.chance(0.25) {
		k.spec.Options[pick(g, "ignore-delete", "deduplicate.ignore-delete")] = "true"
	}
	if g.chance(0.15) {
		g.expire(k)
	}
}

// expiredTime is what rows that are to expire have in the column t.
const expiredTime = `"t":946684800`

// expire has the table forget rows by a column, whose times are long ago or far ahead.
func (g generator) expire(k *keyedTable) {
	c := column{field: field{"t", pick(g, "INT", "BIGINT")}, nullRate: pick(g, 0, 0.2)}
	c.value = func() any { return pick(g, 946684800, 2100000000) }
	k.columns, k.expires, k.orderless = append(k.columns, c), true, false
	k.spec.Options["record-level.expire-time"] = "1 d"
	k.spec.Options["record-level.time-field"] = c.Name
}

// valueColumn makes up a column that can be null.
func (g generator) valueColumn(name string) column {
	c := g.column(name)
	c.Type = strings.TrimSuffix(c.Type, " NOT NULL")
	c.nullRate = pick(g, 0.1, 0.4, 0.7)
	return c
}

func (g generator) partialUpdate(k *keyedTable) {
	k.spec.Options["merge-engine"] = "partial-update"
	for i := range 1 + g.IntN(3) {
		k.columns = append(k.columns, g.valueColumn(fmt.Sprintf("v%d", i)))
	}
	groups := g.weighted(40, 35, 25)
	deletes := g.chance(0.5)
	var sequences []string
	for n := range groups {
		sequences = append(sequences, g.sequenceGroup(k, n, deletes)...)
	}
	g.sequence(k)
	if !deletes {
		return
	}
	k.kinds = append(k.kinds, "-D")
	switch {
	case g.chance(0.4):
		k.spec.Options[pick(g, "ignore-delete", "partial-update.ignore-delete")] = "true"
	case groups == 0:
		k.spec.Options["partial-update.remove-record-on-delete"] = "true"
	case g.chance(0.5):
		k.spec.Options["partial-update.remove-record-on-sequence-group"] = pick(g, sequences...)
	}
	if g.chance(0.5) {
		k.kinds = append(k.kinds, "-U")
	}
}

// sequenceGroup adds a sequence group and returns its sequence fields.
func (g generator) sequenceGroup(k *keyedTable, n int, deletes bool) (sequences []string) {
	for i := range 1 + g.IntN(2) {
		c := g.pooled(fmt.Sprintf("g%ds%d", n, i), pick(g, "INT", "BIGINT", "STRING"), 4)
		c.Type, c.nullRate = strings.TrimSuffix(c.Type, " NOT NULL"), 0.2
		k.columns, sequences = append(k.columns, c), append(sequences, c.Name)
	}
	var members []string
	for i := range 1 + g.IntN(3) {
		name := fmt.Sprintf("g%dv%d", n, i)
		if g.chance(0.5) {
			g.aggregated(k, name, deletes, true)
		} else {
			k.columns = append(k.columns, g.valueColumn(name))
		}
		members = append(members, name)
	}
	k.spec.Options["fields."+strings.Join(sequences, ",")+".sequence-group"] = strings.Join(members, ",")
	return sequences
}

func (g generator) aggregation(k *keyedTable) {
	k.spec.Options["merge-engine"] = "aggregation"
	k.orderless = true
	deletes, remove := g.chance(0.4), g.chance(0.3)
	for i := range 1 + g.IntN(4) {
		g.aggregated(k, fmt.Sprintf("v%d", i), deletes && !remove, false)
	}
	g.sequence(k)
	switch {
	case deletes && remove:
		k.spec.Options["aggregation.remove-record-on-delete"] = "true"
		k.kinds = append(k.kinds, "-D")
		k.orderless = false
	case deletes:
		k.kinds = append(k.kinds, "-D", "-U")
		k.orderless = false // a delete that is alone in the highest level is dropped, and then missing
	}
}

// aggregated adds a column that is aggregated. Values are such that Java computes no number that does not fit,
// which it does not notice.
func (g generator) aggregated(k *keyedTable, name string, retracts, grouped bool) {
	function := pick(g, "sum", "sum", "product", "max", "min", "last_value", "last_non_null_value", "first_value",
		"first_non_null_value", "listagg", "bool_and", "bool_or", "collect", "merge_map", "merge_map_with_keytime",
		"nested_update", "nested_partial_update")
	c := g.valueColumn(name)
	retractable := false
	switch function {
	case "sum":
		c.Type = pick(g, "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(8,2)", "DECIMAL(16,3)", "DECIMAL(30,10)")
		c.value, retractable = func() any { return g.IntN(5) - 2 }, true
	case "product":
		c.Type = pick(g, "BIGINT", "DOUBLE", "DECIMAL(30,2)")
		c.value = func() any {
			if g.IntN(16) == 0 { // more than 62 of them do not fit
				return 2
			}
			return pick(g, -1, 1)
		}
	case "max", "min":
		for c.Type = g.scalarType(); slices.Contains([]string{"BOOLEAN", "BYTES"}, c.Type) || strings.Contains(c.Type, "BINARY"); {
			c.Type = g.scalarType()
		}
		c.value = g.scalar(c.Type)
	case "last_value", "last_non_null_value":
		retractable = true
	case "listagg":
		c.Type = "STRING"
		c.value = func() any { return pick(g, "", " ", "a", "b", "a,b", "a;b", "\t", "é😀", g.text(5)) }
		if g.chance(0.3) {
			k.spec.Options["fields."+name+".list-agg-delimiter"] = pick(g, ";", "--", " ")
		}
		if g.chance(0.3) {
			k.spec.Options["fields."+name+".distinct"] = "true"
		}
	case "bool_and", "bool_or":
		c.Type = "BOOLEAN"
		c.value = func() any { return g.chance(0.5) }
	default:
		c.Type, c.value = g.nestedAggregate(k.spec.Options, name, function)
		retractable = slices.Contains([]string{"collect", "merge_map", "nested_update"}, function)
	}
	k.columns = append(k.columns, c)
	k.spec.Options["fields."+name+".aggregate-function"] = function
	if retracts && (!retractable || g.chance(0.3)) {
		k.spec.Options["fields."+name+".ignore-retract"] = "true"
	}
	if grouped || !slices.Contains([]string{"sum", "max", "min", "bool_and", "bool_or"}, function) ||
		slices.Contains([]string{"FLOAT", "DOUBLE"}, c.Type) {
		k.orderless = false
	}
}

// nestedAggregate makes up a column of a function on nested values. Rows in an array are told apart by their
// keys, as newer versions of Java merge those of one array, and 1.4.2 does not.
func (g generator) nestedAggregate(options map[string]string, name, function string) (string, func() any) {
	set := func(option, value string) { options["fields."+name+"."+option] = value }
	few := func() any { return g.IntN(4) }
	letter := func() any { return pick(g, "a", "b", "é", "😀", "\uffff") }
	row := func() map[string]any {
		return map[string]any{"a": few(), "b": g.orNull(letter, 0.2), "c": g.orNull(letter, 0.2)}
	}
	anyRow := func() any { return row() }
	const rowType = "ROW<a INT, b STRING, c STRING>"
	rows := func() any {
		all := []any{}
		for _, key := range g.Perm(4)[:g.IntN(4)] {
			r := row()
			r["a"] = key
			all = append(all, r)
		}
		return all
	}
	switch function {
	case "collect":
		distinct := g.chance(0.5)
		if distinct {
			set("distinct", "true")
		}
		if distinct && g.chance(0.5) { // else Java fails to retract rows
			return "ARRAY<" + rowType + ">", func() any { return g.list(anyRow, 0) } // Java fails to compare a null
		}
		if g.chance(0.5) {
			return "ARRAY<INT>", func() any { return g.list(few, 0.2) }
		}
		return "ARRAY<STRING>", func() any { return g.list(letter, 0.2) }
	case "merge_map":
		return "MAP<STRING, ARRAY<INT>>", g.entries(letter, func() any { return g.list(few, 0.2) }, 0.2)
	case "merge_map_with_keytime":
		if g.chance(0.5) {
			set("ts-field", "b")
		}
		return "MAP<INT, " + rowType + ">", g.entries(few, anyRow, 0.2)
	case "nested_update":
		if g.chance(0.3) {
			return "ARRAY<" + rowType + ">", rows
		}
	}
	set("nested-key", "a")
	return "ARRAY<" + rowType + ">", rows
}

// keyedRows makes up what one commit writes.
func (g generator) keyedRows(k keyedTable) []string {
	var rows []string
	for range 1 + g.IntN(pick(g, 3, 12, 60)) {
		rows = append(rows, `{"_kind":"`+pick(g, k.kinds...)+`",`+g.row(k.columns)[1:])
	}
	return rows
}
