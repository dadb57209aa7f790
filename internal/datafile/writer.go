package datafile

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// writer writes the rows of all inputs into files that roll at the target size.
type writer struct {
	spec    Spec
	target  *target
	sinks   []sink
	outputs []Output
	keys    []int // columns of which the first and the last value of a file are kept

	inputRead int64   // bytes of inputs that are done, the part of the open one included
	ratio     float64 // of compressed to plain bytes, in the row group that is read

	// The file that is being written, if any.
	file    *file.Writer
	group   file.BufferedRowGroupWriter
	columns []file.ColumnChunkWriter
	out     *countingWriter
	rows    int64
	perRow  int64 // bytes, estimated, for the size of the next batch
}

// countingWriter counts what reaches the file.
type countingWriter struct {
	w io.WriteCloser
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// newWriter makes a writer and its sinks.
func newWriter(spec Spec) (*writer, error) {
	target, err := newTarget(spec.Fields)
	if err != nil {
		return nil, err
	}
	w := &writer{spec: spec, target: target}
	for i, l := range target.leaves {
		column := target.schema.Column(i)
		kind, err := physicalOf(column)
		if err != nil {
			return nil, err
		}
		s, err := kind.sink(l, column, spec.PageSize)
		if err != nil {
			return nil, err
		}
		w.sinks = append(w.sinks, s)
	}
	return w, nil
}

// movers makes the movers of an input.
func (w *writer) movers(in Input, r *file.Reader) ([]mover, error) {
	plans, err := align(w.target, in, r.MetaData().Schema)
	if err != nil {
		return nil, err
	}
	movers := make([]mover, len(plans))
	for i, p := range plans {
		if movers[i], err = w.target.mover(p, r.MetaData().Schema, w.sinks[i]); err != nil {
			return nil, err
		}
	}
	return movers, nil
}

// begin makes sure that there is a file and a row group to write to.
func (w *writer) begin(ctx context.Context, dictionary func(leaf int) bool) error {
	if w.file == nil {
		props, err := w.properties(dictionary)
		if err != nil {
			return err
		}
		name, out, err := w.spec.Create(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", errOutput, err)
		}
		w.out = &countingWriter{w: out}
		w.outputs = append(w.outputs, Output{Name: name})
		if w.file, err = file.NewParquetWriterWithError(w.out, w.target.root, file.WithWriterProps(props)); err != nil {
			return fmt.Errorf("%w: %w", errOutput, err)
		}
		w.beginSinks()
	}
	if w.group != nil {
		return nil
	}
	group, err := w.file.AppendBufferedRowGroupChecked()
	if err != nil {
		return fmt.Errorf("%w: %w", errOutput, err)
	}
	w.group = group
	w.columns = w.columns[:0]
	for i, s := range w.sinks {
		c, err := w.group.Column(i)
		if err != nil {
			return fmt.Errorf("%w: %w", errOutput, err)
		}
		if err := s.attach(c); err != nil {
			return err
		}
		w.columns = append(w.columns, c)
	}
	return nil
}

func (w *writer) beginSinks() {
	var indexes []IndexBuilder
	if w.spec.NewIndex != nil {
		indexes = w.spec.NewIndex()
	}
	w.outputs[len(w.outputs)-1].Indexes = indexes
	for i, l := range w.target.leaves {
		var mine []IndexBuilder
		for _, ix := range indexes {
			if ix.Column() == l.column {
				mine = append(mine, ix)
			}
		}
		w.sinks[i].begin(mine, slices.Contains(w.keys, l.column))
	}
	w.rows = 0
}

// codecs are the values of file.compression that every reader knows; Java's core
// reads no brotli.
var codecs = map[string]compress.Compression{
	"zstd": compress.Codecs.Zstd, "snappy": compress.Codecs.Snappy, "gzip": compress.Codecs.Gzip,
	"lz4": compress.Codecs.Lz4, "lz4_raw": compress.Codecs.Lz4Raw,
	"none": compress.Codecs.Uncompressed, "uncompressed": compress.Codecs.Uncompressed,
}

// CheckCompression refuses a compression that cannot be written.
func CheckCompression(name string) error {
	if _, ok := codecs[name]; !ok {
		return fmt.Errorf("compression %q: %w", name, ErrUnsupported)
	}
	return nil
}

func (w *writer) properties(dictionary func(leaf int) bool) (*parquet.WriterProperties, error) {
	codec, ok := codecs[w.spec.Compression]
	if !ok {
		return nil, CheckCompression(w.spec.Compression)
	}
	props := []parquet.WriterProperty{
		parquet.WithRootName(rootName), parquet.WithRootRepetition(parquet.Repetitions.Required),
		parquet.WithCreatedBy(w.spec.CreatedBy), parquet.WithDataPageVersion(parquet.DataPageV1),
		parquet.WithCompression(codec), parquet.WithDataPageSize(w.spec.PageSize), parquet.WithDictionaryPageSizeLimit(w.spec.PageSize),
		parquet.WithPageIndexEnabled(true), parquet.WithStats(true), parquet.WithMaxRowGroupLength(1 << 40),
	}
	if codec == compress.Codecs.Zstd {
		props = append(props, parquet.WithCompressionLevel(w.spec.ZstdLevel))
	}
	for i := range w.sinks {
		path := w.target.schema.Column(i).ColumnPath()
		props = append(props, parquet.WithDictionaryPath(path, w.spec.Dictionary && dictionary(i)))
		switch w.target.schema.Column(i).PhysicalType() {
		case parquet.Types.Float, parquet.Types.Double:
			// The Parquet library leaves NaN out of bounds. To the reference, which skips
			// row groups and pages by them, it is the greatest value and equals itself.
			props = append(props, parquet.WithStatsPath(path, false))
		}
	}
	return parquet.NewWriterProperties(props...), nil
}

// buffered is about how many bytes the open row group will have in the file so
// far. The pages that are being filled are not compressed yet; they will shrink
// about as the input did. For booleans they do not count: they are small, and the
// Parquet library panics when it is asked for their size right after a page.
func (w *writer) buffered() int64 {
	var done, plain int64
	for _, c := range w.columns {
		done += c.TotalBytesWritten()
		if c.Type() == parquet.Types.Boolean {
			continue
		}
		if v, ok := c.(interface{ EstimatedBufferedValueBytes() int64 }); ok {
			plain += v.EstimatedBufferedValueBytes()
		}
	}
	return done + int64(float64(plain)*w.ratio)
}

func (w *writer) size() int64 {
	if w.file == nil {
		return 0
	}
	if w.group == nil {
		return w.out.n
	}
	return w.out.n + w.buffered()
}

// batch is how many rows to move before looking at the size again. The size
// counts at every thousandth row of a file, as in the reference, so a batch ends
// at one of those, or before it when rows are long. There are at most so many bytes
// of the input in it.
func (w *writer) batch(left, inputRow, bytes int64) int64 {
	steps := int64(1)
	if w.perRow > 0 {
		room := min(w.spec.TargetSize-w.size(), w.spec.RowGroupSize-w.buffered())
		steps = max(1, room/w.perRow/rollStep/2)
	}
	toStep := min(steps, left/rollStep+2)*rollStep - w.rows%rollStep
	return min(left, toStep, max(1, bytes/max(inputRow, 1)))
}

// moved counts rows that every leaf has moved and closes what is full.
func (w *writer) moved(n int64) error {
	w.rows += n
	size := w.size()
	w.perRow = max(size/w.rows, 1)
	if w.rows%rollStep == 0 && size >= w.spec.TargetSize && !w.tailIsSmall(size) {
		return w.finish()
	}
	if w.buffered() >= w.spec.RowGroupSize {
		return w.closeGroup()
	}
	return nil
}

// tailIsSmall foresees whether what is left of the inputs would make a file too
// small to stand alone, if it shrinks or grows as what was written so far.
func (w *writer) tailIsSmall(size int64) bool {
	if w.spec.AbsorbTail <= 0 {
		return false
	}
	for _, o := range w.outputs[:len(w.outputs)-1] {
		size += o.Size
	}
	left := float64(w.spec.InputBytes-w.inputRead) * float64(size) / float64(max(w.inputRead, 1))
	return left < float64(w.spec.AbsorbTail)
}

func (w *writer) closeGroup() error {
	if w.group == nil {
		return nil
	}
	err := w.group.Close()
	w.group = nil
	w.columns = w.columns[:0]
	if err != nil {
		return fmt.Errorf("%w: %w", errOutput, err)
	}
	return nil
}

// finish completes the open file, if there is one.
func (w *writer) finish() error {
	if w.file == nil {
		return nil
	}
	if err := w.closeGroup(); err != nil {
		return err
	}
	err := w.file.Close()
	out := w.out
	w.file, w.out = nil, nil
	if closeErr := out.w.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errOutput, err)
	}
	o := &w.outputs[len(w.outputs)-1]
	o.Size, o.Rows = out.n, w.rows
	o.Stats = make([]ColumnStats, len(w.target.fields))
	for column := range w.target.fields {
		s, err := w.sinks[w.target.leafOf(column)].stats(w.spec.Stats[column])
		if err != nil {
			return err
		}
		o.Stats[column] = s
	}
	for _, k := range w.keys {
		low, high, err := w.sinks[w.target.leafOf(k)].ends()
		if err != nil {
			return err
		}
		o.MinKey, o.MaxKey = append(o.MinKey, low), append(o.MaxKey, high)
	}
	return nil
}

// abandon closes the open file without completing it; it will be removed.
func (w *writer) abandon() {
	if w.out != nil {
		_ = w.out.w.Close()
	}
	w.file, w.out = nil, nil
}
