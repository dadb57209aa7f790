//go:build interop

package interop

import (
	"fmt"
	"slices"
	"testing"
)

// numberedFields are the columns of the rows of numberedBatches.
var numberedFields = []field{{"id", "INT"}, {"s", "STRING"}}

// numberedBatches are distinct rows, in canonical text; their ids are in no particular order.
func numberedBatches(batches, rowsEach int) [][]string {
	const scatter = 7919 // a prime, so that ids are distinct
	all := make([][]string, batches)
	for b := range all {
		for r := range rowsEach {
			n := b*rowsEach + r
			all[b] = append(all[b], fmt.Sprintf(`{"id":%d,"s":"row %d"}`, n*scatter%(batches*rowsEach), n))
		}
	}
	return all
}

// TestBucketedOrder shows that in a bucketed append table, whose readers rely on the order of writing,
// compaction keeps that order, and later appends by Java come after it.
func TestBucketedOrder(t *testing.T) {
	tbl := createTable(t, tableSpec{
		Fields:  numberedFields,
		Options: map[string]string{"bucket": "1", "bucket-key": "id"},
	})
	batches := numberedBatches(11, 5)
	first, later := batches[:8], batches[8:]
	written := slices.Concat(first...)
	write(t, tbl, first...)
	requireRows(t, dump(t, tbl, "--unsorted"), written)

	mustCommit(t, tbl, "--strategy", "minor")
	requireRows(t, dump(t, tbl, "--unsorted"), written)

	write(t, tbl, later...)
	requireRows(t, dump(t, tbl, "--unsorted"), slices.Concat(batches...))

	mustCommit(t, tbl, "--strategy", "full")
	requireRows(t, dump(t, tbl, "--unsorted"), slices.Concat(batches...))
}
