//go:build interop

package interop

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestSettles shows that a run leaves nothing for the next one to do, however well the rows compress and
// however small the target size is beside what Paimon counts for opening a file: the outputs of one run
// must not look small to the next, or files would be rewritten for ever.
func TestSettles(t *testing.T) {
	const filesOfEach = 20
	tbl := createTable(t, tableSpec{
		Fields:  []field{{"k", "BIGINT"}, {"s", "STRING"}},
		Options: map[string]string{"target-file-size": "512 kb"},
	})
	random := rand.New(rand.NewPCG(1, 2))
	var batches [][]string
	for n := range 2 * filesOfEach {
		compressible := n < filesOfEach
		var rows []string
		for r := range 1200 {
			s := strings.Repeat("the same words again ", 2)
			if !compressible {
				b := make([]byte, 30)
				for i := range b {
					b[i] = byte(random.Uint32())
				}
				s = hex.EncodeToString(b)
			}
			rows = append(rows, fmt.Sprintf(`{"k":%d,"s":"%s"}`, n*10_000+r, s))
		}
		batches = append(batches, rows)
	}
	write(t, tbl, batches...)

	mustCommit(t, tbl)
	for range 2 {
		o, err := runCompact(tbl, nil)
		if err != nil {
			t.Fatal(err)
		}
		if o.code != exitDone || o.result.Status != "nothing_to_do" {
			t.Fatalf("a further run: %v, want nothing to do", o)
		}
	}
	want := slices.Concat(batches...)
	slices.Sort(want)
	requireRows(t, dump(t, tbl), want)
}
