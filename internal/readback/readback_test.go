package readback_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tablectl/internal/datafile"
	"tablectl/internal/readback"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// identities are the rows of a file, each as bytes that tell it from others.
func identities(data []byte, fields []types.Field) ([]string, error) {
	r, err := readback.New(bytes.NewReader(data), int64(len(data)), "in memory", fields)
	if err != nil {
		return nil, err
	}
	var rows []string
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var b []byte
		for i, f := range fields {
			b = types.AppendIdentity(b, f.Type, row[i])
		}
		rows = append(rows, string(b))
	}
	if int64(len(rows)) != r.Rows() {
		return nil, fmt.Errorf("%d rows, %d in the footer", len(rows), r.Rows())
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("after the last row: %w", err)
	}
	return rows, nil
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

type output struct{ bytes.Buffer }

func (*output) Close() error { return nil }

// rewritten is the file as the tool writes its rows.
func rewritten(data []byte, fields []types.Field, rows int, codec string) ([]byte, error) {
	var out output
	_, err := datafile.Concat(context.Background(), []datafile.Input{{
		Name: "in", Fields: fields, Rows: int64(rows),
		Open: func(context.Context) (datafile.File, error) { return memory{bytes.NewReader(data)}, nil },
	}}, datafile.Spec{
		Fields: fields, Compression: codec, ZstdLevel: 1, TargetSize: 1 << 40, RowGroupSize: 16 << 10, PageSize: 1 << 10,
		Dictionary: true, CreatedBy: "test", Workers: 1, Stats: make([]datafile.StatsMode, len(fields)),
		Create: func(context.Context) (string, io.WriteCloser, error) { return "out", &out, nil },
	})
	return out.Bytes(), err
}

// wantSame compares rows one by one.
func wantSame(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: row %d is\n%x, want\n%x", what, i, got[i], want[i])
		}
	}
}

// TestGenerated reads rows of all types in all forms that parquet-go writes, and then
// what the tool makes of them, which arrow-go has read and written.
func TestGenerated(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	codecs := []string{"zstd", "snappy", "gzip", "lz4_raw", "brotli", "none"}
	outputs := []string{"lz4", "zstd", "snappy", "gzip", "lz4_raw", "none"}
	for i := range 72 {
		schemas := tabletest.Schemas{Choose: r.IntN}
		fields := schemas.Fields(1+r.IntN(6), 3)
		values := tabletest.Values{Rand: r, NullRate: r.Float64() / 2}
		rows := values.Rows(fields, 1+r.IntN(300))
		o := tabletest.FileOptions{
			Codec: codecs[i%6], PageVersion: 1 + i/6%2, PageSize: 1 << (4 + r.IntN(10)), RowGroupRows: r.IntN(100),
			Dictionary: i%3 == 0, Delta: i%4 == 0,
		}
		data, err := tabletest.WriteFile(fields, rows, o)
		if err != nil {
			t.Fatalf("write %v with %+v: %v", fields, o, err)
		}
		back, err := tabletest.ReadFile(data, fields)
		if err != nil {
			t.Fatalf("read %v with %+v: %v", fields, o, err)
		}
		if diff := tabletest.Diff(tabletest.TextLines(fields, back), tabletest.TextLines(fields, rows)); diff != "" {
			t.Fatalf("%v with %+v: %s", fields, o, diff)
		}
		before, err := identities(data, fields)
		if err != nil {
			t.Fatal(err)
		}
		out, err := rewritten(data, fields, len(rows), outputs[i%6])
		if err != nil {
			t.Fatalf("rewrite %v with %+v: %v", fields, o, err)
		}
		after, err := identities(out, fields)
		if err != nil {
			t.Fatalf("read %v in %s: %v", fields, outputs[i%6], err)
		}
		wantSame(t, fmt.Sprintf("%v in %s", fields, outputs[i%6]), after, before)
	}
}

// eachTestFile calls f with the Parquet files of all tables under testdata that are to
// be compacted.
func eachTestFile(t *testing.T, f func(path string, tbl *table.Table, e *snapshot.ManifestEntry, fields []types.Field, data []byte)) {
	for _, name := range tabletest.Cases(t) {
		tbl := tabletest.Load(t, tabletest.File(t, name, "wh.db/t"), nil)
		s, err := snapshot.Latest(t.Context(), tbl)
		if err != nil || s == nil {
			continue
		}
		buckets, err := snapshot.LiveFiles(t.Context(), tbl, s, table.Filter{})
		if err != nil {
			continue
		}
		for _, b := range buckets {
			for _, e := range b.Files {
				schema, err := tbl.SchemaByID(t.Context(), e.File.SchemaID)
				if err != nil || filepath.Ext(e.File.FileName) != ".parquet" || e.File.WriteCols != nil {
					continue
				}
				path, err := tbl.FilePath(e.Partition, int(e.Bucket), e.File.FileName)
				if err != nil {
					t.Fatal(err)
				}
				data, err := os.ReadFile(path)
				if err != nil {
					continue // some tables lack a file on purpose
				}
				f(path, tbl, e, fileFields(schema), data)
			}
		}
	}
}

// fileFields are the columns of a file; those with primary keys have more.
func fileFields(s *table.Schema) []types.Field {
	if len(s.PrimaryKeys) == 0 {
		return s.Fields
	}
	fields := []types.Field{
		{Name: "_SEQUENCE_NUMBER", ID: 2147483646, Type: types.Type{Kind: types.BigInt, NotNull: true}},
		{Name: "_VALUE_KIND", ID: 2147483645, Type: types.Type{Kind: types.TinyInt, NotNull: true}},
	}
	return append(fields, s.Fields...)
}

// TestTables reads what Java Paimon and others wrote, and what the tool makes of it.
// That the rows are those that the tables should have, tabletest.TestRows shows.
func TestTables(t *testing.T) {
	files := 0
	eachTestFile(t, func(path string, _ *table.Table, e *snapshot.ManifestEntry, fields []types.Field, data []byte) {
		before, err := identities(data, fields)
		if errors.Is(err, readback.ErrUnsupported) && strings.Contains(err.Error(), "BLOB") {
			return
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		if int64(len(before)) != e.File.RowCount {
			t.Errorf("%s: %d rows, want %d", path, len(before), e.File.RowCount)
		}
		out, err := rewritten(data, fields, len(before), "zstd")
		if err != nil {
			t.Errorf("rewrite %s: %v", path, err)
			return
		}
		after, err := identities(out, fields)
		if err != nil {
			t.Errorf("%s, rewritten: %v", path, err)
			return
		}
		wantSame(t, path, after, before)
		files++
	})
	if files < 20 {
		t.Errorf("%d files", files)
	}
}

// TestMissing reads columns and members that a file does not have.
func TestMissing(t *testing.T) {
	integer := types.Type{Kind: types.Int}
	row := func(names ...string) types.Type {
		var members []types.Field
		for i, n := range names {
			members = append(members, types.Field{ID: 10 + i, Name: n, Type: integer})
		}
		return types.Type{Kind: types.Row, Fields: members}
	}
	written := []types.Field{{ID: 0, Name: "a", Type: integer}, {ID: 1, Name: "r", Type: row("x", "y")}}
	cell := func(n int64) types.Value { return types.Value{Int: n} }
	data, err := tabletest.WriteFile(written, [][]any{{cell(1), tabletest.Struct{cell(2), nil}}, {nil, nil}}, tabletest.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	read := []types.Field{{ID: 5, Name: "b", Type: integer}, {ID: 1, Name: "r", Type: row("z", "x")}}
	r, err := readback.New(bytes.NewReader(data), int64(len(data)), "f", read)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Missing(0) || r.Missing(1) || r.Rows() != 2 {
		t.Errorf("missing: %t, %t, rows: %d", r.Missing(0), r.Missing(1), r.Rows())
	}
	first, err := r.Next()
	if err != nil || !first[0].Null || first[1].Null || !first[1].Items[0].Null || first[1].Items[1].Int != 2 {
		t.Errorf("first row %+v, %v", first, err)
	}
	second, err := r.Next()
	if err != nil || !second[0].Null || !second[1].Null {
		t.Errorf("second row %+v, %v", second, err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if r, err = readback.New(bytes.NewReader(data), int64(len(data)), "f", read[:1]); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the rows are there without any column too
		if _, err := r.Next(); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	for _, wrong := range []types.Field{
		{Name: "a", Type: types.Type{Kind: types.Blob}},
		{Name: "a", Type: types.Type{Kind: types.Boolean}},
		{Name: "a", Type: row("x")},
		{Name: "r", Type: row("z")},
		{Name: "r", Type: integer},
		{Name: "r", Type: types.Type{Kind: types.Array, Element: &integer}},
		{Name: "r", Type: types.Type{Kind: types.Map, Key: &integer, Element: &integer}},
		{Name: "r", Type: types.Type{Kind: types.Variant}},
	} {
		_, err := readback.New(bytes.NewReader(data), int64(len(data)), "some/file", []types.Field{wrong})
		if !errors.Is(err, readback.ErrUnsupported) || !strings.Contains(err.Error(), "some/file") || !strings.Contains(err.Error(), "column "+wrong.Name) {
			t.Errorf("%s as %s: %v", wrong.Name, wrong.Type, err)
		}
	}
}
