package compact_test

import (
	"slices"
	"testing"

	"tablectl/compact"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// TestPartitionColumnsNotInFiles has files as a migration from Hive takes them
// over: their folder tells the partition, they do not. Rewritten, they hold it,
// and so do their statistics, by which readers skip files.
func TestPartitionColumnsNotInFiles(t *testing.T) {
	timestamp := types.Value{Int: 1_700_000_000_123}
	for _, c := range []struct {
		typ   string
		value types.Value
		cell  any
	}{
		{"STRING", types.Value{Bytes: []byte("a")}, text("a")},
		{"STRING NOT NULL", types.Value{Bytes: []byte("a")}, text("a")},
		{"STRING", types.NullValue, nil},
		{"CHAR(3)", types.Value{Bytes: []byte("abc")}, text("abc")},
		{"INT", types.Value{Int: -7}, integer(-7)},
		{"BIGINT NOT NULL", types.Value{Int: 1 << 40}, integer(1 << 40)},
		{"BOOLEAN", types.Value{Int: 1}, integer(1)},
		{"DATE", types.Value{Int: 19723}, integer(19723)},
		{"TIMESTAMP(3)", timestamp, timestamp},
	} {
		t.Run(c.typ, func(t *testing.T) {
			fields := []types.Field{column(t, 0, "id", "INT"), column(t, 1, "p", c.typ), column(t, 2, "v", "STRING")}
			b := tabletest.NewTable(t, fields, []string{"p"}, map[string]string{"compaction.min.file-num": "2", "file-index.bitmap.columns": "id"})
			partition := []types.Value{c.value}
			lacking := []types.Field{fields[0], fields[2]}
			b.Append(
				tabletest.Data{Partition: partition, Columns: lacking, Rows: [][]any{{integer(1), text("x")}, {integer(2), nil}}},
				tabletest.Data{Partition: partition, Rows: [][]any{{integer(3), c.cell, text("y")}}},
				tabletest.Data{Partition: partition, Columns: lacking, Rows: [][]any{{integer(4), text("z")}}},
			)
			tbl := b.Load(nil)
			if _, err := compact.Table(t.Context(), tbl, compact.Options{}); err != nil {
				t.Fatal(err)
			}
			live := liveOf(t, tbl, latestOf(t, tbl))
			if len(live) != 1 {
				t.Fatalf("%d files", len(live))
			}
			rows, err := tabletest.FileRows(t.Context(), tbl, live[0])
			if err != nil {
				t.Fatal(err)
			}
			want := tabletest.TextLines(fields, [][]any{
				{integer(1), c.cell, text("x")}, {integer(2), c.cell, nil}, {integer(3), c.cell, text("y")}, {integer(4), c.cell, text("z")},
			})
			got := tabletest.TextLines(fields, rows)
			slices.Sort(got) // the inputs are taken by size
			if diff := tabletest.Diff(got, want); diff != "" {
				t.Error(diff)
			}
			stats, err := tabletest.StatsOf(tbl, live[0])
			if err != nil {
				t.Fatal(err)
			}
			p := stats[1]
			nulls := int64(0)
			if c.value.Null {
				nulls = 4
			}
			if p.NullCount == nil || *p.NullCount != nulls || types.Compare(fields[1].Type.Kind, p.Min, c.value) != 0 || types.Compare(fields[1].Type.Kind, p.Max, c.value) != 0 {
				t.Errorf("statistics %+v", p)
			}
		})
	}
}
