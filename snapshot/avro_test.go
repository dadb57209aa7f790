package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"tablectl/table"
)

// generic decodes an Avro file with nothing but its own header.
func generic(t testing.TB, data []byte) (rows []any, header map[string]string) {
	t.Helper()
	r, err := ocf.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	header = map[string]string{}
	for k, v := range r.Metadata() {
		header[k] = string(v)
	}
	for {
		var row any
		err := r.Decode(&row)
		if errors.Is(err, io.EOF) {
			return rows, header
		}
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
}

func normalized(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// decodeAll reads a whole file with our schema.
func decodeAll[T any](t testing.TB, data []byte, ours string) []T {
	t.Helper()
	var rows []T
	if err := decodeAvro(t.Context(), bytes.NewReader(data), ours, func(row *T) error {
		rows = append(rows, *row)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

// checkRewrite writes the rows of a file again and compares what is in both. A
// file of Java 1.4.2 has the same header, too.
func checkRewrite[T any](t *testing.T, path, by string, data []byte, ours string, encode func([]T) ([]byte, error)) {
	rows := decodeAll[T](t, data, ours)
	written, err := encode(rows)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if again := decodeAll[T](t, written, ours); !reflect.DeepEqual(again, rows) {
		t.Errorf("%s: wrote %+v, read %+v", path, rows, again)
	}
	theirs, theirHeader := generic(t, data)
	mine, header := generic(t, written)
	if header["avro.codec"] != "zstandard" || len(rows) != len(theirs) {
		t.Errorf("%s: %d of %d rows, codec %q", path, len(rows), len(theirs), header["avro.codec"])
	}
	if by != "1.4.2" {
		return
	}
	if !reflect.DeepEqual(normalized(t, header["avro.schema"]), normalized(t, theirHeader["avro.schema"])) {
		t.Errorf("%s: wrote the schema\n%s\nwant\n%s", path, header["avro.schema"], theirHeader["avro.schema"])
	}
	if !reflect.DeepEqual(mine, theirs) {
		t.Errorf("%s: wrote\n%v\nwant\n%v", path, mine, theirs)
	}
}

func writer(table string) string {
	switch {
	case !strings.HasPrefix(table, "written-by-"):
		return "1.4.2"
	default:
		return strings.Split(strings.TrimPrefix(table, "written-by-"), "-")[0] // java, flink, pypaimon, rust
	}
}

func TestManifestFiles(t *testing.T) {
	seen := map[string]int{}
	metadata(t, "manifest", "manifest-", func(table, p string, data []byte) {
		by := writer(table)
		if strings.HasPrefix(path.Base(p), "manifest-list-") {
			seen[by+" list"]++
			checkRewrite(t, p, by, data, manifestListSchema(true), func(rows []ManifestFile) ([]byte, error) {
				return encodeManifestList("zstd", rows)
			})
			return
		}
		seen[by]++
		checkRewrite(t, p, by, data, manifestSchema(true, true), func(rows []ManifestEntry) ([]byte, error) {
			for _, e := range rows {
				if err := e.check(); err != nil {
					t.Errorf("%s: %v", p, err)
				}
			}
			return encodeAvro(writeManifest, "zstd", rows)
		})
	})
	for _, by := range []string{"1.4.2", "java", "flink", "pypaimon", "rust"} {
		if seen[by] < 5 || seen[by+" list"] < 10 {
			t.Errorf("only %v of %s", seen, by)
		}
	}
}

// TestFieldsOfOtherWriters looks at what other writers do differently.
func TestFieldsOfOtherWriters(t *testing.T) {
	for _, c := range []struct {
		table                string
		source, sized, total bool // what its files have
	}{
		{"append-partitioned", true, true, false},
		{"written-by-java-0.8-append", false, false, false},
		{"written-by-flink-1.3-append", true, true, false},
		{"written-by-pypaimon-append", true, true, true},
		{"written-by-rust-append", true, true, true},
	} {
		store, tbl := openTable(t, c.table, 0)
		s := latest(t, tbl)
		lists, err := manifests(t.Context(), tbl, s)
		if err != nil {
			t.Fatal(err)
		}
		live, err := liveEntries(t.Context(), tbl, s, everyPartition)
		if err != nil || len(live) == 0 {
			t.Fatal(len(live), err)
		}
		rows := int64(0)
		for _, e := range live {
			rows += e.File.RowCount
			if e.File.ExtraFiles == nil || e.File.CreationTime == nil || e.File.DeleteRowCount == nil || len(e.File.ValueStats.Min) < 4 || e.TotalBuckets != -1 {
				t.Errorf("%s: %+v", c.table, e)
			}
			if (e.File.FileSource != nil) != c.source {
				t.Errorf("%s: file source %v", c.table, e.File.FileSource)
			}
		}
		if rows != s.TotalRecordCount {
			t.Errorf("%s: %d rows, want %d", c.table, rows, s.TotalRecordCount)
		}
		for _, f := range lists {
			if (f.MinBucket != nil) != c.sized {
				t.Errorf("%s: buckets from %v", c.table, f.MinBucket)
			}
		}
		_, header := generic(t, []byte(store.Files()[location+"/manifest/"+s.DeltaManifestList]))
		if strings.Contains(header["avro.schema"], "_TOTAL_BUCKETS") != c.total {
			t.Errorf("%s: manifest lists have the schema %s", c.table, header["avro.schema"])
		}
	}
}

// TestNewerColumns writes the columns that only some files have.
func TestNewerColumns(t *testing.T) {
	rows := decodeAll[ManifestFile](t, mustEncode(t, []ManifestFile{{Version: 2, FileName: "a", PartitionStats: emptyStats(), TotalBuckets: ptr[int32](4), ExtraFiles: []string{"x"}}, {Version: 2, FileName: "b", PartitionStats: emptyStats()}}), manifestListSchema(true))
	if *rows[0].TotalBuckets != 4 || rows[0].ExtraFiles[0] != "x" || rows[1].TotalBuckets != nil || rows[1].ExtraFiles != nil {
		t.Errorf("read %+v", rows)
	}
	w, tbl := newWriter(t)
	plain, wide := ManifestEntry{Version: 2, Partition: stringRow("a"), File: newFile("a", 1)}, ManifestEntry{Version: 2, Partition: stringRow("a"), File: newFile("b", 1)}
	wide.File.WriteCols, wide.File.WriteColsSequences = []string{"c"}, []int64{5}
	out := w.manifests(t.Context())
	for _, e := range []*ManifestEntry{&plain, &wide, &plain} {
		if err := out.add(e); err != nil {
			t.Fatal(err)
		}
	}
	files, err := out.close()
	if err != nil {
		t.Fatal(err)
	}
	var entries []ManifestEntry
	for _, f := range files {
		if err := ReadManifest(t.Context(), tbl, f.FileName, func(e *ManifestEntry) error {
			entries = append(entries, *e)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []ManifestEntry{plain, wide, plain}; !reflect.DeepEqual(entries, want) {
		t.Errorf("read %+v", entries)
	}
}

func mustEncode(t testing.TB, rows []ManifestFile) []byte {
	t.Helper()
	data, err := encodeManifestList("zstd", rows)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func ptr[T any](v T) *T { return &v }

func TestRefusedVersions(t *testing.T) {
	store, tbl := openTable(t, "append-partitioned", 2)
	list := mustEncode(t, []ManifestFile{{Version: 1, FileName: "a", PartitionStats: emptyStats()}})
	store.Set(location+"/manifest/l", string(list))
	if _, err := ReadManifestList(t.Context(), tbl, "l"); !errors.Is(err, table.ErrUnsupported) || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("got %v", err)
	}
	good := ManifestEntry{Version: 2, Partition: stringRow("a"), File: newFile("a", 1)}
	for text, change := range map[string]func(*ManifestEntry){
		"version 3": func(e *ManifestEntry) { e.Version = 3 },
		"bucket -3": func(e *ManifestEntry) { e.Bucket = -3 },
		"kind 2":    func(e *ManifestEntry) { e.Kind = 2 },
		"-1 rows":   func(e *ManifestEntry) { e.File.RowCount = -1 },
		"-1 bytes":  func(e *ManifestEntry) { e.File.FileSize = -1 },
	} {
		bad := good
		change(&bad)
		data, err := encodeAvro(writeManifest, "snappy", []ManifestEntry{good, bad})
		if err != nil {
			t.Fatal(err)
		}
		store.Set(location+"/manifest/m", string(data))
		err = ReadManifest(t.Context(), tbl, "m", func(*ManifestEntry) error { return nil })
		if err == nil || !strings.Contains(err.Error(), text) || errors.Is(err, table.ErrUnsupported) != (text == "version 3") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if _, err := ReadManifestList(t.Context(), tbl, "../schema/schema-0"); err == nil || !strings.Contains(err.Error(), "not a file name") {
		t.Errorf("got %v", err)
	}
}

// fuzzAvro feeds arbitrary bytes to the decoder, which must neither panic nor
// take much memory. Rows that it accepts can be written and read again.
func fuzzAvro[T any](f *testing.F, prefix, ours string, encode func([]T) ([]byte, error)) {
	f.Helper()
	n := map[string]int{}
	metadata(f, "manifest", prefix, func(table, p string, data []byte) {
		if strings.HasPrefix(path.Base(p), "manifest-list-") == (prefix == "manifest-list-") && n[writer(table)] < 3 {
			n[writer(table)]++
			f.Add(data)
		}
	})
	f.Fuzz(func(t *testing.T, data []byte) { fuzzRows(t, data, ours, encode) })
}

func fuzzRows[T any](t *testing.T, data []byte, ours string, encode func([]T) ([]byte, error)) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var rows []T
	err := decodeAvro(t.Context(), bytes.NewReader(data), ours, func(row *T) error {
		if len(rows) < 1000 {
			rows = append(rows, *row)
		}
		return nil
	})
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4*maxBlock+uint64(len(data))*100 {
		t.Fatalf("took %d bytes for %d", used, len(data))
	}
	if err != nil {
		return
	}
	written, err := encode(rows)
	if err != nil {
		t.Fatal(err)
	}
	if again := decodeAll[T](t, written, ours); !reflect.DeepEqual(again, rows) {
		t.Fatalf("read %+v, then %+v", rows, again)
	}
}

func FuzzManifest(f *testing.F) {
	fuzzAvro(f, "manifest-", manifestSchema(true, true), func(rows []ManifestEntry) ([]byte, error) {
		return encodeAvro(writeManifestMore, "zstd", rows)
	})
}

func FuzzManifestList(f *testing.F) {
	fuzzAvro(f, "manifest-list-", manifestListSchema(true), func(rows []ManifestFile) ([]byte, error) {
		return encodeAvro(writeManifestListMore, "zstd", rows)
	})
}

// FuzzIndexManifest has what is written as rows of our own, since index manifests are
// never written.
func FuzzIndexManifest(f *testing.F) {
	schema := avro.MustParse(indexManifestAvro)
	metadata(f, "manifest", "index-manifest-", func(_, _ string, data []byte) { f.Add(data) })
	data, err := encodeAvro(schema, "null", []indexEntry{{Version: 1, IndexType: hashIndex, FileName: "index-1"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzRows(t, data, indexManifestAvro, func(rows []indexEntry) ([]byte, error) { return encodeAvro(schema, "null", rows) })
	})
}
