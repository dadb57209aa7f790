package readback

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	usualHeader = 2 << 10
	maxHeader   = 16 << 20
	readAhead   = 32 << 10
)

// pages are the data pages of a column chunk.
type pages struct {
	decoded *parquet.FilePages
	chunk   *chunk
}

func (f *file) pages(group int, column *parquet.Column) *pages {
	meta := &f.meta.RowGroups[group].Columns[column.Index()].MetaData
	start := chunkStart(meta)
	c := &chunk{
		in: f.in, column: column, codec: meta.Codec, inflater: &f.inflater,
		at: start, end: start + meta.TotalCompressedSize, left: meta.NumValues, outAt: virtualStart,
	}
	return &pages{f.chunks[column.Index()].PagesFrom(c), c}
}

// next returns the next page, or io.EOF.
func (p *pages) next() (parquet.Page, error) {
	page, err := p.decoded.ReadPage()
	switch {
	case p.chunk.err != nil:
		err = p.chunk.err
	case err == nil && page.NumValues() != p.chunk.entries:
		err = fmt.Errorf("a page has %d entries, its header says %d: %w", page.NumValues(), p.chunk.entries, errEntries)
	case err == nil:
		return page, nil
	case errors.Is(err, io.EOF) && p.chunk.ended:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("column %v: page before byte %d: %w", p.chunk.column.Path(), p.chunk.at, err)
}

// chunk is a column chunk as parquet-go is to see it: the same pages, checked and
// without compression, as if they were in a file from virtualStart on.
type chunk struct {
	in        io.ReaderAt
	column    *parquet.Column
	codec     format.CompressionCodec
	inflater  *inflater
	at, end   int64 // pages that were not read yet
	left      int64 // entries that they have
	words     bool  // there was a dictionary
	window    []byte
	windowAt  int64
	body      []byte
	page, out []byte // header and body, inflated; what parquet-go has not read of them
	outAt     int64
	entries   int64 // of the page
	ended     bool
	err       error
}

// ReadAt reads on where the last call ended, up to the end of the page.
func (c *chunk) ReadAt(p []byte, at int64) (int, error) {
	if len(c.out) == 0 && !c.ended && c.err == nil {
		c.err = c.fill()
	}
	switch {
	case c.err != nil:
		return 0, c.err
	case c.ended:
		return 0, io.EOF
	case at != c.outAt:
		c.err = errors.New("parquet-go reads pages in another order")
		return 0, c.err
	}
	n := copy(p, c.out)
	c.out, c.outAt = c.out[n:], c.outAt+int64(n)
	return n, nil
}

// fill reads the next page with entries, or words of a dictionary.
func (c *chunk) fill() error {
	for c.at < c.end {
		h, err := c.header()
		if err != nil {
			return fmt.Errorf("page header: %w", err)
		}
		clean, err := c.check(h)
		if err != nil {
			return fmt.Errorf("page header: %w", err)
		}
		body, err := c.read(int(h.CompressedPageSize))
		if err != nil {
			return err
		}
		if h.CRC != 0 && crc32.ChecksumIEEE(body) != uint32(h.CRC) {
			return errors.New("the page does not have its checksum")
		}
		if clean == nil { // nothing in it
			continue
		}
		return c.inflatePage(clean, body)
	}
	if c.left != 0 {
		return fmt.Errorf("the pages end %d entries before the footer says so", c.left)
	}
	c.ended = true
	return nil
}

// inflatePage makes the page that parquet-go reads.
func (c *chunk) inflatePage(h *format.PageHeader, body []byte) error {
	head, err := thrift.Marshal(new(thrift.CompactProtocol), h)
	if err != nil {
		return err
	}
	size := len(head) + int(h.UncompressedPageSize)
	c.page = slices.Grow(c.page[:0], size)[:size]
	copy(c.page, head)
	page := c.page[len(head):]
	levels, codec := 0, c.codec
	if v2 := &h.DataPageHeaderV2; v2.Valid {
		levels = int(v2.V.RepetitionLevelsByteLength + v2.V.DefinitionLevelsByteLength)
		if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
			codec = format.Uncompressed
		}
	}
	copy(page, body[:levels])
	if err := c.inflater.inflate(codec, page[levels:], body[levels:]); err != nil {
		return fmt.Errorf("inflate a page with %s: %w", codec, err)
	}
	if err := c.checkDelta(h, page); err != nil {
		return err
	}
	c.out = c.page
	return nil
}

// check looks at what a header says, and returns what parquet-go needs of it, with
// the sizes of the page without compression; nil if there is nothing in the page.
func (c *chunk) check(h *format.PageHeader) (*format.PageHeader, error) {
	if h.CompressedPageSize < 0 || int64(h.CompressedPageSize) > c.end-c.at || h.CompressedPageSize > 2*maxPage {
		return nil, fmt.Errorf("the page has %d bytes, its column %d", h.CompressedPageSize, c.end-c.at)
	}
	size := h.UncompressedPageSize
	if size < 0 || size > maxPage {
		return nil, fmt.Errorf("the page inflates to %d bytes", size)
	}
	clean := &format.PageHeader{Type: h.Type, UncompressedPageSize: size, CompressedPageSize: size}
	var n int32
	var encoding format.Encoding
	switch {
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		if n = h.DictionaryPageHeader.V.NumValues; n < 0 || n > size || c.words {
			return nil, fmt.Errorf("a dictionary of %d words in %d bytes", n, size)
		}
		c.words = true
		clean.DictionaryPageHeader = h.DictionaryPageHeader
		return clean, nil
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		clean.DataPageHeader = h.DataPageHeader
		clean.DataPageHeader.V.Statistics = format.Statistics{}
		n, encoding = h.DataPageHeader.V.NumValues, h.DataPageHeader.V.Encoding
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		if err := c.checkV2(h); err != nil {
			return nil, err
		}
		clean.DataPageHeaderV2 = h.DataPageHeaderV2
		clean.DataPageHeaderV2.V.Statistics = format.Statistics{}
		n, encoding = h.DataPageHeaderV2.V.NumValues, h.DataPageHeaderV2.V.Encoding
	case h.Type == format.IndexPage:
		return nil, nil
	default:
		return nil, fmt.Errorf("a page of type %s without its header", h.Type)
	}
	if n < 0 || int64(n) > c.left || n > maxEntries {
		return nil, fmt.Errorf("the page has %d entries of %d", n, c.left)
	}
	old := encoding == format.PlainDictionary //nolint:staticcheck // deprecated for writers; Java still writes it in pages of version 1
	if (old || encoding == format.RLEDictionary) && !c.words && n > 0 {
		return nil, errors.New("there is no dictionary before the page")
	}
	c.left, c.entries = c.left-int64(n), int64(n)
	if n == 0 {
		return nil, nil
	}
	return clean, nil
}

func (c *chunk) checkV2(h *format.PageHeader) error {
	v2 := &h.DataPageHeaderV2.V
	reps, defs := v2.RepetitionLevelsByteLength, v2.DefinitionLevelsByteLength
	switch {
	case reps < 0 || defs < 0 || int64(reps)+int64(defs) > int64(min(h.CompressedPageSize, h.UncompressedPageSize)):
		return fmt.Errorf("levels of %d and %d bytes in a page of %d", reps, defs, h.CompressedPageSize)
	case v2.NumNulls < 0 || v2.NumNulls > v2.NumValues:
		return fmt.Errorf("%d nulls of %d entries", v2.NumNulls, v2.NumValues)
	case v2.NumValues > 0 && (c.column.MaxRepetitionLevel() > 0 && reps == 0 || c.column.MaxDefinitionLevel() > 0 && defs == 0):
		return errors.New("the page has no levels")
	}
	return nil
}

// header reads the header of the next page, however long it is.
func (c *chunk) header() (*format.PageHeader, error) {
	for n := int64(usualHeader); ; n *= 8 {
		data, err := c.peek(min(n, c.end-c.at))
		if err != nil {
			return nil, err
		}
		length, err := thriftStruct(data)
		if errors.Is(err, errShort) && n < min(maxHeader, c.end-c.at) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var h format.PageHeader
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), data[:length], &h); err != nil {
			return nil, err
		}
		c.at += int64(length)
		return &h, nil
	}
}

// peek returns the next n bytes, which there must be.
func (c *chunk) peek(n int64) ([]byte, error) {
	if from := c.at - c.windowAt; from >= 0 && from+n <= int64(len(c.window)) {
		return c.window[from : from+n], nil
	}
	size := min(max(n, readAhead), c.end-c.at)
	c.window, c.windowAt = slices.Grow(c.window[:0], int(size))[:size], c.at
	if err := readAt(c.in, c.window, c.at); err != nil {
		c.window = c.window[:0]
		return nil, err
	}
	return c.window[:n], nil
}

// read returns the next n bytes and passes over them. They stay until the next call.
func (c *chunk) read(n int) ([]byte, error) {
	var body []byte
	var err error
	if n <= readAhead {
		body, err = c.peek(int64(n))
	} else {
		c.body = slices.Grow(c.body[:0], n)[:n]
		body, err = c.body, readAt(c.in, c.body, c.at)
	}
	c.at += int64(n)
	return body, err
}
