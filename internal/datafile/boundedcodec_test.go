package datafile_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tablectl/internal/datafile"
	"tablectl/internal/tabletest"
)

const bombSize = 256 << 20 // bytes that the bombs inflate to; those of snappy only claim them

// bomb is much data, compressed to little.
func bomb(t testing.TB, c compress.Compression) []byte {
	t.Helper()
	if c == compress.Codecs.Snappy {
		return binary.AppendUvarint(nil, 1<<32-1) // then it ends, but room was made
	}
	codec, err := compress.GetCodec(c)
	if err != nil {
		t.Fatal(err)
	}
	if c == compress.Codecs.Brotli {
		return codec.EncodeLevel(nil, make([]byte, bombSize), 1)
	}
	const part = 16 << 20 // of a stream of several, which these two read as one
	return slices.Repeat(codec.Encode(nil, make([]byte, part)), bombSize/part)
}

var boundedCodecs = []compress.Compression{
	compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli,
	compress.Codecs.Zstd, compress.Codecs.Lz4Raw, compress.Codecs.Lz4,
}

// TestCodecsKeepToTheLength inflates into room that is just enough, and too little.
func TestCodecsKeepToTheLength(t *testing.T) {
	text := bytes.Repeat([]byte("some text that repeats; "), 1000)
	for _, c := range boundedCodecs {
		t.Run(c.String(), func(t *testing.T) {
			codec, err := compress.GetCodec(c)
			if err != nil {
				t.Fatal(err)
			}
			data := codec.Encode(nil, text)
			// A page is read into a buffer that was larger once.
			room := make([]byte, len(text)+1000)
			got, err := compress.Decode(codec, room[:len(text)], data)
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("just enough room: %d bytes of %d, error %v", len(got), len(text), err)
			}
			for _, n := range []int{len(text) - 1, 1, 0} {
				if got, err := compress.Decode(codec, room[:n], data); err == nil && len(got) != 0 {
					t.Errorf("room for %d bytes: got %d", n, len(got))
				}
			}
			if got, err := compress.Decode(codec, nil, data); err == nil && len(got) != 0 {
				t.Errorf("no room: got %d bytes", len(got))
			}
		})
	}
}

// TestCompressionBombs inflates them where there is room for a page, and for none.
func TestCompressionBombs(t *testing.T) {
	for _, c := range []compress.Compression{compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli, compress.Codecs.Zstd} {
		t.Run(c.String(), func(t *testing.T) {
			codec, err := compress.GetCodec(c)
			if err != nil {
				t.Fatal(err)
			}
			data := bomb(t, c)
			if len(data) > 1<<20 {
				t.Fatalf("a bomb of %d bytes", len(data))
			}
			for _, room := range [][]byte{nil, {}, make([]byte, 100_000)} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got, err := compress.Decode(codec, room, data)
				runtime.ReadMemStats(&after)
				if err == nil {
					t.Errorf("room for %d bytes: got %d and no error", len(room), len(got))
				}
				if used := after.TotalAlloc - before.TotalAlloc; used > refusalMemory {
					t.Errorf("room for %d bytes: %d were allocated", len(room), used)
				}
			}
		})
	}
}

// onePage is a file of one column of type INT NOT NULL with one page.
func onePage(t testing.TB, codec compress.Compression, header format.PageHeader, page []byte, rows int64) []byte {
	t.Helper()
	head, err := thrift.Marshal(new(thrift.CompactProtocol), header)
	if err != nil {
		t.Fatal(err)
	}
	body := slices.Concat([]byte("PAR1"), head, page)
	required, integer := format.Required, format.Int32
	md := format.FileMetaData{
		Version: 1, NumRows: rows,
		Schema: []format.SchemaElement{{Name: "paimon_schema", NumChildren: thrift.New(int32(1))}, {Name: "n", Type: thrift.New(integer), RepetitionType: thrift.New(required)}},
		RowGroups: []format.RowGroup{{NumRows: rows, Columns: []format.ColumnChunk{{MetaData: format.ColumnMetaData{
			Type: integer, Encoding: []format.Encoding{format.Plain}, PathInSchema: []string{"n"}, Codec: format.CompressionCodec(codec),
			NumValues: rows, TotalCompressedSize: int64(len(body) - 4), TotalUncompressedSize: int64(len(body) - 4), DataPageOffset: 4,
		}}}}},
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), md)
	if err != nil {
		t.Fatal(err)
	}
	return withFooter(body, footer)
}

// TestPagesThatLie has files of one page whose header does not fit what follows.
func TestPagesThatLie(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"n", "INT NOT NULL"})
	const rows = 1000
	plain := thrift.New(format.DataPageHeader{NumValues: rows, Encoding: format.Plain})
	page := func(size, compressed int) format.PageHeader {
		return format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(size), CompressedPageSize: int32(compressed), DataPageHeader: plain}
	}
	second := func(size, compressed int) format.PageHeader {
		return format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: int32(size), CompressedPageSize: int32(compressed), DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{
			NumValues: rows, NumRows: rows, Encoding: format.Plain, IsCompressed: thrift.New(true),
		})}
	}
	zstd, snappy, gzip := bomb(t, compress.Codecs.Zstd), bomb(t, compress.Codecs.Snappy), bomb(t, compress.Codecs.Gzip)
	for _, c := range []struct {
		name, want string
		codec      compress.Compression
		header     format.PageHeader
		page       []byte
	}{
		{"a zstd bomb", "longer than the page header tells", compress.Codecs.Zstd, page(4*rows, len(zstd)), zstd},
		{"a zstd bomb, second version", "longer than the page header tells", compress.Codecs.Zstd, second(4*rows, len(zstd)), zstd},
		{"a snappy bomb", "longer than the page header tells", compress.Codecs.Snappy, page(4*rows, len(snappy)), snappy},
		{"a gzip bomb without length", "decoded data exceeds", compress.Codecs.Gzip, page(0, len(gzip)), gzip},
		{"a page of 2 GiB", "uncompressed page size 2147483647 exceeds", compress.Codecs.Zstd, page(1<<31-1, len(zstd)), zstd},
		{"a page of 257 MiB", "uncompressed page size 269484032 exceeds", compress.Codecs.Zstd, page(257<<20, len(zstd)), zstd},
		{"a page of -1 bytes", "negative page size", compress.Codecs.Zstd, page(-1, len(zstd)), zstd},
		{"a compressed page of -1 bytes", "negative page size", compress.Codecs.Zstd, page(4*rows, -1), zstd},
		{"a compressed page of 2 GiB", "compressed page size 2147483647 exceeds", compress.Codecs.Zstd, page(4*rows, 1<<31-1), zstd},
		{"a page that is shorter", "got 4000 bytes", compress.Codecs.Uncompressed, page(4*rows+8, 4*rows), make([]byte, 4*rows)},
		{"a page that is longer", "longer than the page header tells", compress.Codecs.Uncompressed, page(4*rows-8, 4*rows), make([]byte, 4*rows)},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := onePage(t, c.codec, c.header, c.page, rows)
			checkRefused(t, input("bomb.parquet", fields, data, rows), fields, refusalMemory, c.want)
		})
	}
}

// TestOnePage shows that the file is good where its header is.
func TestOnePage(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"n", "INT NOT NULL"})
	const rows = 1000
	header := format.PageHeader{
		Type: format.DataPage, UncompressedPageSize: 4 * rows, CompressedPageSize: 4 * rows,
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: rows, Encoding: format.Plain}),
	}
	in := input("good.parquet", fields, onePage(t, compress.Codecs.Uncompressed, header, make([]byte, 4*rows), rows), rows)
	if _, _, got, err := concat(t.Context(), []datafile.Input{in}, plainSpec(fields)); err != nil || len(got) != rows {
		t.Errorf("%d rows, error %v", len(got), err)
	}
}
