package compact_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tablectl/compact"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// TestTables compacts a copy of every table under testdata, and its branches:
// either the table is refused and left alone, or the rows are the same afterwards.
func TestTables(t *testing.T) {
	for _, name := range tabletest.Cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := tabletest.Expected(t, name)
			location := tabletest.CopyTable(t, name)
			compactFixture(t, location, "", before, after)

			branches, err := filepath.Glob(filepath.Join(location, "branch", "branch-*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range branches {
				branch := strings.TrimPrefix(filepath.Base(b), "branch-")
				rows := tabletest.Lines(t, tabletest.File(t, name, "expected-"+branch+".jsonl"))
				compactFixture(t, location, branch, rows, rows)
			}
			checkTags(t, name, location)
		})
	}
}

func sortSets(t *testing.T, tbl *table.Table, rows []string) []string {
	t.Helper()
	sorted, err := tabletest.SortSets(tbl.Options.Raw, rows)
	if err != nil {
		t.Fatal(err)
	}
	return sorted
}

func compactFixture(t *testing.T, location, branch string, before, after []string) {
	t.Helper()
	target := location
	if branch != "" {
		target += "$branch_" + branch
	}
	tbl := tabletest.Load(t, target, nil)
	base := latestOf(t, tbl)
	why, err := tabletest.Unsupported(t.Context(), tbl, base)
	if err != nil {
		t.Fatal(err)
	}
	files := tabletest.TreeHash(t, location)
	if why != "" {
		_, err := compact.Table(t.Context(), tbl, compact.Options{})
		if !errors.Is(err, table.ErrUnsupported) {
			t.Errorf("a table with %s: error %v, want one that wraps ErrUnsupported", why, err)
		}
		checkUntouched(t, location, files)
		return
	}
	keyed := len(tbl.Schema.PrimaryKeys) > 0 // then rows can be read only once they are merged
	if !keyed {
		if diff := tabletest.Diff(rowsOf(t, tbl, base), before); diff != "" {
			t.Fatalf("before: %s", diff)
		}
	}
	report := compactAndCheck(t, tbl, location, compact.Options{Verify: true})
	if report.After == nil {
		after = before
	}
	if diff := tabletest.Diff(sortSets(t, tbl, rowsOf(t, tbl, latestOf(t, tbl))), sortSets(t, tbl, after)); diff != "" {
		t.Errorf("after: %s", diff)
	}
	if base != nil && !keyed {
		if diff := tabletest.Diff(rowsOf(t, tbl, base), before); diff != "" {
			t.Errorf("the snapshot before, read afterwards: %s", diff)
		}
	}
	checkSettled(t, tbl, location)
}

// compactAndCheck compacts a table that can be compacted and checks everything
// but the rows: the snapshot, its counts, the files that are there, and their
// statistics.
func compactAndCheck(t *testing.T, tbl *table.Table, location string, o compact.Options) *compact.Report {
	t.Helper()
	base, before := latestOf(t, tbl), tabletest.TreeHash(t, location)
	ids := snapshotIDs(t, tbl)
	report, err := compact.Table(t.Context(), tbl, o)
	if err != nil {
		t.Fatalf("compact: %v", err)
	}
	if len(report.Plan.Tasks) == 0 {
		if report.After != nil {
			t.Errorf("snapshot %d without a task", report.After.ID)
		}
		checkUntouched(t, location, before)
		return report
	}
	last := latestOf(t, tbl)
	if got, want := snapshotIDs(t, tbl), append(ids, base.ID+1); !slices.Equal(got, want) {
		t.Errorf("snapshots %v, want %v", got, want)
	}
	if last.CommitKind != snapshot.Compact || report.After == nil || report.After.ID != last.ID {
		t.Errorf("snapshot %d of kind %s; the report has %+v", last.ID, last.CommitKind, report.After)
	}
	if last.TotalRecordCount != base.TotalRecordCount && len(tbl.Schema.PrimaryKeys) == 0 {
		t.Errorf("%d records, %d before", last.TotalRecordCount, base.TotalRecordCount)
	}
	after := tabletest.TreeHash(t, location)
	for path, hash := range before {
		if got, ok := after[path]; !ok || got != hash && filepath.Base(path) != "LATEST" {
			t.Errorf("%s was changed or removed", path)
		}
	}
	var rows int64
	used := liveAndMetadata(t, tbl, last)
	for _, e := range liveOf(t, tbl, last) {
		rows += e.File.RowCount
		if e.File.FileSource != nil && *e.File.FileSource == snapshot.FileSourceCompact {
			checkStatistics(t, tbl, e)
		}
	}
	if rows != last.TotalRecordCount {
		t.Errorf("%d rows in live files, %d in the snapshot", rows, last.TotalRecordCount)
	}
	for path := range after {
		if _, old := before[path]; !old && !used[path] {
			t.Errorf("%s is new, but nothing refers to it", path)
		}
	}
	for path := range used {
		if _, ok := after[path]; !ok {
			t.Errorf("%s is referred to, but it is not there", path)
		}
	}
	return report
}

// liveAndMetadata is the set of files, by path within the table, that a snapshot
// consists of.
func liveAndMetadata(t *testing.T, tbl *table.Table, s *snapshot.Snapshot) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	add := func(path string, err error) {
		t.Helper()
		rel, relErr := filepath.Rel(tbl.Location, path)
		if err = errors.Join(err, relErr); err != nil {
			t.Fatal(err)
		}
		used[filepath.ToSlash(rel)] = true
	}
	add(tbl.SnapshotPath(s.ID), nil)
	add(tbl.SnapshotDir()+"/LATEST", nil)
	for _, list := range []string{s.BaseManifestList, s.DeltaManifestList} {
		add(tbl.ManifestPath(list))
		manifests, err := snapshot.ReadManifestList(t.Context(), tbl, list)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range manifests {
			add(tbl.ManifestPath(m.FileName))
		}
	}
	for _, e := range liveOf(t, tbl, s) {
		for _, name := range append([]string{e.File.FileName}, e.File.ExtraFiles...) {
			add(tbl.FilePath(e.Partition, int(e.Bucket), name))
		}
	}
	return used
}

// checkStatistics reads a live file and compares it with what its manifest says:
// every value lies within the bounds of its column, and nulls are as many.
func checkStatistics(t *testing.T, tbl *table.Table, e *snapshot.ManifestEntry) {
	t.Helper()
	rows, err := tabletest.FileRows(t.Context(), tbl, e)
	if err != nil {
		t.Fatalf("data file %s: %v", e.File.FileName, err)
	}
	stats, err := tabletest.StatsOf(tbl, e)
	if err != nil {
		t.Fatalf("data file %s: %v", e.File.FileName, err)
	}
	for i, f := range tbl.Schema.Fields {
		s, nulls := stats[i], int64(0)
		for r, row := range rows {
			if row[i] == nil {
				nulls++
				continue
			}
			v, scalar := row[i].(types.Value)
			if !scalar {
				if !s.Min.Null || !s.Max.Null {
					t.Errorf("%s, column %s of type %s has bounds", e.File.FileName, f.Name, f.Type)
				}
				continue
			}
			if s.Min.Null != s.Max.Null || !s.Min.Null && (types.Compare(f.Type.Kind, v, s.Min) < 0 || types.Compare(f.Type.Kind, v, s.Max) > 0) {
				t.Fatalf("%s, row %d: %s of column %s is not within %s and %s", e.File.FileName, r,
					types.Format(f.Type, v), f.Name, types.Format(f.Type, s.Min), types.Format(f.Type, s.Max))
			}
		}
		if s.NullCount != nil && *s.NullCount != nulls {
			t.Errorf("%s, column %s of type %s: %d nulls, %d in the manifest", e.File.FileName, f.Name, f.Type, nulls, *s.NullCount)
		}
	}
}

// checkSettled compacts once more: there is nothing to do, and nothing is done.
func checkSettled(t *testing.T, tbl *table.Table, location string) {
	t.Helper()
	files := tabletest.TreeHash(t, location)
	report, err := compact.Table(t.Context(), tbl, compact.Options{})
	if err != nil {
		t.Fatalf("second run: %v", err)
	}
	if report.After != nil || len(report.Plan.Tasks) > 0 {
		t.Errorf("second run: %d tasks, snapshot %+v", len(report.Plan.Tasks), report.After)
	}
	checkUntouched(t, location, files)
}

func checkUntouched(t *testing.T, location string, want map[string][32]byte) {
	t.Helper()
	got := tabletest.TreeHash(t, location)
	for path, hash := range want {
		if got[path] != hash {
			t.Errorf("%s was changed or removed", path)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is new", path)
		}
	}
}

// checkTags reads the tags of a table after its compaction.
func checkTags(t *testing.T, name, location string) {
	t.Helper()
	tags, err := filepath.Glob(tabletest.File(t, name, "expected-tag-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	tbl := tabletest.Load(t, location, nil)
	for _, path := range tags {
		tag := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "expected-tag-"), ".jsonl")
		data, err := os.ReadFile(filepath.Join(location, "tag", "tag-"+tag))
		if err != nil {
			t.Fatal(err)
		}
		s, err := snapshot.ParseSnapshot(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := tabletest.Diff(rowsOf(t, tbl, s), tabletest.Lines(t, path)); diff != "" {
			t.Errorf("tag %s: %s", tag, diff)
		}
	}
}

// TestPartitionFilter compacts one partition: the files of the others stay live
// as they are.
func TestPartitionFilter(t *testing.T) {
	location := tabletest.CopyTable(t, "append-partitioned")
	tbl := tabletest.Load(t, location, nil)
	want, _ := tabletest.Expected(t, "append-partitioned")
	filter, err := table.ParseWhere(tbl.Schema, "p = 'a'")
	if err != nil {
		t.Fatal(err)
	}
	live := func() map[string][]string {
		byPartition := map[string][]string{}
		for _, e := range liveOf(t, tbl, latestOf(t, tbl)) {
			p := tbl.PartitionName(e.Partition)
			byPartition[p] = append(byPartition[p], e.File.FileName)
		}
		return byPartition
	}
	before, trees := live(), map[string]map[string][32]byte{}
	for _, p := range []string{"p=b", "p=c"} {
		trees[p] = tabletest.TreeHash(t, filepath.Join(location, p))
	}
	report := compactAndCheck(t, tbl, location, compact.Options{Filter: filter})
	if len(report.Plan.Tasks) != 1 {
		t.Errorf("%d tasks, want 1", len(report.Plan.Tasks))
	}
	after := live()
	if len(after["p=a"]) != 1 || slices.Contains(before["p=a"], after["p=a"][0]) {
		t.Errorf("p=a has %v after %v", after["p=a"], before["p=a"])
	}
	for _, p := range []string{"p=b", "p=c"} {
		if !slices.Equal(before[p], after[p]) {
			t.Errorf("%s has the files %v, before %v", p, after[p], before[p])
		}
		if !maps.Equal(trees[p], tabletest.TreeHash(t, filepath.Join(location, p))) {
			t.Errorf("the folder of %s has changed", p)
		}
	}
	if diff := tabletest.Diff(rowsOf(t, tbl, latestOf(t, tbl)), want); diff != "" {
		t.Error(diff)
	}
}

func latestOf(t *testing.T, tbl *table.Table) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Latest(t.Context(), tbl)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func snapshotIDs(t *testing.T, tbl *table.Table) []int64 {
	t.Helper()
	ids, err := snapshot.IDs(t.Context(), tbl)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func rowsOf(t *testing.T, tbl *table.Table, s *snapshot.Snapshot) []string {
	t.Helper()
	rows, err := tabletest.Rows(t.Context(), tbl, s)
	if err != nil {
		t.Fatalf("read snapshot %d: %v", s.ID, err)
	}
	return rows
}

func liveOf(t *testing.T, tbl *table.Table, s *snapshot.Snapshot) []*snapshot.ManifestEntry {
	t.Helper()
	buckets, err := snapshot.LiveFiles(t.Context(), tbl, s, table.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var all []*snapshot.ManifestEntry
	for _, b := range buckets {
		all = append(all, b.Files...)
	}
	return all
}
