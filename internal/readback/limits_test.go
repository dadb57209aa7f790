package readback

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	parquetdelta "github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// TestThrift walks over structures as parquet-go writes them, and refuses those that
// end too early or promise more than there is.
func TestThrift(t *testing.T) {
	good, err := thrift.Marshal(new(thrift.CompactProtocol), &format.FileMetaData{
		Version: 1, Schema: slices.Repeat([]format.SchemaElement{{Name: "c"}}, 20), CreatedBy: "test",
		RowGroups: []format.RowGroup{{Columns: []format.ColumnChunk{{MetaData: format.ColumnMetaData{
			Encoding: []format.Encoding{format.Plain}, PathInSchema: []string{"c"}, Codec: format.Zstd, NumValues: 1 << 40,
		}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := thriftStruct(append(slices.Clone(good), 1, 2, 3)); n != len(good) || err != nil {
		t.Errorf("%d of %d bytes, %v", n, len(good), err)
	}
	for n := range good {
		if _, err := thriftStruct(good[:n]); !errors.Is(err, errShort) {
			t.Errorf("%d of %d bytes: %v", n, len(good), err)
		}
	}
	for name, bad := range map[string][]byte{
		"a list of 2^31-1 structures": {0x2c | 0x10, 0, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07},
		"a map":                       {0x1b, 0, 0},
		"an unknown type":             {0x1e, 0, 0},
		"structures without end":      bytes.Repeat([]byte{0x1c}, 1000),
		"lists without end":           append([]byte{0x19}, bytes.Repeat([]byte{0x19}, 1000)...),
		"a number without end":        append([]byte{0x15}, bytes.Repeat([]byte{0xff}, 20)...),
	} {
		if _, err := thriftStruct(bad); !errors.Is(err, errThrift) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDelta compares the numbers with those of parquet-go's encoder, and what is
// behind them.
func TestDelta(t *testing.T) {
	for _, numbers := range [][]int32{{}, {5}, {0, 1, -1, math.MaxInt32 / 2, 7}, slices.Repeat([]int32{3}, 1000), ramp(300)} {
		data, err := new(parquetdelta.BinaryPackedEncoding).EncodeInt32(nil, numbers)
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDelta(append(data, "rest"...), int64(len(numbers)))
		if err != nil {
			t.Fatal(err)
		}
		var got []int32
		err = d.each(func(v int64) bool {
			got = append(got, int32(v))
			return true
		})
		if err != nil || !slices.Equal(got, numbers) || string(d.rest) != "rest" {
			t.Errorf("%v reads back as %v, rest %q, %v", numbers, got, d.rest, err)
		}
		if len(numbers) > 0 {
			if _, err := newDelta(data, int64(len(numbers)-1)); !errors.Is(err, errDelta) {
				t.Errorf("a number too many: %v", err)
			}
		}
	}
}

func ramp(n int32) []int32 {
	var numbers []int32
	for i := range n {
		numbers = append(numbers, i*i-1000)
	}
	return numbers
}

// TestSharedBeginnings refuses a page of values that repeat a long one very often.
func TestSharedBeginnings(t *testing.T) {
	const n, long = 10_000, 100_000
	shared, err := new(parquetdelta.BinaryPackedEncoding).EncodeInt32(nil, append([]int32{0}, slices.Repeat([]int32{long}, n-1)...))
	if err != nil {
		t.Fatal(err)
	}
	h := &format.PageHeader{DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{NumValues: n, Encoding: format.DeltaByteArray})}
	if err := new(chunk).checkDelta(h, shared); !errors.Is(err, errDelta) {
		t.Errorf("got %v", err)
	}
}

// TestInflate fills pages of every codec, and refuses data that inflate to more or to
// less than their page.
func TestInflate(t *testing.T) {
	page := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	var zipped, brotlied bytes.Buffer
	z := gzip.NewWriter(&zipped)
	b := brotli.NewWriter(&brotlied)
	_, zerr := z.Write(page)
	_, berr := b.Write(page)
	encoder, eerr := zstd.NewWriter(nil)
	if err := errors.Join(zerr, berr, eerr, z.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	block := make([]byte, lz4.CompressBlockBound(len(page)))
	n, err := lz4.CompressBlock(page, block, nil)
	if err != nil {
		t.Fatal(err)
	}
	block = block[:n]
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(page)))
	frame = append(binary.BigEndian.AppendUint32(frame, uint32(n)), block...)
	for name, tt := range map[string]struct {
		codec format.CompressionCodec
		data  []byte
	}{
		"none": {format.Uncompressed, page}, "snappy": {format.Snappy, snappy.Encode(nil, page)}, "gzip": {format.Gzip, zipped.Bytes()},
		"brotli": {format.Brotli, brotlied.Bytes()}, "zstd": {format.Zstd, encoder.EncodeAll(page, nil)}, "lz4_raw": {format.Lz4Raw, block},
		"lz4": {format.Lz4, frame}, "lz4 and the end of a stream": {format.Lz4, append(slices.Clone(frame), 0, 0, 0, 0, 9)},
		"lz4 without a frame": {format.Lz4, block},
	} {
		if !readable(tt.codec) {
			t.Errorf("%s is not readable", name)
		}
		var i inflater
		got := make([]byte, len(page))
		if err := i.inflate(tt.codec, got, tt.data); err != nil || !bytes.Equal(got, page) {
			t.Errorf("%s: %v", name, err)
		}
		for _, size := range []int{1, len(page) - 1, len(page) + 1} {
			if err := i.inflate(tt.codec, make([]byte, size), tt.data); err == nil {
				t.Errorf("%s fills %d bytes", name, size)
			}
		}
		if err := i.inflate(tt.codec, nil, nil); err != nil {
			t.Errorf("%s of nothing: %v", name, err)
		}
	}
	var i inflater
	if err := i.inflate(format.LZO, make([]byte, 1), nil); !errors.Is(err, ErrUnsupported) || readable(format.LZO) {
		t.Errorf("LZO: %v", err)
	}
}

// TestFooter refuses what a footer may say, by name.
func TestFooter(t *testing.T) {
	leaf := format.SchemaElement{Name: "c", Type: thrift.New(format.Int32)}
	schema := []format.SchemaElement{{Name: "root", NumChildren: thrift.New[int32](1)}, leaf}
	column := func(change func(*format.ColumnChunk)) format.FileMetaData {
		c := format.ColumnChunk{MetaData: format.ColumnMetaData{DataPageOffset: 4, PathInSchema: []string{"c"}, Codec: format.Uncompressed}}
		change(&c)
		return format.FileMetaData{Version: 1, Schema: schema, RowGroups: []format.RowGroup{{Columns: []format.ColumnChunk{c}}}}
	}
	nested := func(depth int) []format.SchemaElement {
		return append(slices.Repeat([]format.SchemaElement{schema[0]}, depth), leaf)
	}
	for name, tt := range map[string]struct {
		meta        format.FileMetaData
		ok, refused bool
	}{
		"sound":          {meta: column(func(*format.ColumnChunk) {}), ok: true},
		"codec":          {meta: column(func(c *format.ColumnChunk) { c.MetaData.Codec = format.LZO }), refused: true},
		"encrypted":      {meta: column(func(c *format.ColumnChunk) { c.EncryptedColumnMetadata = []byte{1} }), refused: true},
		"another file":   {meta: column(func(c *format.ColumnChunk) { c.FilePath = "x" }), refused: true},
		"long column":    {meta: column(func(c *format.ColumnChunk) { c.MetaData.TotalCompressedSize = math.MaxInt64 })},
		"far column":     {meta: column(func(c *format.ColumnChunk) { c.MetaData.DataPageOffset = math.MaxInt64 })},
		"negative place": {meta: column(func(c *format.ColumnChunk) { c.MetaData.DataPageOffset = -1 })},
		"negative count": {meta: column(func(c *format.ColumnChunk) { c.MetaData.NumValues = -1 })},
		"rows":           {meta: format.FileMetaData{Schema: schema, NumRows: 1}},
		"no columns":     {meta: format.FileMetaData{Schema: schema, RowGroups: []format.RowGroup{{}}}},
		"no schema":      {meta: format.FileMetaData{}},
		"schema ends":    {meta: format.FileMetaData{Schema: schema[:1]}},
		"schema goes on": {meta: format.FileMetaData{Schema: append(slices.Clone(schema), leaf)}},
		"deep":           {meta: format.FileMetaData{Schema: nested(100)}, ok: true},
		"too deep":       {meta: format.FileMetaData{Schema: nested(10_000)}},
	} {
		footer, err := thrift.Marshal(new(thrift.CompactProtocol), &tt.meta)
		if err != nil {
			t.Fatal(err)
		}
		data := append([]byte(magic), footer...)
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(footer))), magic...)
		_, err = New(bytes.NewReader(data), int64(len(data)), "f", nil)
		if (err == nil) != tt.ok || errors.Is(err, ErrUnsupported) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
