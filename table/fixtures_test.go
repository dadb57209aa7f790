package table_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tablectl/internal/fileio"
	"tablectl/snapshot"
	"tablectl/table"
)

func fixture(name string) string { return filepath.Join("../testdata/tables", name, "wh.db", "t") }

func load(t *testing.T, location string, overrides map[string]string) *table.Table {
	t.Helper()
	tbl, err := table.Load(t.Context(), fileio.Local{}, location, overrides)
	if err != nil {
		t.Fatal(err)
	}
	return tbl
}

func liveFiles(ctx context.Context, tbl *table.Table, where string) ([]snapshot.Bucket, error) {
	s, err := snapshot.Latest(ctx, tbl)
	if err != nil {
		return nil, err
	}
	var filter table.Filter
	if where != "" {
		if filter, err = table.ParseWhere(tbl.Schema, where); err != nil {
			return nil, err
		}
	}
	return snapshot.LiveFiles(ctx, tbl, s, filter)
}

// TestComputedPaths finds the files of tables that other writers made: nothing
// was deleted from these, so the live files are all the data files there are.
func TestComputedPaths(t *testing.T) {
	for name, files := range map[string]int{
		"append-partition-legacy-types": 4, "append-partition-new-name": 4, "append-multi-partition-types": 20, "append-partitioned": 14,
		"append-bucketed-partitioned-unordered": 20, "append-path-options": 5, "append-unpartitioned": 6, "written-by-flink-1.3-append": 10,
		"written-by-java-0.8-append": 24, "written-by-pypaimon-append": 12, "written-by-rust-append": 12,
	} {
		t.Run(name, func(t *testing.T) {
			tbl := load(t, fixture(name), nil)
			buckets, err := liveFiles(t.Context(), tbl, "")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range buckets {
				for _, e := range b.Files {
					p, err := tbl.FilePath(b.Partition, int(b.Number), e.File.FileName)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, p)
					if err := tbl.CheckBucketDir(t.Context(), b.Partition, int(b.Number), e.File.FileName); err != nil {
						t.Error(err)
					}
				}
			}
			want := dataFiles(t, tbl.Location)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the live files are at\n%s\nthere are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if len(got) != files {
				t.Errorf("%d files, want %d", len(got), files)
			}
		})
	}
}

func dataFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasPrefix(filepath.Base(filepath.Dir(p)), "bucket-") {
			files = append(files, filepath.ToSlash(p))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// TestCheckBucketDir reads partitions under the wrong names: what is written
// there would be lost, so it must be noticed.
func TestCheckBucketDir(t *testing.T) {
	for name, change := range map[string]func(*table.Options){
		"append-partition-legacy-types": func(o *table.Options) { o.LegacyPartition = false },
		"append-partition-new-name":     func(o *table.Options) { o.LegacyPartition = true },
		"append-multi-partition-types":  func(o *table.Options) { o.DefaultPartition = "other" },
		"append-partitioned":            func(o *table.Options) { o.DataFilePath = "data" },
		"append-path-options":           func(o *table.Options) { o.DataFilePath = "elsewhere" },
	} {
		tbl := load(t, fixture(name), nil)
		change(&tbl.Options)
		buckets, err := liveFiles(t.Context(), tbl, "")
		if err != nil {
			t.Fatal(err)
		}
		b := buckets[0]
		err = tbl.CheckBucketDir(t.Context(), b.Partition, int(b.Number), b.Files[0].File.FileName)
		if err == nil || !strings.Contains(err.Error(), b.Files[0].File.FileName) || !strings.Contains(err.Error(), "is missing") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestFiltersOnRealPartitions selects partitions of tables by what Java wrote.
func TestFiltersOnRealPartitions(t *testing.T) {
	for _, c := range []struct {
		table, where string
		want         []string
	}{
		{"append-partitioned", "p=a", []string{"p=a"}},
		{"append-partitioned", "p NOT IN (a, c)", []string{"p=b"}},
		{"append-multi-partition-types", "pi IS NULL", []string{"pi=null,pd=null,ps=null"}},
		{"append-multi-partition-types", "pi < 2", []string{"pi=-5,pd=1969-12-31,ps=a b/c=d%e", "pi=1,pd=2024-02-29,ps=plain"}},
		{"append-multi-partition-types", "ps = '__DEFAULT_PARTITION__'", []string{"pi=5,pd=2024-01-01,ps=__DEFAULT_PARTITION__"}},
		{"append-multi-partition-types", "ps = '' OR ps LIKE ' %'", []string{"pi=3,pd=2024-01-01,ps=", "pi=3,pd=2024-01-01,ps=  "}},
		{"append-multi-partition-types", "ps LIKE 'a b%'", []string{"pi=-5,pd=1969-12-31,ps=a b/c=d%e"}},
		{"append-multi-partition-types", "ps LIKE '%😀' OR ps LIKE 'q''\"%'", []string{
			"pi=4,pd=2024-01-01,ps=\"q'\\\"#:*?\\\\{}[]^~\\x7f\\t\"", "pi=2147483647,pd=9999-12-31,ps=ünï-日本-😀",
		}},
		{"append-multi-partition-types", "pd = DATE '9999-12-31'", []string{"pi=2147483647,pd=9999-12-31,ps=ünï-日本-😀"}},
		{"append-multi-partition-types", "pd IS NULL AND pi IS NOT NULL", []string{"pi=2,pd=null,ps=x"}},
		{"append-partition-legacy-types", "pdec = 12.5 AND pl = -7", []string{"pd=2024-02-29,pt=2024-02-29 01:02:03.004,pb=true,pdec=12.50,pl=-7"}},
		{"append-partition-legacy-types", "pb = false AND pdec IS NULL", []string{"pd=null,pt=1969-12-31 23:00:00.000,pb=false,pdec=null,pl=null"}},
		{"append-partition-new-name", "pt < '1970-01-01'", []string{"pd=null,pt=1969-12-31 23:00:00.000,pb=false"}},
		{"append-partition-new-name", "pt = TIMESTAMP '2024-02-29 01:02:03.004'", []string{"pd=2024-02-29,pt=2024-02-29 01:02:03.004,pb=true"}},
	} {
		tbl := load(t, fixture(c.table), nil)
		buckets, err := liveFiles(t.Context(), tbl, c.where)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range buckets {
			got = append(got, tbl.PartitionName(b.Partition))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %s selects %q, want %q", c.table, c.where, got, c.want)
		}
	}
}

// TestHostileMetadata changes the names in a snapshot: nothing outside of the
// table is read.
func TestHostileMetadata(t *testing.T) {
	location := filepath.Join(t.TempDir(), "t")
	if err := os.CopyFS(location, os.DirFS(fixture("append-partitioned"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(location, "snapshot", "snapshot-6")
	original, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tbl := load(t, location, nil)
	for _, member := range []string{"baseManifestList", "deltaManifestList"} {
		for _, name := range []string{"../secret", "/etc/passwd", "../manifest/x", "", ".."} {
			changed := regexp.MustCompile(`("`+member+`" : ")[^"]*`).ReplaceAll(original, []byte("${1}"+name))
			if err := os.WriteFile(file, changed, 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := liveFiles(t.Context(), tbl, "")
			if err == nil || !strings.Contains(err.Error(), "is not a file name") || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s %q: got %v", member, name, err)
			}
		}
	}
}
