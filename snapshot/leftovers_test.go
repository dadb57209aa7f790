package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tablectl/internal/fileio"
	"tablectl/internal/fileio/faultio"
	"tablectl/table"
)

// leftovers are the leftovers of a table as "kind path".
func leftovers(t testing.TB, store fileio.FileIO) []string {
	t.Helper()
	all, err := Leftovers(t.Context(), load(t, store))
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(all))
	for i, l := range all {
		lines[i] = string(l.Kind) + " " + l.Path
	}
	return lines
}

func wantLeftovers(t testing.TB, store fileio.FileIO, want ...string) {
	t.Helper()
	if got := leftovers(t, store); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestNoLeftovers looks at tables that were written without an accident: with tags,
// branches, expired snapshots, statistics, indexes, deletion vectors, changelogs.
// What is forgotten among the uses shows up here.
func TestNoLeftovers(t *testing.T) {
	dirs, err := filepath.Glob("../testdata/tables/*/wh.db")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no tables", err)
	}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := faultio.NewMemory(tableFiles(t, name, 0))
			if name == "append-manifest-orc" {
				if _, err := Leftovers(t.Context(), load(t, store)); !errors.Is(err, table.ErrUnsupported) {
					t.Errorf("got %v", err)
				}
				return
			}
			wantLeftovers(t, store)
		})
	}
}

// strays are what killed writers leave, by path in the table.
var strays = map[string]LeftoverKind{
	"manifest/manifest-x-0":                  LeftoverManifest,
	"manifest/manifest-list-x-0":             LeftoverManifestList,
	"manifest/index-manifest-x-0":            LeftoverIndexManifest,
	"manifest/.manifest-x-1.u.tmp":           LeftoverTemporary,
	"index/index-x-0":                        LeftoverIndex,
	"statistics/stat-x-0":                    LeftoverStatistics,
	"snapshot/.snapshot-9.u.tmp":             LeftoverTemporary,
	"snapshot/snapshot-9.u.tmp":              LeftoverTemporary,
	"snapshot/.LATEST.u.tmp":                 LeftoverTemporary,
	"changelog/.changelog-9.u.tmp":           LeftoverTemporary,
	"branch/branch-b1/snapshot/.s.u.tmp":     LeftoverTemporary,
	"branch/branch-b1/changelog/.c.u.tmp":    LeftoverTemporary,
	"bucket-0/data-x-0.parquet":              LeftoverData,
	"bucket-0/part-x-0.orc":                  LeftoverData,
	"bucket-0/data-x-0.zstd.avro":            LeftoverData,
	"bucket-0/data-x-0.csv.gz":               LeftoverData,
	"bucket-0/changelog-x-0.parquet":         LeftoverChangelog,
	"bucket-0/data-x-0.parquet.index":        LeftoverFileIndex,
	"bucket-0/data-x-0.parquet.row":          LeftoverSidecar,
	"bucket-0/index-x-0":                     LeftoverIndex,
	"bucket-7/data-x-1.parquet":              LeftoverData,
	"bucket-postpone/data-u-s-0-w-x-0.avro":  LeftoverData,
	"bucket-0/.data-x-2.parquet.1234-56.tmp": LeftoverTemporary,
}

// others are never listed: nothing says that a killed writer has left them.
var others = []string{
	"schema/.schema-9.u.tmp", "schema/schema-9.bak", "consumer/consumer-1", "tag/.tag-x.u.tmp", "service/port",
	"manifest/README", "index/notes", "statistics/notes", "snapshot/README", "snapshot/EARLIEST", "changelog/LATEST",
	"bucket-0/data-x-0.managed.blob", "bucket-0/data-x-0.blobref", "bucket-0/data-x-0.blob", "bucket-0/notes.txt", "bucket-0/sub/data-x-0.parquet",
	"p=1/bucket-0/data-x-0.parquet", "other/bucket-0/data-x-0.parquet", "metadata/v1.metadata.json", "data-x-0.parquet",
	"branch/branch-b1/consumer/consumer-1", "branch/branch-b1/bucket-0/data-x-0.parquet", "branch/notes",
}

func TestStrays(t *testing.T) {
	files := tableFiles(t, "with-branch", 0)
	var want []string
	for p, kind := range strays {
		files[path.Join(location, p)] = "x"
		want = append(want, string(kind)+" "+p)
	}
	for _, p := range others {
		files[path.Join(location, p)] = "x"
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(a[strings.Index(a, " "):], b[strings.Index(b, " "):]) })
	store := faultio.NewMemory(files)
	wantLeftovers(t, store, want...)
	if got := store.Files(); !maps.Equal(got, files) {
		t.Error("the table was changed")
	}
	// Whichever branch was asked for, the table is the same.
	onBranch, err := table.Load(t.Context(), store, location+"$branch_b1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := Leftovers(t.Context(), onBranch); err != nil || len(all) != len(want) {
		t.Errorf("%d leftovers, want %d: %v", len(all), len(want), err)
	}
}

// TestStraysInPartitions finds them below partitions, below data-file.path-directory
// too, and below ones that were never committed.
func TestStraysInPartitions(t *testing.T) {
	files := tableFiles(t, "append-path-options", 0)
	for _, p := range []string{"data/p=1/bucket-0/part-x.zst.parquet", "data/p=new/bucket-0/part-y.zst.parquet", "p=1/bucket-0/part-z.parquet"} {
		files[path.Join(location, p)] = "x"
	}
	for _, p := range []string{"data/bucket-0/part-x.parquet", "data/p=1/q=2/bucket-0/part-x.parquet", "data/p/bucket-0/part-x.parquet", "data/p=1/part-x.parquet"} {
		files[path.Join(location, p)] = "x"
	}
	wantLeftovers(t, faultio.NewMemory(files), "data data/p=1/bucket-0/part-x.zst.parquet", "data data/p=new/bucket-0/part-y.zst.parquet",
		"data p=1/bucket-0/part-z.parquet")
}

// TestLeftoverOnDisk gives the size and time of a file, and never follows a link
// out of the table.
func TestLeftoverOnDisk(t *testing.T) {
	dir, outside := filepath.Join(t.TempDir(), "t"), t.TempDir()
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stray := filepath.Join(dir, "bucket-0", "data-x-0.parquet")
	err := errors.Join(os.CopyFS(dir, os.DirFS("../testdata/tables/with-tags/wh.db/t")), os.WriteFile(stray, []byte("12345"), 0o666), os.Chtimes(stray, then, then),
		os.WriteFile(filepath.Join(outside, "data-x-1.parquet"), nil, 0o666), os.Symlink(outside, filepath.Join(dir, "bucket-1")))
	if err != nil {
		t.Fatal(err)
	}
	tbl, err := table.Load(t.Context(), fileio.Local{}, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Leftovers(t.Context(), tbl)
	if err != nil || len(all) != 1 || all[0].Path != "bucket-0/data-x-0.parquet" || all[0].Size != 5 || !all[0].ModTime.Equal(then) {
		t.Errorf("got %+v, %v", all, err)
	}
}

// TestUnused drops what uses files: the listing has exactly these then.
func TestUnused(t *testing.T) {
	for _, c := range []struct {
		table, drop string
		want        string // kinds, counted
	}{
		{"with-tags", "tag/tag-two", "2 manifest_list"}, // its files were live later, too
		{"with-branch", "branch/branch-b1/", "2 data, 2 manifest, 4 manifest_list"},
		{"statistics-watermark-properties", "snapshot/", "5 data, 5 manifest, 12 manifest_list, 1 statistics"},
		{"pk-dynamic-bucket", "snapshot/", "7 data, 5 index, 2 index_manifest, 3 manifest, 6 manifest_list"},
		{"append-deletion-vectors", "snapshot/", "15 data, 5 index, 2 index_manifest, 6 manifest, 16 manifest_list"},
		{"append-file-index", "snapshot/snapshot-5", "1 data, 1 file_index, 1 manifest, 2 manifest_list"},
		{"pk-changelog-input", "snapshot/snapshot-4", "1 changelog, 1 data, 2 manifest, 3 manifest_list"},
	} {
		t.Run(c.table, func(t *testing.T) {
			files := tableFiles(t, c.table, 0)
			maps.DeleteFunc(files, func(p, _ string) bool { return strings.HasPrefix(p, path.Join(location, c.drop)) })
			counts := map[string]int{}
			for _, l := range leftovers(t, faultio.NewMemory(files)) {
				kind, _, _ := strings.Cut(l, " ")
				counts[kind]++
			}
			var got []string
			for _, kind := range slices.Sorted(maps.Keys(counts)) {
				got = append(got, fmt.Sprintf("%d %s", counts[kind], kind))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), c.want)
			}
		})
	}
}

// TestChangelogUses knows what changelogs keep of snapshots that have expired: the
// changes, while the lists of data files may be gone.
func TestChangelogUses(t *testing.T) {
	files := tableFiles(t, "pk-changelog-input", 0)
	first := readSnapshotIn(t, files, 1)
	files[location+"/changelog/changelog-1"] = files[location+"/snapshot/snapshot-1"]
	files[location+"/changelog/LATEST"] = "1"
	delete(files, location+"/snapshot/snapshot-1")
	wantLeftovers(t, faultio.NewMemory(files)) // as for writers that keep the lists
	delete(files, location+"/manifest/"+first.BaseManifestList)
	delete(files, location+"/manifest/"+first.DeltaManifestList)
	wantLeftovers(t, faultio.NewMemory(files))

	without := maps.Clone(files)
	delete(without, location+"/changelog/changelog-1")
	if got := leftovers(t, faultio.NewMemory(without)); !slices.ContainsFunc(got, func(l string) bool { return strings.HasPrefix(l, "changelog ") }) {
		t.Errorf("without the changelog, got %v", got)
	}
	delete(files, location+"/manifest/"+*first.ChangelogManifestList)
	synctest.Test(t, func(t *testing.T) {
		if _, err := Leftovers(t.Context(), load(t, faultio.NewMemory(files))); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "changelog-1") {
			t.Errorf("got %v", err)
		}
	})
}

func readSnapshotIn(t testing.TB, files map[string]string, id int64) *Snapshot {
	t.Helper()
	s, err := ParseSnapshot([]byte(files[fmt.Sprintf("%s/snapshot/snapshot-%d", location, id)]))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHintsDoNotMatter sets the hint back, spoils it and removes it.
func TestHintsDoNotMatter(t *testing.T) {
	for _, hint := range []string{"9", "1", "99", "garbage", "", "-"} {
		files := tableFiles(t, "with-tags", 0)
		files[location+"/snapshot/LATEST"] = hint
		if hint == "-" {
			delete(files, location+"/snapshot/LATEST")
		}
		wantLeftovers(t, faultio.NewMemory(files))
	}
}

// TestNotUnderstood lists nothing where something cannot be read.
func TestNotUnderstood(t *testing.T) {
	base := location + "/manifest/"
	for _, c := range []struct {
		name    string
		change  func(files map[string]string, s *Snapshot)
		message string
	}{
		{"a branch without a schema", func(f map[string]string, _ *Snapshot) { delete(f, location+"/branch/branch-b1/schema/schema-0") }, `branch b1 of .* has no schema.*restore`},
		{"a damaged schema of a branch", func(f map[string]string, _ *Snapshot) { f[location+"/branch/branch-b1/schema/schema-0"] = "{" }, `open branch b1 of .*schema-0`},
		{"a damaged snapshot", func(f map[string]string, _ *Snapshot) { f[location+"/snapshot/snapshot-2"] = "{" }, `snapshot/snapshot-2 uses: parse`},
		{"an empty snapshot of a branch", func(f map[string]string, _ *Snapshot) { f[location+"/branch/branch-b1/snapshot/snapshot-4"] = "" }, `branch-b1/snapshot/snapshot-4`},
		{"a damaged tag", func(f map[string]string, _ *Snapshot) { f[location+"/branch/branch-b1/tag/tag-t1"] = "no" }, `tag/tag-t1`},
		{"a damaged changelog", func(f map[string]string, _ *Snapshot) { f[location+"/changelog/changelog-1"] = "no" }, `changelog/changelog-1`},
		{"no base list", func(f map[string]string, s *Snapshot) { delete(f, base+s.BaseManifestList) }, `uses; if it is expiring.*manifest-list`},
		{"a damaged delta list", func(f map[string]string, s *Snapshot) { f[base+s.DeltaManifestList] = "x" }, `snapshot-2 uses: read manifest`},
		{"a name that leaves the table", func(f map[string]string, s *Snapshot) {
			p := location + "/snapshot/snapshot-2"
			f[p] = strings.ReplaceAll(f[p], s.DeltaManifestList, "../../x")
		}, `snapshot-2 uses: manifest name "../../x"`},
		{"an index manifest that is gone", func(f map[string]string, s *Snapshot) {
			p := location + "/snapshot/snapshot-2"
			f[p] = strings.Replace(f[p], "{", `{"indexManifest": "index-manifest-1",`, 1)
		}, `index-manifest-1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := tableFiles(t, "with-branch", 0)
			c.change(files, readSnapshotIn(t, files, 2))
			synctest.Test(t, func(t *testing.T) {
				all, err := Leftovers(t.Context(), load(t, faultio.NewMemory(files)))
				if err == nil || all != nil || !regexp.MustCompile(c.message).MatchString(err.Error()) || errors.Is(err, table.ErrNotFound) {
					t.Errorf("got %v, %v", all, err)
				}
			})
		})
	}
	// A folder or a store that fails is no empty one.
	files := tableFiles(t, "with-branch", 0)
	for n := 1; ; n += 1 + n/8 {
		store := faultio.New(faultio.NewMemory(files), faultio.From(n, faultio.Of(faultio.List, faultio.Open), faultio.Fail))
		tbl := load(t, faultio.NewMemory(files))
		tbl.IO = store
		done := false
		synctest.Test(t, func(t *testing.T) {
			all, err := Leftovers(t.Context(), tbl)
			if done = len(store.Hits()) == 0; done != (err == nil) || all != nil {
				t.Errorf("failing from operation %d on: %v, %v", n, all, err)
			}
		})
		if done {
			break
		}
	}
}
