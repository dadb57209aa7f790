package tabletest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// withoutLZ4 returns a file as it is, unless it has columns compressed with LZ4:
// then a copy of it without compression. parquet-go does not read the codec LZ4,
// which is blocks in the frames of Hadoop, and takes an LZ4_RAW page for one of
// zeros where it compresses to more than a third (Column.decompress drops what the
// codec put into a larger buffer).
func withoutLZ4(data []byte) ([]byte, error) {
	const tail = 8 // length of the footer, magic
	if len(data) < 2*tail {
		return data, nil
	}
	length := int(binary.LittleEndian.Uint32(data[len(data)-tail:]))
	if length > len(data)-tail {
		return data, nil
	}
	var footer format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), data[len(data)-tail-length:len(data)-tail], &footer); err != nil {
		return nil, fmt.Errorf("read the footer: %w", err)
	}
	chunks, compressed := 0, 0
	out := bytes.NewBuffer([]byte("PAR1"))
	for g := range footer.RowGroups {
		for c := range footer.RowGroups[g].Columns {
			chunk := &footer.RowGroups[g].Columns[c]
			chunk.ColumnIndexOffset, chunk.ColumnIndexLength, chunk.OffsetIndexOffset, chunk.OffsetIndexLength = 0, 0, 0, 0
			chunks++
			if codec := chunk.MetaData.Codec; codec != format.Lz4 && codec != format.Lz4Raw {
				continue
			}
			compressed++
			if err := inflateChunk(out, data, &chunk.MetaData); err != nil {
				return nil, fmt.Errorf("row group %d, column %d: %w", g, c, err)
			}
		}
	}
	switch compressed {
	case 0:
		return data, nil
	case chunks:
	default:
		return nil, errors.New("only some of the columns are compressed with LZ4")
	}
	encoded, err := thrift.Marshal(new(thrift.CompactProtocol), &footer)
	if err != nil {
		return nil, err
	}
	out.Write(encoded)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(encoded))))
	out.WriteString("PAR1")
	return out.Bytes(), nil
}

// inflateChunk writes the pages of a column chunk without compression.
func inflateChunk(out *bytes.Buffer, data []byte, meta *format.ColumnMetaData) error {
	start := meta.DataPageOffset
	if d := meta.DictionaryPageOffset; d > 0 && d < start {
		start = d
	}
	if start < 0 || meta.TotalCompressedSize < 0 || start+meta.TotalCompressedSize > int64(len(data)) {
		return errors.New("the column lies outside of the file")
	}
	in := bytes.NewReader(data[start : start+meta.TotalCompressedSize])
	begin := int64(out.Len())
	dictionary := meta.DictionaryPageOffset
	meta.DictionaryPageOffset, meta.DataPageOffset = 0, 0
	for in.Len() > 0 {
		var header format.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in)).Decode(&header); err != nil {
			return fmt.Errorf("page header: %w", err)
		}
		body := make([]byte, header.CompressedPageSize)
		if _, err := io.ReadFull(in, body); err != nil {
			return fmt.Errorf("page: %w", err)
		}
		levels := 0
		if v2 := header.DataPageHeaderV2; v2.Valid {
			levels = int(v2.V.RepetitionLevelsByteLength + v2.V.DefinitionLevelsByteLength)
		}
		page, err := inflatePage(body, levels, int(header.UncompressedPageSize), meta.Codec)
		if err != nil {
			return err
		}
		if len(page) != int(header.UncompressedPageSize) {
			return fmt.Errorf("page of %d bytes, %d in its header", len(page), header.UncompressedPageSize)
		}
		header.CompressedPageSize, header.CRC = header.UncompressedPageSize, 0
		encoded, err := thrift.Marshal(new(thrift.CompactProtocol), &header)
		if err != nil {
			return err
		}
		switch {
		case header.Type == format.DictionaryPage && dictionary > 0:
			meta.DictionaryPageOffset = int64(out.Len())
		case header.Type != format.DictionaryPage && meta.DataPageOffset == 0:
			meta.DataPageOffset = int64(out.Len())
		}
		out.Write(encoded)
		out.Write(page)
	}
	meta.Codec = format.Uncompressed
	meta.TotalCompressedSize = int64(out.Len()) - begin
	meta.TotalUncompressedSize = meta.TotalCompressedSize
	return nil
}

// inflatePage inflates a page but for the levels before it, which are as they are.
func inflatePage(body []byte, levels, size int, codec format.CompressionCodec) ([]byte, error) {
	page := append([]byte{}, body[:levels]...)
	if codec == format.Lz4 {
		return appendFrames(page, body[levels:])
	}
	block := make([]byte, max(size-levels, 0))
	if len(block) == 0 {
		return page, nil
	}
	n, err := lz4.UncompressBlock(body[levels:], block)
	return append(page, block[:max(n, 0)]...), err
}

// appendFrames inflates frames: the length of what is in the frame, then blocks
// with their own lengths until it is complete, all numbers big-endian. A frame of
// nothing is the end, whatever follows, as Hadoop reads it.
func appendFrames(dst, src []byte) ([]byte, error) {
	for len(src) > 0 {
		if len(src) < 4 {
			return nil, errors.New("LZ4 frame without a length")
		}
		left := int(binary.BigEndian.Uint32(src))
		if left == 0 {
			return dst, nil
		}
		for src = src[4:]; left > 0; {
			if len(src) < 4 || int(binary.BigEndian.Uint32(src)) > len(src)-4 {
				return nil, errors.New("LZ4 block beyond the end of the page")
			}
			end := 4 + int(binary.BigEndian.Uint32(src))
			block := make([]byte, left)
			n, err := lz4.UncompressBlock(src[4:end], block)
			if err != nil || n == 0 {
				return nil, fmt.Errorf("LZ4 block: %d bytes: %w", n, err)
			}
			dst, src, left = append(dst, block[:n]...), src[end:], left-n
		}
	}
	return dst, nil
}
