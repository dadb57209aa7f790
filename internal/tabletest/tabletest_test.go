package tabletest_test

import (
	"math/rand/v2"
	"testing"

	"tablectl/internal/tabletest"
	"tablectl/snapshot"
)

// TestRows shows that the reader of this package sees in tables that other
// implementations wrote what those say is in them.
func TestRows(t *testing.T) {
	for _, name := range tabletest.Cases(t) {
		tbl := tabletest.Load(t, tabletest.File(t, name, "wh.db/t"), nil)
		s, err := snapshot.Latest(t.Context(), tbl)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if why, err := tabletest.Unsupported(t.Context(), tbl, s); err != nil || why != "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if len(tbl.Schema.PrimaryKeys) > 0 {
			continue // rows are to be merged first
		}
		rows, err := tabletest.Rows(t.Context(), tbl, s)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, _ := tabletest.Expected(t, name)
		if diff := tabletest.Diff(rows, want); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestFiles shows that the reader reads what the writer writes, in every form.
func TestFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		schemas := tabletest.Schemas{Choose: r.IntN}
		fields := schemas.Fields(1+r.IntN(6), 3)
		values := tabletest.Values{Rand: r, NullRate: r.Float64()}
		rows := values.Rows(fields, r.IntN(300))
		options := tabletest.FileOptions{
			Codec:       []string{"zstd", "snappy", "gzip", "lz4_raw", "brotli", "none"}[i%6],
			PageVersion: 1 + i%2, PageSize: 1 << (4 + r.IntN(10)), RowGroupRows: r.IntN(100), Dictionary: i%3 == 0, Delta: i%4 == 0,
		}
		data, err := tabletest.WriteFile(fields, rows, options)
		if err != nil {
			t.Fatalf("write %v with %+v: %v", fields, options, err)
		}
		back, err := tabletest.ReadFile(data, fields)
		if err != nil {
			t.Fatalf("read %v with %+v: %v", fields, options, err)
		}
		got, want := tabletest.TextLines(fields, back), tabletest.TextLines(fields, rows)
		if diff := tabletest.Diff(got, want); diff != "" {
			t.Fatalf("%v with %+v: %s", fields, options, diff)
		}
	}
}
