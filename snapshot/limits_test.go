package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tablectl/table"
)

// limitMemory bounds what may be allocated, in bytes in total, until a file of
// metadata is refused for what it claims.
const limitMemory = 192 << 20

// checkLimit runs f, which must fail with an error that names a file and has the text.
func checkLimit(t *testing.T, file, want string, f func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > limitMemory {
		t.Errorf("%d bytes were allocated, at most %d are expected", used, limitMemory)
	}
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
		t.Errorf("the error does not name %s, or does not have %q: %v", file, want, err)
	}
}

func readAll(t *testing.T, tbl *table.Table, name string) func() error {
	return func() error { return ReadManifest(t.Context(), tbl, name, func(*ManifestEntry) error { return nil }) }
}

func goodEntry() ManifestEntry {
	return ManifestEntry{Version: 2, Partition: stringRow("a"), TotalBuckets: -1, File: newFile("a", 1)}
}

// TestManifestsThatLie changes one number of an entry.
func TestManifestsThatLie(t *testing.T) {
	store, tbl := openTable(t, "append-partitioned", 2)
	many := func(rows, size int64) []ManifestEntry {
		e := goodEntry()
		e.File.RowCount, e.File.FileSize = rows, size
		return slices.Repeat([]ManifestEntry{e}, 3)
	}
	one := func(change func(e *ManifestEntry)) []ManifestEntry {
		e := goodEntry()
		change(&e)
		return []ManifestEntry{goodEntry(), e}
	}
	for _, c := range []struct {
		want    string
		entries []ManifestEntry
	}{
		{`"a" has 1152921504606846976 rows`, one(func(e *ManifestEntry) { e.File.RowCount = 1 << 60 })},
		{`"a" has -1 rows`, one(func(e *ManifestEntry) { e.File.RowCount = -1 })},
		{`and 9223372036854775807 bytes`, one(func(e *ManifestEntry) { e.File.FileSize = math.MaxInt64 })},
		{"and -9223372036854775808 bytes", one(func(e *ManifestEntry) { e.File.FileSize = math.MinInt64 })},
		{"more than 72057594037927936 rows", many(1<<55, 1)},
		{"more than 1152921504606846976 bytes", many(1, 1<<59)},
		{"is in the bucket 5 of 5", one(func(e *ManifestEntry) { e.Bucket, e.TotalBuckets = 5, 5 })},
		{"is in the bucket 2147483647 of 4", one(func(e *ManifestEntry) { e.Bucket, e.TotalBuckets = math.MaxInt32, 4 })},
		{"is in the bucket 0 of -3", one(func(e *ManifestEntry) { e.TotalBuckets = -3 })},
		{"is at level -1", one(func(e *ManifestEntry) { e.File.Level = -1 })},
		{"has the schema -1", one(func(e *ManifestEntry) { e.File.SchemaID = -1 })},
		{"has the schema 9223372036854775807", one(func(e *ManifestEntry) { e.File.SchemaID = math.MaxInt64 })},
		{"begins with the row id 9223372036854775807", one(func(e *ManifestEntry) { e.File.FirstRowID = ptr(int64(math.MaxInt64)) })},
	} {
		data, err := encodeAvro(writeManifest, "zstd", c.entries)
		if err != nil {
			t.Fatal(err)
		}
		store.Set(location+"/manifest/m", string(data))
		checkLimit(t, "/manifest/m", c.want, readAll(t, tbl, "m"))
	}
}

// TestManifestListsThatLie changes one number of a row.
func TestManifestListsThatLie(t *testing.T) {
	store, tbl := openTable(t, "append-partitioned", 2)
	for want, change := range map[string]func(m *ManifestFile){
		`"m" has -1 bytes`:            func(m *ManifestFile) { m.FileSize = -1 },
		`"m" has 1099511627777 bytes`: func(m *ManifestFile) { m.FileSize = 1<<40 + 1 },
		"-5 additions":                func(m *ManifestFile) { m.NumAddedFiles = -5 },
		"-6 deletions":                func(m *ManifestFile) { m.NumDeletedFiles = -6 },
	} {
		m := ManifestFile{Version: 2, FileName: "m", PartitionStats: emptyStats()}
		change(&m)
		store.Set(location+"/manifest/l", string(mustEncode(t, []ManifestFile{m})))
		checkLimit(t, "/manifest/l", want, func() error {
			_, err := ReadManifestList(t.Context(), tbl, "l")
			return err
		})
	}
}

// TestLiveFilesThatLie has manifests that are fine one by one, but not together.
func TestLiveFilesThatLie(t *testing.T) {
	store, tbl := openTable(t, "append-partitioned", 2)
	s := latest(t, tbl)
	var lists []ManifestFile
	for i := range 3 {
		e := goodEntry()
		e.Partition, e.File.FileName, e.File.RowCount = stringRow(fmt.Sprint(i)), fmt.Sprintf("file-%d", i), 1<<55
		data, err := encodeAvro(writeManifest, "zstd", []ManifestEntry{e})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("m%d", i)
		store.Set(location+"/manifest/"+name, string(data))
		lists = append(lists, ManifestFile{Version: 2, FileName: name, PartitionStats: emptyStats()})
	}
	store.Set(location+"/manifest/"+s.BaseManifestList, string(mustEncode(t, lists)))
	store.Set(location+"/manifest/"+s.DeltaManifestList, string(mustEncode(t, nil)))
	checkLimit(t, fmt.Sprintf("snapshot %d", s.ID), `with data file "file-2" there are more than`, func() error {
		_, err := LiveFiles(t.Context(), tbl, s, table.Filter{})
		return err
	})
}

// TestManifestBomb has rows that are large and alike, so that a small file takes much
// memory, and as many rows as a large manifest has.
func TestManifestBomb(t *testing.T) {
	store, tbl := openTable(t, "append-partitioned", 2)
	large := goodEntry()
	large.File.MinKey = make([]byte, 500_000)
	data, err := encodeAvro(writeManifest, "zstd", slices.Repeat([]ManifestEntry{large}, 2000))
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 1<<20 {
		t.Fatalf("a bomb of %d bytes", len(data))
	}
	store.Set(location+"/manifest/bomb", string(data))
	checkLimit(t, "/manifest/bomb", "its rows take more than", readAll(t, tbl, "bomb"))

	var entries []ManifestEntry
	for i := range 100_000 {
		e := goodEntry()
		e.File = newFile(fmt.Sprintf("data-5f3a9c1e-0b1d-4a6e-9a55-2f0c5c1b7d10-%d.parquet", i), 1000)
		e.File.MinSequenceNumber, e.File.MaxSequenceNumber = int64(i)*1000, int64(i)*1000+999
		entries = append(entries, e)
	}
	if data, err = encodeAvro(writeManifest, "zstd", entries); err != nil {
		t.Fatal(err)
	}
	store.Set(location+"/manifest/many", string(data))
	if err := readAll(t, tbl, "many")(); err != nil {
		t.Errorf("%d files in %d bytes: %v", len(entries), len(data), err)
	}
}

// withBlock replaces what follows the header of an Avro file.
func withBlock(file []byte, count, size int64, data []byte) []byte {
	sync := file[len(file)-16:]
	header := file[:bytes.Index(file, sync)+16]
	file = binary.AppendVarint(bytes.Clone(header), count)
	return slices.Concat(binary.AppendVarint(file, size), data, sync)
}

// TestAvroThatLies has counts and lengths that are not borne out.
func TestAvroThatLies(t *testing.T) {
	store, tbl := openTable(t, "append-partitioned", 2)
	m := ManifestFile{Version: 2, FileName: "NAME", PartitionStats: SimpleStats{Min: []byte("MIN"), Max: []byte("MAX"), NullCounts: []*int64{nil}}}
	file, err := encodeAvro(writeManifestList, "null", []ManifestFile{m})
	if err != nil {
		t.Fatal(err)
	}
	sync := file[len(file)-16:]
	block := file[bytes.Index(file, sync)+16 : len(file)-16]
	_, n := binary.Varint(block)
	_, more := binary.Varint(block[n:])
	block = block[n+more:]
	changed := func(from, to string) []byte {
		if bytes.Count(block, []byte(from)) != 1 {
			t.Fatalf("%q is not once in %q", from, block)
		}
		data := bytes.Replace(block, []byte(from), []byte(to), 1)
		return withBlock(file, 1, int64(len(data)), data)
	}
	number := func(v int64) string { return string(binary.AppendVarint(nil, v)) }
	const before, array = "\x06MAX\x02", "\x06MAX\x02\x02\x00\x00"
	for name, data := range map[string][]byte{
		"2^60 elements":              changed(array, before+number(1<<60)+"\x00\x00"),
		"-2^60 elements":             changed(array, before+number(-1<<60)+number(1)+"\x00\x00"),
		"the least count":            changed(array, before+number(math.MinInt64)+number(1)+"\x00\x00"),
		"an array that goes on":      changed(array, before+strings.Repeat("\x02\x00", 1000)),
		"a text of 2^60 bytes":       changed("\x08NAME", number(1<<60)+"NAME"),
		"a text of -4 bytes":         changed("\x08NAME", number(-4)+"NAME"),
		"bytes of 2^31":              changed("\x06MIN", number(1<<31)+"MIN"),
		"a branch of no union":       changed(array, "\x06MAX\x08\x02\x00\x00"),
		"a block of 2^60 rows":       withBlock(file, 1<<60, int64(len(block)), block),
		"a block of -1 rows":         withBlock(file, -1, int64(len(block)), block),
		"a block of 2^60 bytes":      withBlock(file, 1, 1<<60, block),
		"a block of -1 bytes":        withBlock(file, 1, -1, block),
		"a row too few":              withBlock(file, 2, int64(len(block)), block),
		"a row too many":             withBlock(file, 1, int64(2*len(block)), slices.Repeat(block, 2)),
		"a block that ends too soon": withBlock(file, 1, int64(len(block)-1), block[:len(block)-1]),
	} {
		t.Run(name, func(t *testing.T) {
			store.Set(location+"/manifest/l", string(data))
			checkLimit(t, "/manifest/l", "", func() error {
				_, err := ReadManifestList(t.Context(), tbl, "l")
				return err
			})
		})
	}
}

// TestSnapshotsThatLie has numbers that cannot be added to.
func TestSnapshotsThatLie(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"id" : 7`, `"id" : 9223372036854775807`, `"id" is 9223372036854775807`},
		{`"id" : 7`, `"id" : 0`, `"id" is 0`},
		{`"id" : 7`, `"id" : -7`, `"id" is -7`},
		{`"schemaId" : 2`, `"schemaId" : -2`, `"schemaId" is -2`},
		{`"totalRecordCount" : 5`, `"totalRecordCount" : 1152921504606846976`, `"totalRecordCount" is 1152921504606846976`},
		{`"totalRecordCount" : 5`, `"totalRecordCount" : -9223372036854775808`, `"totalRecordCount" is -9223372036854775808`},
		{`"deltaRecordCount" : -6`, `"deltaRecordCount" : 1152921504606846976`, `"deltaRecordCount" is 1152921504606846976`},
		{`"nextRowId" : 9`, `"nextRowId" : 9223372036854775807`, `"nextRowId" is 9223372036854775807`},
	} {
		text := strings.Replace(full, c.from, c.to, 1)
		if text == full {
			t.Fatalf("%s is not there", c.from)
		}
		if _, err := ParseSnapshot([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.to, err)
		}
	}
}
