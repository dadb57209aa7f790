package datafile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tablectl/internal/datafile"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// refusalMemory bounds what may be allocated, in bytes in total, until a file is
// refused for what it claims.
const refusalMemory = 48 << 20

// footerOf splits a file before its footer.
func footerOf(data []byte) (body, footer []byte) {
	end := len(data) - 8
	from := end - int(binary.LittleEndian.Uint32(data[end:]))
	return data[:from], data[from:end]
}

func withFooter(body, footer []byte) []byte {
	file := slices.Concat(body, footer)
	return append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), "PAR1"...)
}

// changedFooter is a file whose footer was changed.
func changedFooter(t testing.TB, data []byte, change func(md *format.FileMetaData)) []byte {
	t.Helper()
	body, footer := footerOf(data)
	var md format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), footer, &md); err != nil {
		t.Fatal(err)
	}
	change(&md)
	changed, err := thrift.Marshal(new(thrift.CompactProtocol), md)
	if err != nil {
		t.Fatal(err)
	}
	return withFooter(body, changed)
}

// untrustedFile is a small good file.
func untrustedFile(t testing.TB, o tabletest.FileOptions) ([]types.Field, []byte) {
	t.Helper()
	fields := tabletest.Columns(t, [2]string{"n", "INT"}, [2]string{"s", "STRING"})
	data, err := tabletest.WriteFile(fields, [][]any{
		{types.Value{Int: 1}, types.Value{Bytes: []byte("one")}}, {types.Value{Int: 2}, types.Value{Bytes: []byte("two")}},
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	return fields, data
}

// checkRefused rewrites a file, which must fail with an error that names it and has
// the text, without much memory.
func checkRefused(t *testing.T, in datafile.Input, target []types.Field, memory uint64, want string) {
	t.Helper()
	spec := discarding(plainSpec(target))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := datafile.Concat(t.Context(), []datafile.Input{in}, spec)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > memory {
		t.Errorf("%d bytes were allocated, at most %d are expected", used, memory)
	}
	switch {
	case err == nil:
		t.Error("no error")
	case !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), in.Name):
		t.Errorf("the error does not name the file, or does not have %q: %v", want, err)
	}
}

// TestFootersThatLie changes the footer of a small file, each time in one way.
func TestFootersThatLie(t *testing.T) {
	group := func(name string, children int32) format.SchemaElement {
		return format.SchemaElement{Name: name, NumChildren: thrift.New(children)}
	}
	required, integer := format.Required, format.Int32
	leaf := func(name string) format.SchemaElement {
		return format.SchemaElement{Name: name, Type: thrift.New(integer), RepetitionType: thrift.New(required)}
	}
	for _, c := range []struct {
		name   string
		want   string
		change func(md *format.FileMetaData)
	}{
		{"2^31-1 children", "claims 2147483647 children where 2 elements follow", func(md *format.FileMetaData) { md.Schema[0].NumChildren = thrift.New(int32(1<<31 - 1)) }},
		{"a child too many", "claims 3 children where 2 elements follow", func(md *format.FileMetaData) { md.Schema[0].NumChildren = thrift.New(int32(3)) }},
		{"children of the last", "claims 1 children where 0 elements follow", func(md *format.FileMetaData) { md.Schema[2].NumChildren = thrift.New(int32(1)) }},
		{"fewer than no children", "claims -5 children", func(md *format.FileMetaData) { md.Schema[0].NumChildren = thrift.New(int32(-5)) }},
		{"a child too few", "the root only covers 2", func(md *format.FileMetaData) { md.Schema[0].NumChildren = thrift.New(int32(1)) }},
		{"groups that claim the same", "not all that its groups claim", func(md *format.FileMetaData) {
			md.Schema = []format.SchemaElement{group("root", 2), group("a", 1), leaf("b")}
		}},
		{"a schema that is deep", "its schema nests more than 210 deep", func(md *format.FileMetaData) {
			md.Schema = append(slices.Repeat([]format.SchemaElement{group("g", 1)}, 211), leaf("n"))
		}},
		{"a schema that is wide", "its schema has 1048577 elements", func(md *format.FileMetaData) {
			md.Schema = append([]format.SchemaElement{group("root", 1<<20)}, slices.Repeat([]format.SchemaElement{leaf("")}, 1<<20)...)
		}},
		{"names that are long together", "the names of its columns have more than", func(md *format.FileMetaData) {
			md.Schema = append([]format.SchemaElement{group("root", 1), group(strings.Repeat("n", 1<<20), 65)}, slices.Repeat([]format.SchemaElement{leaf("n")}, 65)...)
		}},
		{"a writer with a long name", "the name of the writer has 1000000 bytes", func(md *format.FileMetaData) { md.CreatedBy = strings.Repeat("1.", 500_000) }},
		{"fewer than no rows", "row group 0 has -1 rows", func(md *format.FileMetaData) { md.RowGroups[0].NumRows = -1 }},
		{"rows that overflow", "row group 1 has 9223372036854775807 rows", func(md *format.FileMetaData) {
			more := md.RowGroups[0]
			more.NumRows = 1<<63 - 1
			md.RowGroups = append(md.RowGroups, more)
		}},
		{"an offset index beyond the end", "is not within the file", func(md *format.FileMetaData) { md.RowGroups[0].Columns[1].OffsetIndexOffset = 1 << 40 }},
		{"a long offset index", "is not within the file", func(md *format.FileMetaData) { md.RowGroups[0].Columns[1].OffsetIndexLength = 1<<31 - 1 }},
		{"an offset index before the beginning", "is not within the file", func(md *format.FileMetaData) { md.RowGroups[0].Columns[1].OffsetIndexOffset = -1 << 40 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			fields, data := untrustedFile(t, tabletest.FileOptions{})
			changed := changedFooter(t, data, c.change)
			checkRefused(t, input("liar.parquet", fields, changed, 2), fields, refusalMemory, c.want)
		})
	}
}

// TestRowsWithoutEnd has a file that claims very many rows where no column of it is
// read: nothing in it would ever run out.
func TestRowsWithoutEnd(t *testing.T) {
	fields, data := untrustedFile(t, tabletest.FileOptions{})
	for _, rows := range []int64{1 << 31, 1 << 60} {
		changed := changedFooter(t, data, func(md *format.FileMetaData) { md.NumRows, md.RowGroups[0].NumRows = rows, rows })
		in := input("endless.parquet", fields, changed, 0)
		in.Rows = rows
		target := tabletest.Columns(t, [2]string{"n", "INT"})
		target[0].ID, target[0].Name = 7, "added"
		checkRefused(t, in, target, refusalMemory, "a file may have 2147483647")
	}
}

// TestFootersThatAreNone has footers that are not what a writer makes, byte by byte.
func TestFootersThatAreNone(t *testing.T) {
	fields, data := untrustedFile(t, tabletest.FileOptions{})
	body, good := footerOf(data)
	if good[2] != 0x19 || good[3] != 0x3c {
		t.Fatalf("the footer does not begin with a version and a list of three structs: %x", good[:4])
	}
	many := append([]byte{0x59, 0xfc}, binary.AppendUvarint(nil, 1<<21+1)...)
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"an empty file", "0 bytes are too few", nil},
		{"only the magic", "4 bytes are too few", []byte("PAR1")},
		{"cut off", "it is cut off, or no Parquet file", data[:len(data)-20]},
		{"another format", "it is cut off, or no Parquet file", []byte("ORC, or something else")},
		{"encrypted", "encryption: not supported", append(slices.Clone(data[:len(data)-4]), "PARE"...)},
		{"longer than the file", "claims 2147483647 bytes", append(slices.Clone(data[:len(data)-8]), "\xff\xff\xff\x7fPAR1"...)},
		{"empty", "it ends too early", withFooter(body, nil)},
		{"only its beginning", "damaged: it", withFooter(body, good[:len(good)/2])},
		{"a schema of integers", "the schema has elements of the type 5", withFooter(body, slices.Concat(good[:3], []byte{0x35}, good[4:]))},
		{"row groups of integers", "a list has elements of the type 5 where 12 is expected", withFooter(body, []byte{0x49, 0x25, 2, 2, 0})},
		{"2^31-1 schema elements", "claims 2147483647 elements of a list where", withFooter(body, []byte{0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0})},
		{"2^31-1 row groups", "claims 2147483647 elements of a list where", withFooter(body, []byte{0x49, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0})},
		{"a text of -1 bytes", "claims -1 bytes of a text where", withFooter(body, []byte{0x68, 0xff, 0xff, 0xff, 0xff, 0x0f, 0})},
		{"a map without end", "claims 536870911 entries of a map where", withFooter(body, []byte{0xcb, 0xff, 0xff, 0xff, 0xff, 0x01, 0x88, 0})},
		{"a number without end", "a number of more than 10 bytes", withFooter(body, append([]byte{0x15}, bytes.Repeat([]byte{0xff}, 20)...))},
		{"lists in lists", "it nests more than 32 deep", withFooter(body, append([]byte{0xc9}, bytes.Repeat([]byte{0x19}, 100_000)...))},
		{"structs in structs", "it nests more than 32 deep", withFooter(body, append([]byte{0xcc}, bytes.Repeat([]byte{0x1c}, 100_000)...))},
		{"very many parts", "has more than 2097152 parts", withFooter(body, append(many, make([]byte, 1<<21+2)...))},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkRefused(t, input("none.parquet", fields, c.data, 2), fields, refusalMemory, c.want)
		})
	}
}

// zeros is a file of very many zeros with an end.
type zeros struct {
	size int64
	end  []byte
}

func (z zeros) Size() int64  { return z.size }
func (z zeros) Close() error { return nil }

func (z zeros) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if at := z.size - int64(len(z.end)) - off; at < int64(len(p)) {
		copy(p[max(at, 0):], z.end[max(-at, 0):])
	}
	return len(p), nil
}

func TestFooterTooLong(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"n", "INT"})
	end := append(binary.LittleEndian.AppendUint32(nil, 64<<20+1), "PAR1"...)
	in := datafile.Input{Name: "long.parquet", Fields: fields, Open: func(context.Context) (datafile.File, error) { return zeros{1 << 40, end}, nil }}
	checkRefused(t, in, fields, refusalMemory, "has 67108865 bytes, at most 67108864 are supported")
}
