package datafile_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tablectl/internal/readback"
	"tablectl/internal/types"
)

// checkFile compares the statistics in the footer and in the page index of a file
// with its values: counts of nulls are exact, and bounds are bounds. Readers skip
// rows by them.
func checkFile(data []byte) error {
	size := int64(len(data))
	raw, err := parquet.OpenFile(bytes.NewReader(data), size, parquet.SkipPageIndex(true))
	if err != nil {
		return err
	}
	r, err := readback.New(bytes.NewReader(data), size, "output", nil)
	if err != nil {
		return err
	}
	for g, group := range raw.RowGroups() {
		for c, chunk := range group.ColumnChunks() {
			footer := raw.Metadata().RowGroups[g].Columns[c]
			var pages [][]parquet.Value
			err := r.EachPage(g, c, func(entries []parquet.Value) error {
				pages = append(pages, entries)
				return nil
			})
			if err == nil {
				err = checkChunk(chunk.Type(), pages, footer.MetaData)
			}
			if err == nil {
				err = checkColumnIndex(chunk.Type(), pages, data, footer)
			}
			if err == nil {
				err = checkOffsetIndex(pages, data, footer)
			}
			if err != nil {
				return fmt.Errorf("row group %d, column %v: %w", g, footer.MetaData.PathInSchema, err)
			}
		}
	}
	return nil
}

func checkChunk(typ parquet.Type, pages [][]parquet.Value, meta format.ColumnMetaData) error {
	stats := meta.Statistics
	var entries, nulls int64
	for _, v := range slices.Concat(pages...) {
		entries++
		if v.IsNull() {
			nulls++
		} else if err := within(typ, v, stats.MinValue, stats.MaxValue); err != nil {
			return err
		}
	}
	if meta.NumValues != entries {
		return fmt.Errorf("%d entries, the footer says %d", entries, meta.NumValues)
	}
	if !bounded(typ) {
		if len(stats.MinValue) > 0 || len(stats.MaxValue) > 0 {
			return fmt.Errorf("bounds of type %v", typ)
		}
		return nil
	}
	if stats.NullCount != nulls {
		return fmt.Errorf("%d nulls, the statistics say %d", nulls, stats.NullCount)
	}
	return nil
}

// bounded tells the types that have bounds. The order of an INT96 is not defined,
// and readers do not agree on the place of NaN.
func bounded(typ parquet.Type) bool {
	return typ.Kind() != parquet.Int96 && typ.Kind() != parquet.Float && typ.Kind() != parquet.Double
}

func checkColumnIndex(typ parquet.Type, pages [][]parquet.Value, data []byte, footer format.ColumnChunk) error {
	if footer.ColumnIndexOffset == 0 {
		if !bounded(typ) || typ.Kind() == parquet.ByteArray && longest(pages) > longStatistic {
			return nil
		}
		return errors.New("no column index")
	}
	var index format.ColumnIndex
	from := footer.ColumnIndexOffset
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), data[from:from+int64(footer.ColumnIndexLength)], &index); err != nil {
		return fmt.Errorf("column index: %w", err)
	}
	if n := len(pages); len(index.NullPages) != n || len(index.NullCounts) != n || len(index.MinValues) != n || len(index.MaxValues) != n {
		return fmt.Errorf("%d pages, %d in the column index", n, len(index.NullPages))
	}
	last := -1
	for i, page := range pages {
		if !index.NullPages[i] {
			if err := checkOrder(typ, index, last, i); err != nil {
				return err
			}
			last = i
		}
		nulls := 0
		for _, v := range page {
			if v.IsNull() {
				nulls++
			} else if index.MinValues[i] == nil || index.MaxValues[i] == nil {
				return fmt.Errorf("page %d has no bounds", i)
			} else if err := within(typ, v, index.MinValues[i], index.MaxValues[i]); err != nil {
				return fmt.Errorf("column index of page %d: %w", i, err)
			}
		}
		if index.NullPages[i] != (nulls == len(page)) || index.NullCounts[i] != int64(nulls) {
			return fmt.Errorf("page %d has %d nulls and %d entries, its index says %d, all: %v", i, nulls, len(page), index.NullCounts[i], index.NullPages[i])
		}
	}
	return nil
}

// longStatistic is the length from which the writer leaves bounds out.
const longStatistic = 4 << 10

func longest(pages [][]parquet.Value) int {
	n := 0
	for _, v := range slices.Concat(pages...) {
		n = max(n, len(v.Bytes()))
	}
	return n
}

// checkOrder checks that the pages before and at have the order that the index
// tells, by which readers search.
func checkOrder(typ parquet.Type, index format.ColumnIndex, before, at int) error {
	if before < 0 || index.BoundaryOrder == format.Unordered {
		return nil
	}
	low := compareStored(typ, index.MinValues[before], index.MinValues[at])
	high := compareStored(typ, index.MaxValues[before], index.MaxValues[at])
	if index.BoundaryOrder == format.Ascending && (low > 0 || high > 0) || index.BoundaryOrder == format.Descending && (low < 0 || high < 0) {
		return fmt.Errorf("pages %d and %d are not in the order %v", before, at, index.BoundaryOrder)
	}
	return nil
}

// checkOffsetIndex checks that every page begins with the row that the index
// tells.
func checkOffsetIndex(pages [][]parquet.Value, data []byte, footer format.ColumnChunk) error {
	var index format.OffsetIndex
	from := footer.OffsetIndexOffset
	if from == 0 {
		return errors.New("no offset index")
	}
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), data[from:from+int64(footer.OffsetIndexLength)], &index); err != nil {
		return fmt.Errorf("offset index: %w", err)
	}
	if len(index.PageLocations) != len(pages) {
		return fmt.Errorf("%d pages, %d in the offset index", len(pages), len(index.PageLocations))
	}
	row := int64(0)
	for i, page := range pages {
		if page[0].RepetitionLevel() != 0 {
			return fmt.Errorf("page %d begins in the middle of a row", i)
		}
		if got := index.PageLocations[i].FirstRowIndex; got != row {
			return fmt.Errorf("page %d begins with row %d, its index says %d", i, row, got)
		}
		for _, v := range page {
			if v.RepetitionLevel() == 0 {
				row++
			}
		}
	}
	return nil
}

// within reports a value that is beyond the bounds. A bound that is nil is not
// there: the writer leaves long ones out, each on its own.
func within(typ parquet.Type, v parquet.Value, low, high []byte) error {
	if low != nil && compareStored(typ, v.Bytes(), low) < 0 || high != nil && compareStored(typ, v.Bytes(), high) > 0 {
		return fmt.Errorf("%.40x is not within %.40x (%d bytes) and %.40x (%d bytes)", v.Bytes(), low, len(low), high, len(high))
	}
	return nil
}

// compareStored orders values in the form in which statistics hold them.
func compareStored(typ parquet.Type, a, b []byte) int {
	switch typ.Kind() {
	case parquet.Boolean:
		return cmp.Compare(a[0], b[0])
	case parquet.Int32:
		return cmp.Compare(int32(binary.LittleEndian.Uint32(a)), int32(binary.LittleEndian.Uint32(b)))
	case parquet.Int64:
		return cmp.Compare(int64(binary.LittleEndian.Uint64(a)), int64(binary.LittleEndian.Uint64(b)))
	case parquet.FixedLenByteArray:
		return types.DecodeUnscaled(a).Cmp(types.DecodeUnscaled(b))
	}
	return bytes.Compare(a, b)
}
