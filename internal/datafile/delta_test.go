package datafile

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/parquet-go/parquet-go/encoding/delta"

	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// TestAfterDeltas finds the end of sequences that another library encoded.
func TestAfterDeltas(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for n := range 700 {
		small, large := make([]int32, n), make([]int64, n)
		for i := range n {
			small[i] = int32(r.Uint32()) >> r.IntN(32)
			large[i] = int64(r.Uint64()) >> r.IntN(64)
		}
		for _, encode := range []func() ([]byte, error){
			func() ([]byte, error) { return (&delta.BinaryPackedEncoding{}).EncodeInt32(nil, small) },
			func() ([]byte, error) { return (&delta.BinaryPackedEncoding{}).EncodeInt64(nil, large) },
		} {
			data, err := encode()
			if err != nil {
				t.Fatal(err)
			}
			rest, err := afterDeltas(append(data, "rest"...))
			if err != nil || string(rest) != "rest" {
				t.Fatalf("%d values: %q, %v", n, rest, err)
			}
			for cut := range len(data) {
				if rest, err := afterDeltas(data[:cut:cut]); err == nil && len(rest) > 0 {
					t.Fatalf("%d values, %d of %d bytes: %x", n, cut, len(data), rest)
				}
			}
		}
	}
}

// deltaFile is a file of one column, in one page.
func deltaFile(t *testing.T, n schema.Node, encoding parquet.Encoding, write func(file.ColumnChunkWriter) error) []byte {
	t.Helper()
	root, err := schema.NewGroupNode("s", parquet.Repetitions.Required, schema.FieldList{n}, -1)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, root, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithDictionaryDefault(false), parquet.WithEncoding(encoding), parquet.WithStats(false))))
	rg, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	c, err := rg.NextColumn()
	if err == nil {
		err = write(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, closing := range []func() error{c.Close, rg.Close, w.Close} {
		if err := closing(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// memoryFile is a file in memory, and nowhere a place for outputs.
type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error { return nil }

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }

// allocated moves a file and returns how many bytes that took.
func allocated(t *testing.T, typ types.Type, data []byte, rows int) (int64, error) {
	t.Helper()
	fields := []types.Field{{ID: 0, Name: "x", Type: typ}}
	in := Input{Name: "in", Fields: fields, Rows: int64(rows), Open: func(context.Context) (File, error) {
		return memoryFile{bytes.NewReader(data)}, nil
	}}
	spec := Spec{
		Fields: fields, Compression: "none", TargetSize: 1 << 40, RowGroupSize: 8 << 20, PageSize: 1 << 20, Workers: 1, Stats: make([]StatsMode, 1),
		Create: func(context.Context) (string, io.WriteCloser, error) { return "out", nowhere{}, nil },
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Concat(t.Context(), []Input{in}, spec)
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc), err
}

// TestHugeDeltaBlock has a file of 200 bytes in whose only page one block stands
// for a quarter of a billion values.
func TestHugeDeltaBlock(t *testing.T) {
	const rows = 100
	typ := types.Type{Kind: types.Int, NotNull: true}
	data := deltaFile(t, schema.NewInt32Node("x", parquet.Repetitions.Required, 0), parquet.Encodings.DeltaBinaryPacked, func(c file.ColumnChunkWriter) error {
		vals := make([]int32, rows)
		for i := range vals {
			vals[i] = int32(i * i * 7919)
		}
		_, err := c.(*file.Int32ColumnChunkWriter).WriteBatch(vals, nil, nil)
		return err
	})
	if _, err := allocated(t, typ, data, rows); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte{0x80, 0x01, 0x04, rows})
	if at < 0 {
		t.Fatal("no header of the encoding in the file")
	}
	hostile := binary.AppendUvarint(nil, 1<<28)
	copy(data[at:], append(hostile, 1, rows, 0, 0, 0))
	n, err := allocated(t, typ, data, rows)
	if err == nil || !strings.Contains(err.Error(), "DELTA_BINARY_PACKED") || n > 64<<20 {
		t.Errorf("allocated %d bytes, error %v", n, err)
	}
}

// TestFrontCodedValues has a page in which every value repeats all of a long
// first one but its last bytes, so that decoding all at a time would take thousands
// of times as much as the file.
func TestFrontCodedValues(t *testing.T) {
	const rows, length = 2000, 100 << 10
	values := make([]parquet.ByteArray, rows)
	for i := range values {
		values[i] = binary.BigEndian.AppendUint16(bytes.Repeat([]byte("a"), length-2), uint16(i))
	}
	data := deltaFile(t, schema.NewByteArrayNode("x", parquet.Repetitions.Required, 0), parquet.Encodings.DeltaByteArray, func(c file.ColumnChunkWriter) error {
		_, err := c.(*file.ByteArrayColumnChunkWriter).WriteBatch(values, nil, nil)
		return err
	})
	if len(data) > 1<<20 {
		t.Fatalf("the file has %d bytes", len(data))
	}
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l := newLeafReader[parquet.ByteArray](0, 0, 0)
	if err := l.open(rowGroup{RowGroupReader: r.RowGroup(0)}); err != nil {
		t.Fatal(err)
	}
	next := 0
	for next < rows {
		if err := l.fill(); err != nil {
			t.Fatal(err)
		}
		if n := l.values; n*length > maxFrontCoded || n < 100 && next+n < rows {
			t.Fatalf("%d values at a time", n)
		}
		for _, v := range l.vals[:l.values] {
			if next == rows || !bytes.Equal(v, values[next]) {
				t.Fatalf("value %d is another", next)
			}
			next++
		}
		l.nextEntry, l.nextValue = l.entries, l.values
	}
	typ := types.Type{Kind: types.Varbinary, Length: types.MaxLength, NotNull: true}
	if _, err := allocated(t, typ, data, rows); err != nil {
		t.Error(err)
	}
}

// TestLongRow has one row of many elements: the work for it must not grow with
// their square.
func TestLongRow(t *testing.T) {
	const elements = 300_000
	text := types.Type{Kind: types.Varchar, Length: types.MaxLength}
	values := make(tabletest.List, elements)
	for i := range values {
		values[i] = types.Value{Bytes: []byte("ab")}
	}
	typ := types.Type{Kind: types.Array, Element: &text}
	data, err := tabletest.WriteFile([]types.Field{{Name: "x", Type: typ}}, [][]any{{values}}, tabletest.FileOptions{Dictionary: true})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := allocated(t, typ, data, 1); err != nil || n > elements*200 {
		t.Errorf("allocated %d bytes for %d elements, error %v", n, elements, err)
	}
}
