//go:build interop

package interop

import (
	"fmt"
	"strconv"
	"testing"
)

// TestSchemaEvolution shows that files of all earlier schemas end up right in files of the latest one,
// also where a dropped name came back with another type, and that the snapshots before the compaction
// still read as they did, each with its own schema.
func TestSchemaEvolution(t *testing.T) {
	tbl := createTable(t, tableSpec{Fields: []field{{"a", "INT"}, {"b", "STRING"}}})
	n := 0
	// next writes two commits; format makes a row of a number.
	next := func(format string) {
		t.Helper()
		for range 2 {
			n++
			write(t, tbl, []string{fmt.Sprintf(format, n), fmt.Sprintf(format, -n), "{}"})
		}
	}
	next(`{"a":%[1]d,"b":"text %[1]d"}`)
	alter(t, tbl, `[{"op":"renameColumn","name":"b","to":"c"}]`)
	next(`{"a":%[1]d,"c":"renamed %[1]d"}`)
	alter(t, tbl, `[{"op":"dropColumn","name":"c"}]`)
	alter(t, tbl, `[{"op":"addColumn","name":"c","type":"BIGINT"}]`)
	next(`{"a":%[1]d,"c":%[1]d000000000000}`)
	alter(t, tbl, `[{"op":"addColumn","name":"d","type":"ARRAY<STRING>"},{"op":"updateType","name":"a","type":"BIGINT"}]`)
	next(`{"a":%[1]d000000000000,"c":%[1]d,"d":["x","%[1]d",null]}`)

	history := tbl.snapshots(t)
	travel := func() [][]string {
		t.Helper()
		var all [][]string
		for _, s := range history {
			all = append(all, dump(t, tbl, "--snapshot", strconv.FormatInt(s.ID, 10)))
		}
		return all
	}
	rowsBefore, historyBefore := dump(t, tbl), travel()

	mustCommit(t, tbl)
	t.Run("rows", func(t *testing.T) {
		checkRows(t, readAll(t, []reading{{table: tbl}}), 0, rowsBefore)
	})
	t.Run("history", func(t *testing.T) {
		for i, rows := range travel() {
			requireRows(t, rows, historyBefore[i])
		}
	})
}
