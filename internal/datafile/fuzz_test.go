package datafile_test

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tablectl/internal/datafile"
	"tablectl/internal/merge"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// FuzzFooter changes the footers of good files. Their length is made to fit, since a
// fuzzer hardly ever finds it.
func FuzzFooter(f *testing.F) {
	fields := damageFields(f)
	var bodies [][]byte
	rows := 0
	for i := range 4 {
		var data []byte
		data, rows = damageFile(f, fields, i)
		body, footer := footerOf(data)
		bodies = append(bodies, body)
		f.Add(footer, byte(i))
	}
	f.Fuzz(func(t *testing.T, footer []byte, body byte) {
		if err := runDamaged(fields, fields, withFooter(bodies[int(body)%len(bodies)], footer), rows, 1); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzPages changes the pages of a column, headers included. Its footer is made to fit.
func FuzzPages(f *testing.F) {
	fields := damageFields(f)
	var files [][]byte
	rows := 0
	for i := range 12 {
		var data []byte
		data, rows = damageFile(f, fields, i)
		files = append(files, data)
		for _, c := range []int{i, i + 4, i + 7} {
			f.Add(chunkOf(f, data, c), byte(i), byte(c))
		}
	}
	f.Fuzz(func(t *testing.T, pages []byte, file, column byte) {
		data := withChunk(t, files[int(file)%len(files)], int(column), pages)
		if err := runDamaged(fields, fields, data, rows, 1); err != nil {
			t.Fatal(err)
		}
	})
}

func footerParsed(t testing.TB, data []byte) format.FileMetaData {
	t.Helper()
	_, footer := footerOf(data)
	var md format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), footer, &md); err != nil {
		t.Fatal(err)
	}
	return md
}

// chunkAt finds the pages of a column in the first row group.
func chunkAt(md format.FileMetaData, column int) (chunk *format.ColumnMetaData, from int64) {
	columns := md.RowGroups[0].Columns
	chunk = &columns[column%len(columns)].MetaData
	if from = chunk.DataPageOffset; chunk.DictionaryPageOffset > 0 {
		from = min(from, chunk.DictionaryPageOffset)
	}
	return chunk, from
}

func chunkOf(t testing.TB, data []byte, column int) []byte {
	chunk, from := chunkAt(footerParsed(t, data), column)
	return slices.Clone(data[from : from+chunk.TotalCompressedSize])
}

// withChunk puts the pages of a column behind all others.
func withChunk(t testing.TB, data []byte, column int, pages []byte) []byte {
	body, _ := footerOf(data)
	changed := changedFooter(t, data, func(md *format.FileMetaData) {
		chunk, from := chunkAt(*md, column)
		chunk.DataPageOffset += int64(len(body)) - from
		if chunk.DictionaryPageOffset > 0 {
			chunk.DictionaryPageOffset += int64(len(body)) - from
		}
		chunk.TotalCompressedSize = int64(len(pages))
	})
	_, footer := footerOf(changed)
	return withFooter(slices.Concat(body, pages), footer)
}

// FuzzPage has one page of numbers or texts, whose header is fine, in every encoding.
func FuzzPage(f *testing.F) {
	encodings := []format.Encoding{
		format.Plain, format.RLE, format.BitPacked, format.DeltaBinaryPacked, format.DeltaLengthByteArray, format.DeltaByteArray, format.RLEDictionary, format.ByteStreamSplit,
	}
	plain := make([]byte, 40)
	binary.LittleEndian.PutUint32(plain, 6)
	for i := range encodings {
		f.Add(plain, byte(i), false, uint16(10))
		f.Add([]byte{128, 1, 4, 10, 2, 2, 1, 0, 0, 0, 0xff, 0, 1}, byte(i), true, uint16(10))
	}
	fields := tabletest.Columns(f, [2]string{"n", "INT NOT NULL"})
	f.Fuzz(func(t *testing.T, page []byte, encoding byte, text bool, values uint16) {
		if len(page) > 1<<20 {
			return
		}
		target := fields
		typ := format.Int32
		if text {
			target = tabletest.Columns(t, [2]string{"n", "STRING NOT NULL"})
			typ = format.ByteArray
		}
		header := format.PageHeader{
			Type: format.DataPage, UncompressedPageSize: int32(len(page)), CompressedPageSize: int32(len(page)),
			DataPageHeader: thrift.New(format.DataPageHeader{NumValues: int32(values), Encoding: encodings[int(encoding)%len(encodings)]}),
		}
		data := changedFooter(t, onePage(t, 0, header, page, int64(values)), func(md *format.FileMetaData) {
			md.Schema[1].Type, md.RowGroups[0].Columns[0].MetaData.Type = thrift.New(typ), typ
		})
		if err := runDamaged(target, target, data, int(values), 1); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzMerge merges a good run with one that is made of valid ones.
func FuzzMerge(f *testing.F) {
	fields := mergeFields(f)
	engine, err := merge.NewEngine(merge.Definition{Fields: fields[kAt:], PrimaryKeys: []string{"k", "k2"}})
	if err != nil {
		f.Fatal(err)
	}
	const rows = 30
	var files [][]byte
	for i := range 4 {
		var all [][]any
		for k := range rows {
			all = append(all, []any{
				types.Value{Int: int64(k)},
				types.Value{},
				types.Value{Int: int64(k)},
				types.Value{Bytes: []byte("a")},
				nil, nil,
				types.Value{Bytes: []byte("x")},
				types.Value{Int: int64(i)},
				tabletest.List{types.Value{Int: 1}, nil},
			})
		}
		data, err := tabletest.WriteFile(fields, all, tabletest.FileOptions{Codec: "none", RowGroupRows: 20, PageSize: 128, Dictionary: i == 1, Delta: i == 2, PageVersion: 1 + i/2})
		if err != nil {
			f.Fatal(err)
		}
		files = append(files, data)
		for c := range fields {
			f.Add(chunkOf(f, data, c), byte(i), byte(c), i%2 == 0)
		}
		_, footer := footerOf(data)
		f.Add(footer, byte(i), byte(0xff), i%2 == 0)
	}
	m := datafile.MergeSpec{Keys: []int{kAt, k2At}, Sequence: seqAt, Kind: kindAt, Engine: engine, Values: kAt}
	f.Fuzz(func(t *testing.T, part []byte, file, column byte, parked bool) {
		data := files[int(file)%len(files)]
		if body, _ := footerOf(data); column == 0xff {
			data = withFooter(body, part)
		} else {
			data = withChunk(t, data, int(column), part)
		}
		spec := plainSpec(fields)
		if parked {
			spec.ReadMemory = 1
		}
		if err := runFiles(spec, []datafile.Input{input(damagedName, fields, data, rows)}, func(ctx context.Context, in []datafile.Input, spec datafile.Spec) ([]datafile.Output, error) {
			return datafile.Merge(ctx, [][]datafile.Input{in, {input("good", fields, files[0], rows)}}, m, spec)
		}); err != nil {
			t.Fatal(err)
		}
	})
}
