package readback

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tablectl/internal/types"
)

// craftedChunk is a column chunk made by hand.
type craftedChunk struct {
	codec   format.CompressionCodec
	entries int64
	pages   []craftedPage
}

type craftedPage struct {
	header format.PageHeader
	body   []byte
}

func crafted(t *testing.T, schema []format.SchemaElement, rows int64, chunks ...craftedChunk) []byte {
	t.Helper()
	file := []byte(magic)
	put := func(v any) int {
		b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
		if err != nil {
			t.Fatal(err)
		}
		file = append(file, b...)
		return len(b)
	}
	group := format.RowGroup{NumRows: rows}
	for _, c := range chunks {
		meta := format.ColumnMetaData{Codec: c.codec, NumValues: c.entries, DataPageOffset: int64(len(file))}
		for _, p := range c.pages {
			put(&p.header)
			file = append(file, p.body...)
		}
		meta.TotalCompressedSize = int64(len(file)) - meta.DataPageOffset
		group.Columns = append(group.Columns, format.ColumnChunk{MetaData: meta})
	}
	n := put(&format.FileMetaData{Version: 1, Schema: schema, NumRows: rows, RowGroups: []format.RowGroup{group}})
	return append(binary.LittleEndian.AppendUint32(file, uint32(n)), magic...)
}

// levelsOf are levels of a page of version 1, each a run of its own.
func levelsOf(levels ...byte) []byte {
	var runs []byte
	for _, l := range levels {
		runs = append(runs, 1<<1, l)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(runs))), runs...)
}

func numbers(n ...uint32) (b []byte) {
	for _, v := range n {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// page1 is a page of version 1 of the parts: levels and values.
func page1(entries int32, parts ...[]byte) craftedPage {
	body := bytes.Join(parts, nil)
	return craftedPage{format.PageHeader{
		Type: format.DataPage, UncompressedPageSize: int32(len(body)), CompressedPageSize: int32(len(body)),
		DataPageHeader: thrift.New(format.DataPageHeader{
			NumValues: entries, Encoding: format.Plain, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		}),
	}, body}
}

func page2(entries, nulls int32, body []byte) craftedPage {
	return craftedPage{format.PageHeader{
		Type: format.DataPageV2, UncompressedPageSize: int32(len(body)), CompressedPageSize: int32(len(body)),
		DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{
			NumValues: entries, NumNulls: nulls, NumRows: entries, Encoding: format.Plain, IsCompressed: thrift.New(false),
		}),
	}, body}
}

func changed(p craftedPage, change func(*format.PageHeader)) craftedPage {
	change(&p.header)
	return p
}

func plainChunk(entries int64, pages ...craftedPage) craftedChunk {
	return craftedChunk{format.Uncompressed, entries, pages}
}

// leafElement and groupElement are parts of a schema.
func leafElement(name string, r format.FieldRepetitionType) format.SchemaElement {
	return format.SchemaElement{Name: name, Type: thrift.New(format.Int32), RepetitionType: thrift.New(r)}
}

func groupElement(name string, r format.FieldRepetitionType, children int32) format.SchemaElement {
	return format.SchemaElement{Name: name, RepetitionType: thrift.New(r), NumChildren: thrift.New(children)}
}

// TestCrafted reads files that no library at hand writes. Their rows are shown as
// numbers in brackets.
func TestCrafted(t *testing.T) {
	integer := types.Type{Kind: types.Int}
	row := types.Type{Kind: types.Row, Fields: []types.Field{{Name: "a", Type: integer}, {Name: "b", Type: integer}}}
	root := groupElement("root", format.Required, 1)
	flat := []format.SchemaElement{root, leafElement("c", format.Required)}
	pair := []format.SchemaElement{
		root, groupElement("c", format.Optional, 2), leafElement("a", format.Optional), leafElement("b", format.Optional),
	}
	oldList := []format.SchemaElement{root, groupElement("c", format.Optional, 1), leafElement("array", format.Repeated)}
	oldRows := []format.SchemaElement{
		root, groupElement("c", format.Required, 1), groupElement("array", format.Repeated, 2), leafElement("a", format.Required), leafElement("b", format.Required),
	}
	two := page1(2, numbers(7, 8))
	for name, tt := range map[string]struct {
		typ    types.Type
		schema []format.SchemaElement
		rows   int64
		chunks []craftedChunk
		want   string // rows, or a part of the error
	}{
		"plain":          {integer, flat, 2, []craftedChunk{plainChunk(2, two)}, "7 8"},
		"version 2":      {integer, flat, 2, []craftedChunk{{format.Zstd, 2, []craftedPage{page2(2, 0, numbers(7, 8))}}}, "7 8"},
		"nulls too many": {integer, flat, 2, []craftedChunk{plainChunk(2, page2(2, 1, numbers(7)))}, "its header says 2"},
		"empty page":     {integer, flat, 2, []craftedChunk{plainChunk(2, page1(0), two, page1(0))}, "7 8"},
		"checksum": {integer, flat, 2, []craftedChunk{plainChunk(2, changed(two, func(h *format.PageHeader) {
			h.CRC = int32(crc32.ChecksumIEEE(two.body))
		}))}, "7 8"},
		"wrong checksum": {integer, flat, 2, []craftedChunk{plainChunk(2, changed(two, func(h *format.PageHeader) { h.CRC = 1 }))}, "checksum"},
		"long header": {integer, flat, 4, []craftedChunk{plainChunk(4, two, changed(two, func(h *format.PageHeader) {
			h.DataPageHeader.V.Statistics.MinValue = make([]byte, 100_000)
		}))}, "7 8 7 8"},
		"page missing":     {integer, flat, 2, []craftedChunk{plainChunk(3, two)}, "1 entries before the footer says so"},
		"page too many":    {integer, flat, 2, []craftedChunk{plainChunk(2, two, two)}, "2 entries of 0"},
		"row missing":      {integer, flat, 3, []craftedChunk{plainChunk(2, two)}, "row 2, column c: the row group has no entry"},
		"row too many":     {integer, flat, 1, []craftedChunk{plainChunk(2, two)}, "entries beyond its rows"},
		"list in old form": {types.Type{Kind: types.Array, Element: &integer}, oldList, 3, []craftedChunk{plainChunk(4, page1(4, levelsOf(0, 1, 0, 0), levelsOf(2, 2, 1, 0), numbers(7, 8)))}, "[7 8] [] null"},
		"rows in a list in old form": {types.Type{Kind: types.Array, Element: &row}, oldRows, 1, []craftedChunk{
			plainChunk(2, page1(2, levelsOf(0, 1), levelsOf(1, 1), numbers(1, 2))), plainChunk(2, page1(2, levelsOf(0, 1), levelsOf(1, 1), numbers(3, 4))),
		}, "[[1 3] [2 4]]"},
		"members": {row, pair, 2, []craftedChunk{
			plainChunk(2, page1(2, levelsOf(2, 0), numbers(1))), plainChunk(2, page1(2, levelsOf(1, 0))),
		}, "[1 null] null"},
		"members disagree": {row, pair, 1, []craftedChunk{
			plainChunk(1, page1(1, levelsOf(0))), plainChunk(1, page1(1, levelsOf(2), numbers(1))),
		}, "do not agree"},
		"repetitions disagree": {types.Type{Kind: types.Array, Element: &row}, oldRows, 1, []craftedChunk{
			plainChunk(2, page1(2, levelsOf(0, 1), levelsOf(1, 1), numbers(1, 2))), plainChunk(2, page1(2, levelsOf(0, 0), levelsOf(1, 1), numbers(3, 4))),
		}, "repetition level 0"},
	} {
		data := crafted(t, tt.schema, tt.rows, tt.chunks...)
		got, err := shown(data, []types.Field{{Name: "c", Type: tt.typ}})
		if err != nil && strings.Contains(err.Error(), tt.want) && strings.HasPrefix(err.Error(), "data file f: ") {
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

func shown(data []byte, fields []types.Field) (string, error) {
	r, err := New(bytes.NewReader(data), int64(len(data)), "f", fields)
	if err != nil {
		return "", err
	}
	var rows []string
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(rows, " "), nil
		}
		if err != nil {
			return "", err
		}
		rows = append(rows, text(fields[0].Type, row[0]))
	}
}

func text(t types.Type, v types.Value) string {
	switch {
	case v.Null:
		return "null"
	case t.Scalar():
		return fmt.Sprint(v.Int)
	}
	parts := make([]string, len(v.Items))
	for i, item := range v.Items {
		if t.Kind == types.Row {
			parts[i] = text(t.Fields[i].Type, item)
		} else {
			parts[i] = text(*t.Element, item)
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}
