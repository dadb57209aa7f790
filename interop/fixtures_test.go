//go:build interop

package interop

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A fixture is a case of testdata/tables, or one of its branches: a real table, what is in it, and what
// Java's compaction made of it. testdata/tables/README.md describes the files.
type fixture struct {
	name   string
	dir    string
	branch string
}

// fixtures are all the cases whose name matches one of the patterns, and their branches.
func fixtures(t *testing.T, patterns ...string) []fixture {
	t.Helper()
	var all []fixture
	for _, pattern := range patterns {
		dirs, err := filepath.Glob(filepath.Join("..", "testdata", "tables", pattern, "wh.db"))
		if err != nil {
			t.Fatalf("listing fixtures: %v", err)
		}
		if len(dirs) == 0 {
			t.Fatalf("no fixture matches %s", pattern)
		}
		for _, dir := range dirs {
			dir = filepath.Dir(dir)
			name := filepath.Base(dir)
			all = append(all, fixture{name: name, dir: dir})
			branches, err := filepath.Glob(filepath.Join(dir, "wh.db", "t", "branch", "branch-*"))
			if err != nil {
				t.Fatalf("listing branches: %v", err)
			}
			for _, path := range branches {
				branch := strings.TrimPrefix(filepath.Base(path), "branch-")
				all = append(all, fixture{name: name + "$" + branch, dir: dir, branch: branch})
			}
		}
	}
	return all
}

// file is a file of the case.
func (f fixture) file(name string) string { return filepath.Join(f.dir, name) }

// rowsBefore are the rows of the table as it is.
func (f fixture) rowsBefore(t *testing.T) []string {
	t.Helper()
	if f.branch != "" {
		return readRows(t, f.file("expected-"+f.branch+".jsonl"))
	}
	return readRows(t, f.file("expected.jsonl"))
}

// rowsAfter are the rows of the table once it is compacted, full or minor. They differ where compaction is to
// change what is visible.
func (f fixture) rowsAfter(t *testing.T, strategy string) []string {
	t.Helper()
	after := f.file(map[string]string{full: "expected_after.jsonl", minor: "expected_after_minor.jsonl"}[strategy])
	if _, err := os.Stat(after); f.branch != "" || errors.Is(err, fs.ErrNotExist) {
		return f.rowsBefore(t)
	}
	return readRows(t, after)
}

// tags are the tags of the table whose rows are known, with these rows.
func (f fixture) tags(t *testing.T) map[string][]string {
	t.Helper()
	if f.branch != "" {
		return nil
	}
	const prefix, suffix = "expected-tag-", ".jsonl"
	paths, err := filepath.Glob(f.file(prefix + "*" + suffix))
	if err != nil {
		t.Fatalf("listing tags: %v", err)
	}
	tags := map[string][]string{}
	for _, path := range paths {
		tag := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), prefix), suffix)
		tags[tag] = readRows(t, path)
	}
	return tags
}

// unsupported is why tablectl is to refuse a table, empty when it is to compact it.
func unsupported(s schema, before tableFiles) string {
	if len(s.PrimaryKeys) > 0 {
		if why := unsupportedMerge(s); why != "" {
			return why
		}
	}
	for _, key := range []string{"deletion-vectors.enabled", "row-tracking.enabled", "data-evolution.enabled"} {
		if s.Options[key] == "true" {
			return key
		}
	}
	if format := s.Options["manifest.format"]; format != "" && format != "avro" {
		return "manifest.format=" + format
	}
	for _, f := range s.Fields {
		if strings.HasPrefix(string(f.Type), `"BLOB`) {
			return "blob column " + f.Name
		}
	}
	for _, f := range before.Files {
		if ext := filepath.Ext(f.FileName); ext != ".parquet" {
			return ext + " data file"
		}
	}
	return ""
}

// unsupportedMerge is why tablectl is to refuse to merge the rows of a table with primary keys.
func unsupportedMerge(s schema) string {
	switch producer := s.Options["changelog-producer"]; {
	case s.Options["merge-engine"] == "first-row":
		return "first-row"
	case producer == "lookup" || producer == "full-compaction":
		return "changelog-producer=" + producer
	case s.Options["bucket"] == "-2":
		return "postpone buckets"
	}
	return ""
}

// A fixtureRun is a copy of a fixture that tablectl was asked to compact, and then again.
type fixtureRun struct {
	fixture
	table table
	first compaction
	again compaction // unless the first one ended with an error
}

// A compaction is a run of tablectl on a table, and what the table was before and after.
type compaction struct {
	treeBefore, treeAfter   tree
	filesBefore, filesAfter string // files outputs of the Java peer
	outcome                 outcome
	err                     error // why there is no outcome, or why Java cannot list what it left
}

// run compacts a copy of the fixture, twice unless it is refused.
func (f fixture) run(t *testing.T) *fixtureRun {
	t.Helper()
	r := &fixtureRun{fixture: f, table: copyTable(t, f.dir, f.branch)}
	r.first = observe(t, r.table)
	if r.first.err == nil && r.first.outcome.code == exitDone {
		r.again = observe(t, r.table)
	}
	return r
}

// observe compacts a table and keeps what it was before and after.
func observe(t *testing.T, tbl table, flags ...string) compaction {
	t.Helper()
	c := compaction{treeBefore: hashTree(t, tbl)}
	if c.filesBefore, c.err = listTo(t, tbl); c.err != nil {
		return c
	}
	c.outcome, c.err = runCompact(tbl, nil, flags...)
	c.treeAfter = hashTree(t, tbl)
	if c.err == nil {
		c.filesAfter, c.err = listTo(t, tbl)
	}
	return c
}

func (c compaction) committed() bool { return c.outcome.result.Status == "committed" }

// wantRows are the rows that the table is to have after the compactions.
func (r *fixtureRun) wantRows(t *testing.T) []string {
	t.Helper()
	if r.first.committed() {
		return r.rowsAfter(t, full)
	}
	return r.rowsBefore(t)
}

// TestFixtures shows, for every fixture, that tablectl either refuses the table and leaves it alone, or
// compacts it so that all readers get the same rows, that the commit is the one Java makes, that history
// and tags are still there, and that a second compaction finds nothing to do and changes nothing.
func TestFixtures(t *testing.T) {
	var runs []*fixtureRun
	for _, f := range fixtures(t, "*") {
		runs = append(runs, f.run(t))
	}

	readings := make([]reading, len(runs))
	for i, r := range runs {
		readings[i] = reading{table: r.table}
	}
	readouts := readAll(t, readings)

	for i, r := range runs {
		options := sortReadouts(t, r.table, readouts, i)
		t.Run(r.name, func(t *testing.T) {
			if r.first.err != nil {
				t.Fatal(r.first.err)
			}
			if why := unsupported(r.table.latestSchema(t), readList(t, r.first.filesBefore)); why != "" {
				checkRefused(t, r, why)
			} else {
				checkCompacted(t, r)
			}
			t.Run("rows", func(t *testing.T) { checkRows(t, readouts, i, sortSets(t, options, r.wantRows(t))) })
		})
	}
}

// checkRefused fails the test unless tablectl refused the table without touching it.
func checkRefused(t *testing.T, r *fixtureRun, why string) {
	t.Helper()
	if o := r.first.outcome; o.code != exitUnsupported || o.result.Status != "failed" {
		t.Errorf("%v, want exit %d and status failed (%s)", o, exitUnsupported, why)
	}
	requireSameTree(t, r.first.treeBefore, r.first.treeAfter)
}

// checkCompacted fails the test unless tablectl compacted the table as Java does, or found nothing to do
// where Java finds nothing.
func checkCompacted(t *testing.T, r *fixtureRun) {
	t.Helper()
	o := r.first.outcome
	switch {
	case o.code != exitDone || o.result.Error != nil:
		t.Fatalf("%v, want exit %d", o, exitDone)
	case o.result.Status == "committed":
		t.Run("commit", func(t *testing.T) { checkCommit(t, r.first) })
	case o.result.Status == "nothing_to_do":
		requireSameTree(t, r.first.treeBefore, r.first.treeAfter)
	default:
		t.Fatalf("%v, want status committed or nothing_to_do", o)
	}
	if r.branch == "" {
		t.Run("as-java", func(t *testing.T) { checkAsJava(t, r.fixture, fullFile, r.first.filesAfter) })
		t.Run("raw", func(t *testing.T) { checkRaw(t, r) })
	}
	t.Run("again", func(t *testing.T) { checkAgain(t, r) })
	t.Run("history", func(t *testing.T) { checkHistory(t, r) })
}

// checkCommit fails the test unless the result that tablectl printed is what it did, as Java sees it, and
// nothing that was there before is gone.
func checkCommit(t *testing.T, c compaction) {
	t.Helper()
	result, before, after := c.outcome.result, readList(t, c.filesBefore), readList(t, c.filesAfter)
	if result.SnapshotBefore == nil || *result.SnapshotBefore != before.latest() {
		t.Errorf("snapshot_before is %s, want %d", deref(result.SnapshotBefore), before.latest())
	}
	if result.SnapshotAfter == nil || *result.SnapshotAfter != after.latest() {
		t.Errorf("snapshot_after is %s, want %d", deref(result.SnapshotAfter), after.latest())
	}
	if got, want := len(after.Snapshots), len(before.Snapshots)+1; got != want {
		t.Errorf("%d snapshots, want %d", got, want)
	}
	last := after.Snapshots[len(after.Snapshots)-1]
	if last.Kind != "COMPACT" {
		t.Errorf("the snapshot is of kind %s, want COMPACT", last.Kind)
	}
	if !strings.HasPrefix(last.User, compactUserPrefix) || last.User != result.CommitUser {
		t.Errorf("the snapshot is by %q, want %s*, as in the result: %q", last.User, compactUserPrefix, result.CommitUser)
	}
	removed, added := before.without(after), after.without(before)
	if result.FilesRemoved != len(removed) || result.FilesAdded != len(added) {
		t.Errorf("files_removed is %d and files_added %d, want %d and %d",
			result.FilesRemoved, result.FilesAdded, len(removed), len(added))
	}
	var rows int64
	for _, f := range added {
		rows += f.RowCount
	}
	if result.RowsWritten != rows {
		t.Errorf("rows_written is %d, want %d", result.RowsWritten, rows)
	}
	for path, hash := range c.treeBefore {
		if isHint := filepath.Base(path) == "LATEST"; !isHint && c.treeAfter[path] != hash {
			t.Errorf("%s was changed or removed", path)
		}
	}
}

// The files of a case that hold what Java's compaction left, full or not.
const (
	fullFile  = "after_java.json"
	minorFile = "after_java_minor.json"
)

// checkAsJava fails the test unless the snapshot, the manifests and the files are those that Java's
// compaction of the same table left, but for names, sizes and times, and allowedDifferences. java is a file
// of the case, ours one that listTo wrote.
func checkAsJava(t *testing.T, f fixture, java, ours string) {
	t.Helper()
	name := f.name
	if java == minorFile {
		name += minorSuffix
	}
	want, got := readDocument(t, f.file(java)), readDocument(t, ours)
	for _, d := range compare("", essentials(t, want), essentials(t, got)) {
		if why := allowed(name, d.path); why != "" {
			t.Logf("allowed: %v (%s)", d, why)
			continue
		}
		t.Error(d)
	}
}

// fileMember matches what a raw record tells of its file, which depends on where files roll.
var fileMember = regexp.MustCompile(`"_file_seq":"[^"]*","_pos":[0-9]+,`)

// checkRaw fails the test unless the records that are stored, with their sequence numbers and kinds, are
// those that Java's compaction of the same table left.
func checkRaw(t *testing.T, r *fixtureRun) {
	t.Helper()
	path := r.file("after_java_raw.jsonl")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || allowed(r.name, "raw") != "" {
		return
	}
	options := r.table.latestSchema(t).Options
	requireRows(t, sortSets(t, options, rawRecords(t, r.table)), sortSets(t, options, withoutFiles(readRows(t, path))))
}

// rawRecords are the stored records of a table, before any merge.
func rawRecords(t *testing.T, tbl table) []string {
	t.Helper()
	return withoutFiles(dump(t, tbl, "--raw"))
}

// withoutFiles sorts raw records regardless of the files that they are in.
func withoutFiles(records []string) []string {
	var all []string
	for _, r := range records {
		all = append(all, fileMember.ReplaceAllString(r, ""))
	}
	return sortedRows(all)
}

// checkAgain fails the test unless the second compaction found nothing to do and left the table alone.
func checkAgain(t *testing.T, r *fixtureRun) {
	t.Helper()
	if r.again.err != nil {
		t.Fatal(r.again.err)
	}
	if o := r.again.outcome; o.code != exitDone || o.result.Status != "nothing_to_do" {
		t.Errorf("%v, want exit %d and status nothing_to_do", o, exitDone)
	}
	requireSameTree(t, r.again.treeBefore, r.again.treeAfter)
}

// checkHistory fails the test unless the snapshot before the compaction, and the tags, can still be read.
func checkHistory(t *testing.T, r *fixtureRun) {
	t.Helper()
	if before := readList(t, r.first.filesBefore).latest(); before != 0 {
		got := dump(t, r.table, "--snapshot", strconv.FormatInt(before, 10))
		requireRows(t, got, r.rowsBefore(t))
	}
	for tag, want := range r.tags(t) {
		requireRows(t, dump(t, r.table, "--tag", tag), want)
	}
}

func deref(n *int64) string {
	if n == nil {
		return "null"
	}
	return strconv.FormatInt(*n, 10)
}
