package datafile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// Limits on what a file may make the reader hold: its header and pages are
// untrusted.
const (
	maxPage       = 256 << 20 // bytes of one page, inflated
	readAhead     = 8 << 20   // bytes of buffers for all leaves of all files that are read at once
	minReadBuffer = 8 << 10
	maxReadBuffer = 512 << 10
)

// openedInput is an input with its footer read.
type openedInput struct {
	parquet *file.Reader
	raw     File
	size    int64
	pages   *pageBudget
}

// share is what an input gets of what readers may hold.
type share struct {
	inputs int // that are read at once
	pages  *pageBudget
}

func (o *openedInput) rowGroup(g int) rowGroup { return rowGroup{o.parquet.RowGroup(g), o.pages} }

func (o *openedInput) Close() error { return errors.Join(o.parquet.Close(), o.raw.Close()) }

// openInput opens a file and checks its footer: that it is Parquet, that it has
// the rows that the manifest promised, and that its codecs can be read.
func openInput(ctx context.Context, in Input, s share) (*openedInput, error) {
	raw, err := in.Open(ctx)
	if err != nil {
		return nil, err
	}
	o := &openedInput{raw: raw, size: raw.Size(), pages: s.pages}
	if err := guard("", func() error { return o.open(in, s.inputs) }); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return o, nil
}

func (o *openedInput) open(in Input, atOnce int) error {
	props := parquet.NewReaderProperties(memory.DefaultAllocator)
	props.BufferedStreamEnabled = true
	props.MaxCompressedPageSize, props.MaxUncompressedPageSize = o.pages.page(), o.pages.page()
	props.BufferSize = min(max(readAhead/int64(max(len(in.Fields), 1)*atOnce), minReadBuffer), maxReadBuffer)
	footer, err := readFooter(o.raw, o.size)
	if err == nil {
		o.parquet, err = file.NewParquetReader(io.NewSectionReader(o.raw, 0, o.size), file.WithReadProps(props), file.WithMetadata(footer))
	}
	if err != nil {
		return fmt.Errorf("read Parquet footer: %w", err)
	}
	return o.check(in)
}

func (o *openedInput) check(in Input) error {
	md := o.parquet.MetaData()
	var rows int64
	for g := range o.parquet.NumRowGroups() {
		rg := md.RowGroup(g)
		if rg.NumRows() < 0 || rg.NumRows() > maxFileRows-rows {
			return fmt.Errorf("row group %d has %d rows; a file may have %d: %w", g, rg.NumRows(), maxFileRows, ErrUnsupported)
		}
		rows += rg.NumRows()
		if err := o.checkChunks(rg); err != nil {
			return fmt.Errorf("row group %d: %w", g, err)
		}
	}
	if rows != in.Rows || md.NumRows != in.Rows {
		return fmt.Errorf("holds %d rows where its manifest has %d", rows, in.Rows)
	}
	return nil
}

// checkChunks checks the codecs of a row group, and that its offset indexes, for
// which the Parquet library makes room at once, are in the file.
func (o *openedInput) checkChunks(rg *metadata.RowGroupMetaData) error {
	from, to := o.size, int64(0)
	for c := range rg.NumColumns() {
		chunk, err := rg.ColumnChunk(c)
		if err != nil {
			return err
		}
		if codec := chunk.Compression(); !readable(codec) {
			return fmt.Errorf("compression %s: %w", codec, ErrUnsupported)
		}
		at := chunk.GetOffsetIndexLocation()
		if at == nil {
			continue
		}
		if at.Offset < 0 || at.Length < 0 || at.Offset > o.size-int64(at.Length) {
			return fmt.Errorf("column %d: the offset index of %d bytes at %d is not within the file of %d bytes", c, at.Length, at.Offset, o.size)
		}
		from, to = min(from, at.Offset), max(to, at.Offset+int64(at.Length))
	}
	if to-from > maxOffsetIndex {
		return fmt.Errorf("offset indexes of %d bytes, at most %d are supported: %w", to-from, maxOffsetIndex, ErrUnsupported)
	}
	return nil
}

func readable(c compress.Compression) bool {
	_, err := compress.GetCodec(c)
	return err == nil
}
