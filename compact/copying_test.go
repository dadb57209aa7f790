package compact_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"tablectl/compact"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// The recipes of this file make small tables whose rows are easy to get wrong
// while they are copied.

func integer(n int) any    { return types.Value{Int: int64(n)} }
func text(s string) any    { return types.Value{Bytes: []byte(s)} }
func number(f float64) any { return types.Value{Float: f} }

func arrayOf(t types.Type) types.Type { return types.Type{Kind: types.Array, Element: &t} }

func stringType() types.Type { return types.Type{Kind: types.Varchar, Length: types.MaxLength} }

// compactBuilt compacts a table and checks that its rows are the same, and that
// a second run has nothing to do.
func compactBuilt(t *testing.T, b *tabletest.Builder, overrides map[string]string) *compact.Report {
	t.Helper()
	tbl := b.Load(overrides)
	before := rowsOf(t, tbl, latestOf(t, tbl))
	report := compactAndCheck(t, tbl, b.Location, compact.Options{Parallelism: 2})
	if report.After == nil {
		t.Fatal("nothing was compacted")
	}
	if diff := tabletest.Diff(rowsOf(t, tbl, latestOf(t, tbl)), before); diff != "" {
		t.Error(diff)
	}
	return report
}

// TestNestedValuesKeepTheirRows has lists and maps in lists and maps: null, empty,
// holding a null, and of three elements, over pages of a kilobyte. A level that is
// off by one repeats values or shifts them into the next row.
func TestNestedValuesKeepTheirRows(t *testing.T) {
	row := types.Type{Kind: types.Row, Fields: []types.Field{
		{ID: 10, Name: "x", Type: types.Type{Kind: types.Int}}, {ID: 11, Name: "y", Type: stringType()},
	}}
	key := stringType()
	ints := arrayOf(types.Type{Kind: types.Int})
	fields := []types.Field{
		{ID: 0, Name: "id", Type: types.Type{Kind: types.Int, NotNull: true}},
		{ID: 1, Name: "ar", Type: arrayOf(row)},
		{ID: 2, Name: "m", Type: types.Type{Kind: types.Map, Key: &key, Element: &ints}},
		{ID: 3, Name: "aa", Type: arrayOf(arrayOf(stringType()))},
	}
	cell := func(i, column int) any {
		s := func(j int) any { return text(fmt.Sprintf("row %d, %d", i, j)) }
		list := func(j int) any {
			return []any{nil, tabletest.List{}, tabletest.List{nil}, tabletest.List{s(j), nil, s(j + 1)}}[(i+j)%4]
		}
		numbers := func(j int) any {
			return []any{nil, tabletest.List{}, tabletest.List{nil}, tabletest.List{integer(i), nil, integer(i + j)}}[(i+j)%4]
		}
		shape := (i + column) % 4
		switch {
		case shape == 0:
			return nil
		case column == 1:
			return []any{tabletest.List{}, tabletest.List{nil}, tabletest.List{
				tabletest.Struct{integer(i), s(0)}, tabletest.Struct{nil, nil}, tabletest.Struct{integer(i + 2), s(2)},
			}}[shape-1]
		case column == 2:
			return []any{tabletest.Map{}, tabletest.Map{{Key: s(0), Value: nil}}, tabletest.Map{
				{Key: s(0), Value: numbers(0)}, {Key: s(1), Value: numbers(1)}, {Key: s(2), Value: numbers(2)},
			}}[shape-1]
		}
		return []any{tabletest.List{}, tabletest.List{nil}, tabletest.List{list(0), list(1), list(2)}}[shape-1]
	}
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("pages of version %d", version), func(t *testing.T) {
			b := tabletest.NewTable(t, fields, nil, map[string]string{"parquet.page.size": "1 kb"})
			n := 0
			for f := range 6 {
				rows := make([][]any, 0, 700)
				for range 500 + 40*f {
					r := []any{integer(n)}
					for column := 1; column <= 3; column++ {
						r = append(r, cell(n, column))
					}
					rows = append(rows, r)
					n++
				}
				b.Append(tabletest.Data{Rows: rows, Options: tabletest.FileOptions{PageVersion: version, PageSize: 1 << 10, RowGroupRows: 333, Dictionary: f%2 == 0}})
			}
			compactBuilt(t, b, nil)
			checkSettled(t, b.Load(nil), b.Location)
		})
	}
}

// TestRewriteOfLargeFile forces the rewrite of a file a little larger than the
// target, of several row groups, together with small ones: the outputs hold as many
// rows as the inputs.
func TestRewriteOfLargeFile(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"id", "INT"}, [2]string{"s", "STRING"})
	rows := func(from, n int) [][]any {
		out := make([][]any, n)
		for i := range out {
			out[i] = []any{integer(from + i), text(fmt.Sprintf("%x", big.NewInt(int64(from+i)*7919*104729*1299709)))}
		}
		return out
	}
	large := rows(0, 10_000)
	options := tabletest.FileOptions{RowGroupRows: 1500, Codec: "none"}
	data, err := tabletest.WriteFile(fields, large, options)
	if err != nil {
		t.Fatal(err)
	}
	b := tabletest.NewTable(t, fields, nil, map[string]string{
		"target-file-size": fmt.Sprintf("%d b", len(data)*10/11), "compaction.force-rewrite-all-files": "true", "file.compression": "none",
	})
	b.Append(tabletest.Data{Rows: large, Options: options}, tabletest.Data{Rows: rows(10_000, 1)}, tabletest.Data{Rows: rows(10_001, 2)},
		tabletest.Data{Rows: rows(10_003, 3)})
	report := compactBuilt(t, b, nil)
	var in, out int64
	for _, m := range report.Messages {
		for _, f := range m.CompactBefore {
			in += f.RowCount
		}
		for _, f := range m.CompactAfter {
			out += f.RowCount
		}
	}
	if in != 10_006 || out != in {
		t.Errorf("%d rows in, %d rows out", in, out)
	}
}

// TestBoundsThatDoNotBound has values at which bounds go wrong, under every mode
// of statistics. compactAndCheck compares each value with what the manifest says.
func TestBoundsThatDoNotBound(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"id", "INT"}, [2]string{"long", "STRING"}, [2]string{"highest", "STRING"}, [2]string{"d9", "DECIMAL(9, 2)"},
		[2]string{"d18", "DECIMAL(18, 2)"}, [2]string{"d38", "DECIMAL(38, 2)"}, [2]string{"zero", "DOUBLE"}, [2]string{"nan", "DOUBLE"}, [2]string{"f", "FLOAT"},
		[2]string{"none", "STRING"}, [2]string{"bytes", "BYTES"}, [2]string{"ts", "TIMESTAMP(9)"}, [2]string{"gap", "VARCHAR(30)"}, [2]string{"day", "DATE"})
	decimal := func(s string) any {
		n, ok := new(big.Int).SetString(s, 10)
		if !ok {
			t.Fatalf("%s is no number", s)
		}
		return types.Value{Unscaled: n}
	}
	top := strings.Repeat("\U0010ffff", 16)
	rows := [][]any{
		{
			integer(1), text(strings.Repeat("a", 16) + "z"), text(top + "x"), decimal("-999999999"), decimal("-999999999999999999"),
			decimal("-99999999999999999999999999999999999999"), number(0), number(math.NaN()), number(math.NaN()), nil, text("\xff\xff"),
			types.Value{Int: -1, Nanos: 999_999},
			text(strings.Repeat("é", 15) + "\ud7ffx"), integer(-1),
		},
		{
			integer(2), text(strings.Repeat("a", 17)), text(top), decimal("-1"), decimal("-1"), decimal("-1"), number(math.Copysign(0, -1)), number(1),
			number(-1), nil, text(""),
			types.Value{Int: 1},
			text(strings.Repeat("é", 15) + "\U0010ffffx"), integer(math.MaxInt32),
		},
		{
			integer(3), text(strings.Repeat("a", 15) + "\uffffx"), text(""), decimal("1"), decimal("1"), decimal("100000000000000000000"), nil,
			number(math.Inf(-1)), number(math.Inf(1)), nil, nil, nil, nil, nil,
		},
		{integer(4), nil, nil, decimal("0"), nil, decimal("-128"), number(0), number(math.NaN()), nil, nil, text("a"), nil, text("\x00"), integer(math.MinInt32)},
	}
	for _, mode := range []string{"full", "counts", "none", "truncate(16)", "truncate(1)", "full, not dense"} {
		t.Run(mode, func(t *testing.T) {
			options := map[string]string{"metadata.stats-mode": mode, "compaction.min.file-num": "2"}
			if head, ok := strings.CutSuffix(mode, ", not dense"); ok {
				options["metadata.stats-mode"], options["metadata.stats-dense-store"] = head, "false"
			}
			b := tabletest.NewTable(t, fields, nil, options)
			for i := range rows {
				b.Append(tabletest.Data{Rows: rows[i:], Options: tabletest.FileOptions{Dictionary: i%2 == 1}})
			}
			compactBuilt(t, b, nil)
			tbl := b.Load(nil)
			live := liveOf(t, tbl, latestOf(t, tbl))
			if len(live) != 1 {
				t.Fatalf("%d files", len(live))
			}
			stats, err := tabletest.StatsOf(tbl, live[0])
			if err != nil {
				t.Fatal(err)
			}
			bounded := strings.HasPrefix(mode, "full") || strings.HasPrefix(mode, "truncate")
			for i, f := range fields {
				s := stats[i]
				// Nulls alone, bytes, INT96 and what holds a NaN have no bounds, nor has what no short text is above.
				without := slices.Contains([]string{"none", "bytes", "ts", "nan", "f"}, f.Name) || strings.HasPrefix(mode, "truncate") && f.Name == "highest"
				if got, want := !s.Min.Null, bounded && !without; got != want {
					t.Errorf("column %s has bounds: %v, want %v", f.Name, got, want)
				}
				if got, want := s.NullCount != nil, mode != "none"; got != want {
					t.Errorf("column %s has a count of nulls: %v, want %v", f.Name, got, want)
				}
			}
		})
	}
}
