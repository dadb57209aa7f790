package snapshot

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tablectl/internal/binrow"
	"tablectl/internal/fileio"
	"tablectl/internal/fileio/faultio"
	"tablectl/internal/types"
	"tablectl/table"
)

const location = "/warehouse/t"

// tableFiles reads a table of testdata as it was at a snapshot; 0 is the latest.
func tableFiles(t testing.TB, name string, at int64) map[string]string {
	t.Helper()
	files, err := faultio.ReadTree("../testdata/tables/"+name+"/wh.db/t", location)
	if err != nil {
		t.Fatal(err)
	}
	for id := at + 1; at > 0; id++ {
		p := fmt.Sprintf("%s/snapshot/snapshot-%d", location, id)
		if _, ok := files[p]; !ok {
			files[location+"/snapshot/LATEST"] = fmt.Sprint(at)
			break
		}
		delete(files, p)
	}
	return files
}

func load(t testing.TB, store fileio.FileIO) *table.Table {
	t.Helper()
	tbl, err := table.Load(t.Context(), store, location, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tbl
}

func openTable(t testing.TB, name string, at int64) (*faultio.Memory, *table.Table) {
	t.Helper()
	store := faultio.NewMemory(tableFiles(t, name, at))
	return store, load(t, store)
}

func latest(t testing.TB, tbl *table.Table) *Snapshot {
	t.Helper()
	s, err := Latest(t.Context(), tbl)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// liveNames are the live files of a snapshot, sorted.
func liveNames(t testing.TB, tbl *table.Table, s *Snapshot) []string {
	t.Helper()
	entries, err := liveEntries(t.Context(), tbl, s, everyPartition)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.File.FileName)
	}
	slices.Sort(names)
	return names
}

// firstLive returns the live files of the first bucket.
func firstLive(t testing.TB, tbl *table.Table, s *Snapshot) Bucket {
	t.Helper()
	buckets, err := LiveFiles(t.Context(), tbl, s, table.Filter{})
	if err != nil || len(buckets) == 0 {
		t.Fatal("no live files", err)
	}
	return buckets[0]
}

// message deletes and adds files in a bucket.
func message(b Bucket, before []*ManifestEntry, after ...string) CommitMessage {
	m := CommitMessage{Partition: b.Partition, Bucket: b.Number, TotalBuckets: b.TotalBuckets}
	for _, e := range before {
		m.CompactBefore = append(m.CompactBefore, e.File)
	}
	for _, name := range after {
		m.CompactAfter = append(m.CompactAfter, newFile(name, 10))
	}
	return m
}

func newFile(name string, rows int64) DataFile {
	f := DataFile{FileName: name, FileSize: 100 + rows, RowCount: rows, ExtraFiles: []string{}, ValueStats: emptyStats()}
	f.AppendKeys()
	return f
}

func stringRow(s string) []byte {
	return binrow.Encode([]types.Type{{Kind: types.Varchar}}, []types.Value{{Bytes: []byte(s)}})
}

func options(user string) CommitOptions {
	return CommitOptions{User: user, Now: time.Now, NewUUID: uuid.NewString}
}

func commitAll(t testing.TB, tbl *table.Table, messages ...CommitMessage) *Snapshot {
	t.Helper()
	done, err := Commit(t.Context(), tbl, latest(t, tbl), messages, options("test"))
	if err != nil {
		t.Fatal(err)
	}
	return done.Snapshot
}

// metadata calls each with the files of all tables of testdata below a folder
// such as manifest, but not with those of the format ORC.
func metadata(t testing.TB, folder, prefix string, each func(table, path string, data []byte)) {
	t.Helper()
	paths, err := filepath.Glob("../testdata/tables/*/wh.db/t/" + folder + "/" + prefix + "*")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.Split(filepath.ToSlash(p), "/")[3]
		if !strings.HasPrefix(string(data), "ORC") {
			each(name, p, data)
		}
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
