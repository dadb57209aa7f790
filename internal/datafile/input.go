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
}

func (o *openedInput) Close() error { return errors.Join(o.parquet.Close(), o.raw.Close()) }

// openInput opens a file and checks its footer: that it is Parquet, that it has
// the rows that the manifest promised, and that its codecs can be read. It is one of
// so many that are read at once.
func openInput(ctx context.Context, in Input, atOnce int) (*openedInput, error) {
	raw, err := in.Open(ctx)
	if err != nil {
		return nil, err
	}
	o := &openedInput{raw: raw, size: raw.Size()}
	props := parquet.NewReaderProperties(memory.DefaultAllocator)
	props.BufferedStreamEnabled = true
	props.MaxCompressedPageSize, props.MaxUncompressedPageSize = maxPage, maxPage
	props.BufferSize = min(max(readAhead/int64(max(len(in.Fields), 1)*atOnce), minReadBuffer), maxReadBuffer)
	o.parquet, err = file.NewParquetReader(io.NewSectionReader(raw, 0, raw.Size()), file.WithReadProps(props))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read Parquet footer: %w", err), raw.Close())
	}
	if err := o.check(in); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (o *openedInput) check(in Input) error {
	md := o.parquet.MetaData()
	var rows int64
	for g := range o.parquet.NumRowGroups() {
		rg := md.RowGroup(g)
		if rg.NumRows() < 0 {
			return fmt.Errorf("row group %d has %d rows", g, rg.NumRows())
		}
		rows += rg.NumRows()
		for c := range rg.NumColumns() {
			chunk, err := rg.ColumnChunk(c)
			if err != nil {
				return fmt.Errorf("row group %d: %w", g, err)
			}
			if codec := chunk.Compression(); !readable(codec) {
				return fmt.Errorf("compression %s: %w", codec, ErrUnsupported)
			}
		}
	}
	if rows != in.Rows || md.NumRows != in.Rows {
		return fmt.Errorf("holds %d rows where its manifest has %d", rows, in.Rows)
	}
	return nil
}

func readable(c compress.Compression) bool {
	_, err := compress.GetCodec(c)
	return err == nil
}
