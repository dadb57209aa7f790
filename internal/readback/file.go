package readback

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Limits on what a file may make the reader hold: its bytes are untrusted.
const (
	maxFooter  = 256 << 20 // bytes
	maxDepth   = 192       // of the schema: two levels and more for each one of a type
	maxPage    = 256 << 20 // bytes of a page, inflated
	maxEntries = 64 << 20  // of a page

	decodeBuffer = 4 << 10
)

const (
	magic    = "PAR1"
	tailSize = 4 + len(magic) // length of the footer, magic
)

// file is a Parquet file whose footer has been read.
type file struct {
	in     io.ReaderAt
	size   int64
	meta   format.FileMetaData
	root   *parquet.Column
	leaves []*parquet.Column
	// chunks decode the pages of a leaf, in every row group.
	chunks   []*parquet.FileColumnChunk
	inflater inflater
}

func openFile(in io.ReaderAt, size int64) (*file, error) {
	f := &file{in: in, size: size}
	if err := f.readFooter(); err != nil {
		return nil, fmt.Errorf("read the footer: %w", err)
	}
	if err := f.openSchema(); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, nil
}

// readAt fills b, or fails.
func readAt(in io.ReaderAt, b []byte, at int64) error {
	if n, err := in.ReadAt(b, at); n < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("%d of %d bytes at %d: %w", n, len(b), at, err)
	}
	return nil
}

func (f *file) readFooter() error {
	if f.size < int64(len(magic)+tailSize) {
		return fmt.Errorf("the file has %d bytes", f.size)
	}
	var head [len(magic)]byte
	var tail [tailSize]byte
	if err := readAt(f.in, head[:], 0); err != nil {
		return err
	}
	if err := readAt(f.in, tail[:], f.size-int64(tailSize)); err != nil {
		return err
	}
	switch end := string(tail[4:]); {
	case end == "PARE":
		return fmt.Errorf("encryption: %w", ErrUnsupported)
	case end != magic || string(head[:]) != magic:
		return fmt.Errorf("the file begins with %q and ends with %q", head, end)
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length > maxFooter || length > f.size-int64(len(magic)+tailSize) {
		return fmt.Errorf("it has %d bytes", length)
	}
	data := make([]byte, length)
	if err := readAt(f.in, data, f.size-int64(tailSize)-length); err != nil {
		return err
	}
	if _, err := thriftStruct(data); err != nil {
		return err
	}
	return thrift.Unmarshal(new(thrift.CompactProtocol), data, &f.meta)
}

// Where parquet-go thinks that the pages of every column are.
const (
	virtualStart = int64(len(magic))
	virtualSize  = 1 << 40
)

// openSchema makes the columns that decode pages. They are those of a file of the
// same schema whose pages are not compressed: see chunk.
func (f *file) openSchema() error {
	leaves, err := f.checkSchema()
	if err != nil {
		return err
	}
	virtual := format.ColumnChunk{MetaData: format.ColumnMetaData{
		Codec: format.Uncompressed, DataPageOffset: virtualStart, TotalCompressedSize: virtualSize,
	}}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &format.FileMetaData{
		Version: 1, Schema: f.meta.Schema, RowGroups: []format.RowGroup{{Columns: slices.Repeat([]format.ColumnChunk{virtual}, leaves)}},
	})
	if err != nil {
		return err
	}
	data := append([]byte(magic), footer...)
	data = append(binary.LittleEndian.AppendUint32(data, uint32(len(footer))), magic...)
	same, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)),
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(decodeBuffer))
	if err != nil {
		return err
	}
	f.root = same.Root()
	f.leaves = leavesOf(nil, f.root)
	for _, c := range same.RowGroups()[0].ColumnChunks() {
		chunk, ok := c.(*parquet.FileColumnChunk)
		if !ok {
			return fmt.Errorf("parquet-go has a %T for a column", c)
		}
		f.chunks = append(f.chunks, chunk)
	}
	if len(f.chunks) != len(f.leaves) {
		return fmt.Errorf("it has %d leaves and %d columns", len(f.leaves), len(f.chunks))
	}
	return nil
}

func leavesOf(all []*parquet.Column, c *parquet.Column) []*parquet.Column {
	if c.Leaf() {
		return append(all, c)
	}
	for _, kid := range c.Columns() {
		all = leavesOf(all, kid)
	}
	return all
}

// checkSchema bounds how deep the schema nests, which parquet-go does too late, and
// counts its leaves.
func (f *file) checkSchema() (leaves int, err error) {
	var open []int32 // children still to come, by level
	for i := range f.meta.Schema {
		if i > 0 && len(open) == 0 {
			return 0, errors.New("it has elements after its root")
		}
		if n := f.meta.Schema[i].NumChildren; n.Valid && n.V > 0 {
			open = append(open, n.V)
		} else {
			leaves++
			for len(open) > 0 {
				if open[len(open)-1]--; open[len(open)-1] > 0 {
					break
				}
				open = open[:len(open)-1]
			}
		}
		if len(open) > maxDepth {
			return 0, fmt.Errorf("it nests deeper than %d levels", maxDepth)
		}
	}
	if len(open) > 0 {
		return 0, errors.New("it ends before its last element")
	}
	return leaves, nil
}

// check looks at what the footer says of the row groups.
func (f *file) check() error {
	left := f.meta.NumRows
	for g := range f.meta.RowGroups {
		group := &f.meta.RowGroups[g]
		if group.NumRows < 0 || group.NumRows > left {
			return fmt.Errorf("row group %d has %d rows of %d in the footer", g, group.NumRows, f.meta.NumRows)
		}
		left -= group.NumRows
		if len(group.Columns) != len(f.leaves) {
			return fmt.Errorf("row group %d has %d columns, the schema %d", g, len(group.Columns), len(f.leaves))
		}
		for c := range group.Columns {
			if err := f.checkChunk(&group.Columns[c]); err != nil {
				return fmt.Errorf("row group %d, column %v: %w", g, f.leaves[c].Path(), err)
			}
		}
	}
	if left != 0 {
		return fmt.Errorf("%d rows in the footer, %d fewer in the row groups", f.meta.NumRows, left)
	}
	return nil
}

func (f *file) checkChunk(chunk *format.ColumnChunk) error {
	meta := &chunk.MetaData
	switch {
	case chunk.FilePath != "":
		return fmt.Errorf("it is in another file: %w", ErrUnsupported)
	case len(chunk.EncryptedColumnMetadata) > 0 || chunk.CryptoMetadata.Value != nil:
		return fmt.Errorf("encryption: %w", ErrUnsupported)
	case !readable(meta.Codec):
		return fmt.Errorf("compression %s: %w", meta.Codec, ErrUnsupported)
	case meta.NumValues < 0:
		return fmt.Errorf("it has %d entries", meta.NumValues)
	}
	if start := chunkStart(meta); start < int64(len(magic)) || meta.TotalCompressedSize < 0 || meta.TotalCompressedSize > f.size-start {
		return fmt.Errorf("it has %d bytes at %d, the file %d", meta.TotalCompressedSize, start, f.size)
	}
	return nil
}

// chunkStart is where the first page is: the one of the dictionary, if there is any.
func chunkStart(meta *format.ColumnMetaData) int64 {
	if d := meta.DictionaryPageOffset; d > 0 && d < meta.DataPageOffset {
		return d
	}
	return meta.DataPageOffset
}
