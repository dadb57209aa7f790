//go:build interop

package interop

import "testing"

// TestPushdown shows that statistics and indexes that tablectl writes hide no row: the other readers get,
// for the values of every column pushed down as predicates, the rows that a plain read has.
func TestPushdown(t *testing.T) {
	const values = 12 // of a column
	cases := fixtures(t, "append-all-types", "append-stats-*", "append-file-index*")
	readings := make([]reading, len(cases))
	for i, f := range cases {
		tbl := copyTable(t, f.dir, f.branch)
		mustCommit(t, tbl)
		readings[i] = reading{table: tbl, sweep: values}
	}
	for _, reader := range readers {
		readouts := read(t, reader, readings)
		for i, f := range cases {
			t.Run(reader+"/"+f.name, func(t *testing.T) {
				got := readouts[i]
				if got.err != nil {
					t.Fatalf("reading: %v", got.err)
				}
				if got.skipped != "" {
					t.Skipf("skip.tsv: %s", got.skipped)
				}
				for _, wrong := range got.rows {
					t.Errorf("wrong answer: %s", wrong)
				}
			})
		}
	}
}
