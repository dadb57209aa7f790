package compact_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"tablectl/compact"
	"tablectl/internal/binrow"
	"tablectl/internal/fileio"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// hostileMemory bounds what a run may allocate, in bytes in total, until it refuses a
// table of some kilobytes.
const hostileMemory = 48 << 20

// hostile is a small good table that is changed in one way.
type hostile struct {
	t        *testing.T
	location string
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	fields := tabletest.Columns(t, [2]string{"id", "INT"}, [2]string{"s", "STRING"}, [2]string{"p", "STRING"})
	b := tabletest.NewTable(t, fields, []string{"p"}, nil)
	var files []tabletest.Data
	for i := range 6 {
		part := text("a")
		files = append(files, tabletest.Data{Partition: []types.Value{part.(types.Value)}, Rows: [][]any{{integer(i), text("x"), part}, {integer(-i), nil, part}}})
	}
	b.Append(files...)
	// What a name that leaves the table could reach.
	for _, name := range []string{"data-outside.parquet", "manifest-outside"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(b.Location), name), []byte("keep out"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return &hostile{t, b.Location}
}

func (h *hostile) copy(t *testing.T) *hostile {
	t.Helper()
	to := filepath.Join(t.TempDir(), "wh.db")
	if err := os.CopyFS(to, os.DirFS(filepath.Dir(h.location))); err != nil {
		t.Fatal(err)
	}
	return &hostile{t, filepath.Join(to, filepath.Base(h.location))}
}

func (h *hostile) write(name string, data []byte) {
	h.t.Helper()
	p := filepath.Join(h.location, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o777), os.WriteFile(p, data, 0o666)); err != nil {
		h.t.Fatal(err)
	}
}

// edit changes the bytes of a file.
func (h *hostile) edit(name string, change func(data []byte) []byte) {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.location, name))
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(name, change(data))
}

// replace changes a text in a file.
func (h *hostile) replace(name, from, to string) {
	h.t.Helper()
	h.edit(name, func(data []byte) []byte {
		if !bytes.Contains(data, []byte(from)) {
			h.t.Fatalf("%s has no %q: %s", name, from, data)
		}
		return bytes.Replace(data, []byte(from), []byte(to), 1)
	})
}

const (
	latestSnapshot = "snapshot/snapshot-2"
	onlySchema     = "schema/schema-0"
	firstData      = "p=a/bucket-0/data-00000000-0000-4000-8000-000000000000-0.parquet"
)

// list is the name of the manifest list with the only manifest.
func (h *hostile) list() string {
	h.t.Helper()
	s, err := snapshot.Read(h.t.Context(), tabletest.Load(h.t, h.location, nil), 2)
	if err != nil {
		h.t.Fatal(err)
	}
	return "manifest/" + s.DeltaManifestList
}

func (h *hostile) manifest() string {
	h.t.Helper()
	rows, err := snapshot.ReadManifestList(h.t.Context(), tabletest.Load(h.t, h.location, nil), filepath.Base(h.list()))
	if err != nil || len(rows) != 1 {
		h.t.Fatalf("%d manifests, error %v", len(rows), err)
	}
	return "manifest/" + rows[0].FileName
}

func (h *hostile) entry(change func(e *snapshot.ManifestEntry)) {
	editAvro(h, h.manifest(), func(rows []snapshot.ManifestEntry) []snapshot.ManifestEntry {
		change(&rows[0])
		return rows
	})
}

// editAvro changes the rows of a manifest or a manifest list, under its own schema.
func editAvro[T any](h *hostile, name string, change func(rows []T) []T) {
	h.t.Helper()
	h.edit(name, func(data []byte) []byte {
		r, err := ocf.NewReader(bytes.NewReader(data))
		if err != nil {
			h.t.Fatal(err)
		}
		defer r.Close()
		var rows []T
		for {
			var row T
			if err = r.Decode(&row); err != nil {
				break
			}
			rows = append(rows, row)
		}
		if !errors.Is(err, io.EOF) {
			h.t.Fatal(err)
		}
		var out bytes.Buffer
		w, err := ocf.NewWriter(&out, avro.MustParse(string(r.Metadata()["avro.schema"])))
		for _, row := range change(rows) {
			err = errors.Join(err, w.Encode(&row))
		}
		if err = errors.Join(err, w.Close()); err != nil {
			h.t.Fatal(err)
		}
		return out.Bytes()
	})
}

// data replaces the first data file, and what its manifest says of it.
func (h *hostile) data(rows int64, data []byte) {
	h.write(firstData, data)
	h.entry(func(e *snapshot.ManifestEntry) { e.File.RowCount, e.File.FileSize = rows, int64(len(data)) })
}

// footer changes the footer of the first data file.
func (h *hostile) footer(change func(md *format.FileMetaData)) {
	h.t.Helper()
	h.edit(firstData, func(data []byte) []byte {
		end := len(data) - 8
		from := end - int(binary.LittleEndian.Uint32(data[end:]))
		var md format.FileMetaData
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), data[from:end], &md); err != nil {
			h.t.Fatal(err)
		}
		change(&md)
		footer, err := thrift.Marshal(new(thrift.CompactProtocol), md)
		if err != nil {
			h.t.Fatal(err)
		}
		return append(binary.LittleEndian.AppendUint32(append(data[:from:from], footer...), uint32(len(footer))), "PAR1"...)
	})
}

// bomb makes the first page of the first data file inflate to a quarter of a gigabyte,
// by way of the footer: the page lies behind the others, and claims to be small.
func (h *hostile) bomb() {
	h.t.Helper()
	page, err := parquet.Zstd.Encode(nil, make([]byte, 16<<20))
	if err != nil {
		h.t.Fatal(err)
	}
	page = slices.Repeat(page, 16)
	head, err := thrift.Marshal(new(thrift.CompactProtocol), format.PageHeader{
		Type: format.DataPage, UncompressedPageSize: 20, CompressedPageSize: int32(len(page)),
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: 2, Encoding: format.Plain, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	var at int64
	h.edit(firstData, func(data []byte) []byte {
		from := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
		at = int64(from)
		return slices.Concat(data[:from], head, page, data[from:])
	})
	h.footer(func(md *format.FileMetaData) {
		c := &md.RowGroups[0].Columns[0].MetaData
		c.DataPageOffset, c.DictionaryPageOffset, c.TotalCompressedSize = at, 0, int64(len(head)+len(page))
	})
}

// run compacts the table as it is.
func (h *hostile) run() error {
	tbl, err := table.Load(h.t.Context(), fileio.Local{}, h.location, nil)
	if err != nil {
		return err
	}
	_, err = compact.Table(h.t.Context(), tbl, compact.Options{Memory: 256 << 20})
	return err
}

// check runs over the changed table: it must fail with an error that has every one of
// the texts, without much memory, and leave everything as it was, beside the table too.
func (h *hostile) check(want ...string) {
	h.t.Helper()
	around := filepath.Dir(h.location)
	files := tabletest.TreeHash(h.t, around)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := h.run()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > hostileMemory {
		h.t.Errorf("%d bytes were allocated, at most %d are expected", used, hostileMemory)
	}
	if err == nil {
		h.t.Fatal("no error")
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			h.t.Errorf("the error does not have %q: %v", text, err)
		}
	}
	if len(err.Error()) > 2000 {
		h.t.Errorf("an error of %d bytes", len(err.Error()))
	}
	if left := tabletest.TreeHash(h.t, around); !maps.Equal(left, files) {
		h.t.Errorf("files changed: %d before, %d after", len(files), len(left))
	}
}

// hostileCase is a change, and what the error must say: the file, and what is wrong.
type hostileCase struct {
	name   string
	want   []string
	change func(h *hostile)
}

// TestHostileTables changes a good table in one way, many times.
func TestHostileTables(t *testing.T) {
	good := newHostile(t)
	if err := good.copy(t).run(); err != nil {
		t.Fatalf("the table as it should be: %v", err)
	}
	for _, c := range slices.Concat(hostileSnapshots, hostileManifests, hostileEntries, hostileSchemas, hostileData) {
		t.Run(c.name, func(t *testing.T) {
			h := good.copy(t)
			c.change(h)
			h.check(c.want...)
		})
	}
}

var hostileSnapshots = []hostileCase{
	{"manifest list above the table", []string{`"../manifest-outside" is not a file name`}, func(h *hostile) {
		h.replace(latestSnapshot, filepath.Base(h.list()), "../manifest-outside")
	}},
	{"manifest list anywhere", []string{`"/etc/passwd" is not a file name`}, func(h *hostile) { h.replace(latestSnapshot, filepath.Base(h.list()), "/etc/passwd") }},
	{"index manifest above the table", []string{`"../../x" is not a file name`}, func(h *hostile) {
		h.replace(latestSnapshot, `"commitUser"`, `"indexManifest" : "../../x", "commitUser"`)
	}},
	{"manifest list that is missing", []string{"manifest-gone", "no such file"}, func(h *hostile) { h.replace(latestSnapshot, filepath.Base(h.list()), "manifest-gone") }},
	{"id of another", []string{latestSnapshot, "holds the snapshot 3"}, func(h *hostile) { h.replace(latestSnapshot, `"id" : 2`, `"id" : 3`) }},
	{"id that is the last", []string{"snapshot-9223372036854775807", `"id" is 9223372036854775807`}, func(h *hostile) {
		h.edit(latestSnapshot, func(data []byte) []byte {
			if err := os.RemoveAll(filepath.Join(h.location, "snapshot", "LATEST")); err != nil {
				h.t.Fatal(err)
			}
			h.write("snapshot/snapshot-9223372036854775807", bytes.Replace(data, []byte(`"id" : 2`), []byte(`"id" : 9223372036854775807`), 1))
			return data
		})
	}},
	{"2^60 rows in all", []string{latestSnapshot, `"totalRecordCount" is 1152921504606846976`}, func(h *hostile) {
		h.replace(latestSnapshot, `"totalRecordCount" : 12`, `"totalRecordCount" : 1152921504606846976`)
	}},
	{"number that is none", []string{latestSnapshot, "1e300"}, func(h *hostile) { h.replace(latestSnapshot, `"totalRecordCount" : 12`, `"totalRecordCount" : 1e300`) }},
	{"schema that is missing", []string{"schema 99"}, func(h *hostile) { h.replace(latestSnapshot, `"schemaId" : 0`, `"schemaId" : 99`) }},
	{"half a snapshot", []string{latestSnapshot, "unexpected end of JSON"}, func(h *hostile) { h.edit(latestSnapshot, func(data []byte) []byte { return data[:len(data)/2] }) }},
	{"empty snapshot", []string{latestSnapshot, "unexpected end of JSON"}, func(h *hostile) { h.write(latestSnapshot, nil) }},
	{"snapshot that nests", []string{latestSnapshot, "exceeded max depth"}, func(h *hostile) { h.write(latestSnapshot, bytes.Repeat([]byte(`{"a":`), 100_000)) }},
	{"huge snapshot", []string{latestSnapshot, "too large"}, func(h *hostile) {
		if err := os.Truncate(filepath.Join(h.location, latestSnapshot), 17<<20); err != nil {
			h.t.Fatal(err)
		}
	}},
}

func (h *hostile) listed(change func(m *snapshot.ManifestFile)) {
	editAvro(h, h.list(), func(rows []snapshot.ManifestFile) []snapshot.ManifestFile {
		change(&rows[0])
		return rows
	})
}

var hostileManifests = []hostileCase{
	{"manifest above the table", []string{`"../../manifest-outside" is not a file name`}, func(h *hostile) {
		h.listed(func(m *snapshot.ManifestFile) { m.FileName = "../../manifest-outside" })
	}},
	{"manifest in a folder", []string{`"x/y" is not a file name`}, func(h *hostile) { h.listed(func(m *snapshot.ManifestFile) { m.FileName = "x/y" }) }},
	{"manifest that is missing", []string{"manifest-gone", "no such file"}, func(h *hostile) { h.listed(func(m *snapshot.ManifestFile) { m.FileName = "manifest-gone" }) }},
	{"manifest of -1 bytes", []string{"manifest-list-", "has -1 bytes"}, func(h *hostile) { h.listed(func(m *snapshot.ManifestFile) { m.FileSize = -1 }) }},
	{"manifest listed twice", []string{"manifest-", "is added twice"}, func(h *hostile) {
		editAvro(h, h.list(), func(rows []snapshot.ManifestFile) []snapshot.ManifestFile { return append(rows, rows[0]) })
	}},
	{"half a manifest list", []string{"manifest-list-", "EOF"}, func(h *hostile) { h.edit(h.list(), func(data []byte) []byte { return data[:len(data)-40] }) }},
	{"empty manifest list", []string{"manifest-list-", "EOF"}, func(h *hostile) { h.write(h.list(), nil) }},
	{"manifest list of text", []string{"manifest-list-", "invalid magic"}, func(h *hostile) { h.write(h.list(), []byte("hello, this is not Avro")) }},
	{"half a manifest", []string{"manifest-", "EOF"}, func(h *hostile) { h.edit(h.manifest(), func(data []byte) []byte { return data[:len(data)/2] }) }},
	{"manifest bomb", []string{"manifest-", "its rows take more than"}, func(h *hostile) {
		h.bigManifest()
	}},
}

// bigManifest makes a manifest whose rows are large and alike.
func (h *hostile) bigManifest() {
	h.edit(h.manifest(), func(data []byte) []byte {
		r, err := ocf.NewReader(bytes.NewReader(data))
		if err != nil {
			h.t.Fatal(err)
		}
		defer r.Close()
		var e snapshot.ManifestEntry
		if err := r.Decode(&e); err != nil {
			h.t.Fatal(err)
		}
		e.File.MinKey = make([]byte, 1<<20)
		codec, err := ocf.ZstdCodec(nil, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		var out bytes.Buffer
		w, err := ocf.NewWriter(&out, avro.MustParse(string(r.Metadata()["avro.schema"])), ocf.WithCodec(codec))
		for range 100 {
			err = errors.Join(err, w.Encode(&e))
		}
		if err = errors.Join(err, w.Close()); err != nil {
			h.t.Fatal(err)
		}
		return out.Bytes()
	})
}

// named gives the first data file another name.
func named(name string) func(h *hostile) {
	return func(h *hostile) { h.entry(func(e *snapshot.ManifestEntry) { e.File.FileName = name }) }
}

func entry(change func(e *snapshot.ManifestEntry)) func(h *hostile) {
	return func(h *hostile) { h.entry(change) }
}

var hostileEntries = []hostileCase{
	{"data file above the table", []string{`"../../../data-outside.parquet" is not a file name`}, named("../../../data-outside.parquet")},
	{"data file anywhere", []string{`"/etc/x.parquet" is not a file name`}, named("/etc/x.parquet")},
	{"data file of the machine", []string{"data file /etc/passwd is not in the format parquet"}, named("/etc/passwd")},
	{"data file in a folder", []string{`"x/y.parquet" is not a file name`}, named("x/y.parquet")},
	{"data file named ..", []string{"data file .. is not in the format parquet"}, named("..")},
	{"data file without a name", []string{"data file  is not in the format parquet"}, named("")},
	{"data file with a backslash", []string{`"..\\x.parquet" is not a file name`}, named(`..\x.parquet`)},
	{"data file with a NUL", []string{`"a\x00.parquet" is not a file name`}, named("a\x00.parquet")},
	{"data file that is missing", []string{"data-gone.parquet"}, named("data-gone.parquet")},
	{"data file outside", []string{"lies outside of the table, at file:/tmp/evil.parquet"}, entry(func(e *snapshot.ManifestEntry) {
		e.File.ExternalPath = new(string)
		*e.File.ExternalPath = "file:/tmp/evil.parquet"
	})},
	{"partition ..", []string{"p=..", "is missing"}, everyEntry(inPartitionOf(".."))},
	{"partition with separators", []string{"p=a%2F..%2F..%2F..%2Fx", "is missing"}, everyEntry(inPartitionOf("a/../../../x"))},
	{"partition with a NUL", []string{"p=%00", "is missing"}, everyEntry(inPartitionOf("\x00"))},
	{"partition cut off", []string{"manifest-", "malformed binary row"}, entry(func(e *snapshot.ManifestEntry) { e.Partition = e.Partition[:10] })},
	{"partition of 2^31 columns", []string{"manifest-", "malformed binary row"}, entry(func(e *snapshot.ManifestEntry) { e.Partition = []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0} })},
	{"bucket -7", []string{"manifest-", "is in the bucket -7"}, entry(func(e *snapshot.ManifestEntry) { e.Bucket = -7 })},
	{"bucket 2^31-1", []string{"bucket-2147483647", "is missing"}, everyEntry(func(e *snapshot.ManifestEntry) { e.Bucket = 1<<31 - 1 })},
	{"bucket 9 of 4", []string{"manifest-", "is in the bucket 9 of 4"}, entry(func(e *snapshot.ManifestEntry) { e.Bucket, e.TotalBuckets = 9, 4 })},
	{"2^60 rows", []string{"manifest-", "1152921504606846976 rows"}, entry(func(e *snapshot.ManifestEntry) { e.File.RowCount = 1 << 60 })},
	{"rows that overflow", []string{"manifest-", "more than 72057594037927936 rows"}, everyEntry(func(e *snapshot.ManifestEntry) { e.File.RowCount = 1 << 55 })},
	{"-1 rows", []string{"manifest-", "has -1 rows"}, entry(func(e *snapshot.ManifestEntry) { e.File.RowCount = -1 })},
	{"a row too many", []string{"data-00000000", "holds 2 rows where its manifest has 3"}, entry(func(e *snapshot.ManifestEntry) { e.File.RowCount = 3 })},
	{"2^62 bytes", []string{"manifest-", "4611686018427387904 bytes"}, entry(func(e *snapshot.ManifestEntry) { e.File.FileSize = 1 << 62 })},
	{"schema 77", []string{"data-00000000", "schema 77"}, entry(func(e *snapshot.ManifestEntry) { e.File.SchemaID = 77 })},
	{"schema -1", []string{"manifest-", "has the schema -1"}, entry(func(e *snapshot.ManifestEntry) { e.File.SchemaID = -1 })},
	{"level -1", []string{"manifest-", "is at level -1"}, entry(func(e *snapshot.ManifestEntry) { e.File.Level = -1 })},
	{"kind 5", []string{"manifest-", "has the kind 5"}, entry(func(e *snapshot.ManifestEntry) { e.Kind = 5 })},
	{"version 9", []string{"manifest-", "has the version 9"}, entry(func(e *snapshot.ManifestEntry) { e.Version = 9 })},
	{"deletes what is not there", []string{"data-00000000", "never added"}, entry(func(e *snapshot.ManifestEntry) { e.Kind = snapshot.Delete })},
}

func inPartitionOf(value string) func(e *snapshot.ManifestEntry) {
	return func(e *snapshot.ManifestEntry) {
		e.Partition = binrow.Encode([]types.Type{stringType()}, []types.Value{{Bytes: []byte(value)}})
	}
}

// everyEntry changes all entries, so that they stay together.
func everyEntry(change func(e *snapshot.ManifestEntry)) func(h *hostile) {
	return func(h *hostile) {
		editAvro(h, h.manifest(), func(rows []snapshot.ManifestEntry) []snapshot.ManifestEntry {
			for i := range rows {
				change(&rows[i])
			}
			return rows
		})
	}
}

func option(key, value string) func(h *hostile) {
	return func(h *hostile) { h.replace(onlySchema, `"options": {`, fmt.Sprintf(`"options": {%q: %q`, key, value)) }
}

func typed(text string) func(h *hostile) {
	return func(h *hostile) { h.replace(onlySchema, `"type": "INT"`, `"type": `+text) }
}

var hostileSchemas = []hostileCase{
	{"type as JSON, 10,000 deep", []string{onlySchema, "nest"}, typed(strings.Repeat(`{"type":"ARRAY","element":`, 9_000) + `"INT"` + strings.Repeat("}", 9_000))},
	{"type as text, 10,000 deep", []string{onlySchema, `unknown type "ARRAY<ARRAY<`}, typed(`"` + strings.Repeat("ARRAY<", 10_000) + "INT" + strings.Repeat(">", 10_000) + `"`)},
	{"schema that is another", []string{onlySchema, "5"}, func(h *hostile) {
		h.replace(onlySchema, `"id": 0,
  "options"`, `"id": 5,
  "options"`)
	}},
	{"half a schema", []string{onlySchema, "unexpected end of JSON"}, func(h *hostile) { h.edit(onlySchema, func(data []byte) []byte { return data[:len(data)/2] }) }},
	{"decimal of 2^31 digits", []string{onlySchema, "DECIMAL"}, typed(`"DECIMAL(2147483648, 2)"`)},
	{"data above the table", []string{"data-file.path-directory"}, option("data-file.path-directory", "../../elsewhere")},
	{"prefix above the table", []string{"data-file.prefix"}, option("data-file.prefix", "../")},
	{"size that overflows", []string{"target-file-size"}, option("target-file-size", "9223372036854775807 tb")},
	{"level that overflows", []string{"compaction.min.file-num"}, option("compaction.min.file-num", "99999999999999999999")},
}

var hostileData = []hostileCase{
	{"empty data file", []string{"data-00000000", "0 bytes are too few"}, func(h *hostile) { h.data(2, nil) }},
	{"half a data file", []string{"data-00000000", "it is cut off"}, func(h *hostile) { h.edit(firstData, func(data []byte) []byte { return data[:len(data)/2] }) }},
	{"data file of another format", []string{"data-00000000", "no Parquet file"}, func(h *hostile) { h.data(2, []byte("ORC, or something like it")) }},
	{"folder in place of a data file", []string{"data-00000000", "not a regular file"}, func(h *hostile) {
		if err := errors.Join(os.Remove(filepath.Join(h.location, firstData)), os.Mkdir(filepath.Join(h.location, firstData), 0o777)); err != nil {
			h.t.Fatal(err)
		}
	}},
	{"footer of 2^31 children", []string{"data-00000000", "claims 2147483647 children"}, func(h *hostile) {
		h.footer(func(md *format.FileMetaData) { md.Schema[0].NumChildren = thrift.New(int32(1<<31 - 1)) })
	}},
	{"footer of 2^40 rows", []string{"data-00000000", "has 1099511627776 rows; a file may have 2147483647"}, func(h *hostile) {
		h.footer(func(md *format.FileMetaData) { md.NumRows, md.RowGroups[0].NumRows = 1<<40, 1<<40 })
		h.entry(func(e *snapshot.ManifestEntry) { e.File.RowCount = 1 << 40 })
	}},
	{"footer 1,000 deep", []string{"data-00000000", "nests more than 210 deep"}, func(h *hostile) {
		h.footer(func(md *format.FileMetaData) {
			group := md.Schema[0]
			group.NumChildren = thrift.New(int32(1))
			md.Schema = append(slices.Repeat([]format.SchemaElement{group}, 1000), md.Schema[1])
		})
	}},
	{"column of another type", []string{"data-00000000", "id"}, func(h *hostile) {
		h.footer(func(md *format.FileMetaData) { md.Schema[1].Type = thrift.New(format.Double) })
	}},
	{"codec that is none", []string{"data-00000000", "compression"}, func(h *hostile) {
		h.footer(func(md *format.FileMetaData) { md.RowGroups[0].Columns[0].MetaData.Codec = 99 })
	}},
	{"pages beyond the end", []string{"data-00000000", "column id"}, func(h *hostile) {
		h.footer(func(md *format.FileMetaData) { md.RowGroups[0].Columns[0].MetaData.DataPageOffset = 1 << 50 })
	}},
	{"compression bomb", []string{"data-00000000", "column id", "longer than the page header tells"}, func(h *hostile) { h.bomb() }},
}
