package tabletest

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"

	"tablectl/internal/binrow"
	"tablectl/internal/fileio"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// Rows returns all rows of a snapshot of an append table, or of one with primary
// keys that is fully compacted, as canonical text, sorted. Every live file is read under the schema that wrote it and shown under
// the table's schema. Nothing is left out: a table with rows to merge or with deletion
// vectors, or a file that is not Parquet or holds only some columns, is an error, as
// is a file whose size or number of rows is not what its manifest says.
func Rows(ctx context.Context, t *table.Table, s *snapshot.Snapshot) ([]string, error) {
	if s == nil {
		return nil, nil
	}
	if t.Options.DeletionVectors {
		return nil, fmt.Errorf("table %s may have deletion vectors", t.Name())
	}
	buckets, err := snapshot.LiveFiles(ctx, t, s, table.Filter{})
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, b := range buckets {
		for _, e := range b.Files {
			if len(t.Schema.PrimaryKeys) > 0 && (e.File.Level == 0 || e.File.Level != b.Files[0].File.Level || *e.File.DeleteRowCount != 0) {
				return nil, fmt.Errorf("data file %s has rows that are to be merged", e.File.FileName)
			}
			rows, err := FileRows(ctx, t, e)
			if err != nil {
				return nil, fmt.Errorf("data file %s: %w", e.File.FileName, err)
			}
			lines = append(lines, TextLines(t.Schema.Fields, rows)...)
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// FileRows returns the rows of a live file under the table's schema, in order.
func FileRows(ctx context.Context, t *table.Table, e *snapshot.ManifestEntry) ([][]any, error) {
	if e.File.FirstRowID != nil || e.File.WriteCols != nil {
		return nil, fmt.Errorf("the file has row ids or holds only some of the columns")
	}
	old, err := t.SchemaByID(ctx, e.File.SchemaID)
	if err != nil {
		return nil, err
	}
	path, err := t.FilePath(e.Partition, int(e.Bucket), e.File.FileName)
	if err != nil {
		return nil, err
	}
	data, err := fileio.ReadFile(ctx, t.IO, path, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != e.File.FileSize {
		return nil, fmt.Errorf("the file has %d bytes, its manifest says %d", len(data), e.File.FileSize)
	}
	rows, err := ReadFile(data, old.Fields)
	if err != nil {
		return nil, err
	}
	if int64(len(rows)) != e.File.RowCount {
		return nil, fmt.Errorf("the file has %d rows, its manifest says %d", len(rows), e.File.RowCount)
	}
	return projectAll(old.Fields, t.Schema.Fields, rows)
}

func projectAll(from, to []types.Field, rows [][]any) ([][]any, error) {
	out := make([][]any, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = Project(from, to, r); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return out, nil
}

// Unsupported is why a table is to be refused, or "" when it is to be compacted.
// It knows the kinds of tables in testdata.
func Unsupported(ctx context.Context, t *table.Table, s *snapshot.Snapshot) (string, error) {
	if why := unsupportedMerge(t.Schema); why != "" {
		return why, nil
	}
	for _, key := range []string{"deletion-vectors.enabled", "row-tracking.enabled", "data-evolution.enabled"} {
		if t.Schema.Options[key] == "true" {
			return key, nil
		}
	}
	if format := t.Schema.Options["manifest.format"]; format != "" && format != "avro" {
		return "manifests in " + format, nil
	}
	for _, f := range t.Schema.Fields {
		if f.Type.Kind == types.Blob {
			return "a BLOB column", nil
		}
	}
	if s == nil {
		return "", nil
	}
	buckets, err := snapshot.LiveFiles(ctx, t, s, table.Filter{})
	if err != nil {
		return "", err
	}
	for _, b := range buckets {
		for _, e := range b.Files {
			if ext := path.Ext(e.File.FileName); ext != ".parquet" {
				return "data files in " + ext[1:], nil
			}
		}
	}
	return "", nil
}

// unsupportedMerge is why the rows of a table with primary keys are not merged.
func unsupportedMerge(s *table.Schema) string {
	producer := s.Options["changelog-producer"]
	switch {
	case len(s.PrimaryKeys) == 0:
		return ""
	case s.Options["merge-engine"] == "first-row":
		return "first-row"
	case producer == "lookup" || producer == "full-compaction":
		return "the changelog producer " + producer
	case s.Options["bucket"] == "-2":
		return "postpone buckets"
	}
	return ""
}

// Stats is what a manifest says of one column of a file: bounds that are null
// where they are not known, and a count that is nil.
type Stats struct {
	Min, Max  types.Value
	NullCount *int64
}

// StatsOf reads the statistics that a manifest holds of a file, by column of the
// table's schema, which must be that of the file.
func StatsOf(t *table.Table, e *snapshot.ManifestEntry) ([]Stats, error) {
	all := make([]Stats, len(t.Schema.Fields))
	var columns []int
	var scalars []types.Type
	for i, f := range t.Schema.Fields {
		all[i] = Stats{Min: types.NullValue, Max: types.NullValue}
		if names := e.File.ValueStatsCols; names == nil || slices.Contains(names, f.Name) {
			columns, scalars = append(columns, i), append(scalars, f.Type)
		}
	}
	stats := e.File.ValueStats
	low, err := binrow.Parse(stats.Min)
	if err != nil {
		return nil, err
	}
	high, err := binrow.Parse(stats.Max)
	if err != nil {
		return nil, err
	}
	if low.Arity() != len(columns) || high.Arity() != len(columns) || len(stats.NullCounts) != len(columns) {
		return nil, fmt.Errorf("statistics of %d, %d and %d columns, want %d", low.Arity(), high.Arity(), len(stats.NullCounts), len(columns))
	}
	for i, column := range columns {
		s := &all[column]
		s.NullCount = stats.NullCounts[i]
		if s.Min, err = low.Value(i, scalars[i]); err != nil {
			return nil, err
		}
		if s.Max, err = high.Value(i, scalars[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
