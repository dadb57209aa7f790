package compact_test

import (
	"errors"
	"strings"
	"testing"

	"tablectl/compact"
	"tablectl/internal/fileio/faultio"
	"tablectl/snapshot"
	"tablectl/table"
)

// loseTo compacts a table with primary keys whose plan merges and lifts files,
// while another writer commits a message. It returns the error, and checks that the
// files of before are still there and that no data file was left.
func loseTo(t *testing.T, other func(base []*snapshot.ManifestEntry) snapshot.CommitMessage) error {
	t.Helper()
	files, err := faultio.ReadTree("../testdata/tables/pk-upgrade/wh.db/t", location)
	if err != nil {
		t.Fatal(err)
	}
	store := faultio.NewMemory(files)
	tbl, err := table.Load(t.Context(), store, location, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lifted int
	report, err := compact.Table(t.Context(), tbl, compact.Options{OnEvent: func(e compact.Event) {
		if e.TaskDone == nil {
			return
		}
		m := e.TaskDone.Message
		lifted = len(m.CompactAfter) - len(m.Created())
		if _, err := commit(t, tbl, []snapshot.CommitMessage{other(bucketsOf(t, tbl)[0].Files)}); err != nil {
			t.Error(err)
		}
	}})
	if lifted == 0 || len(report.Messages) != 1 {
		t.Fatalf("%d files were lifted by %d tasks", lifted, len(report.Messages))
	}
	left := store.Files()
	for p := range files {
		if _, ok := left[p]; !ok {
			t.Errorf("%s is gone", p)
		}
	}
	for p := range left {
		if _, ok := files[p]; !ok && strings.Contains(p, "/bucket-") {
			t.Errorf("%s was left", p)
		}
	}
	return err
}

// TestLiftedFilesStay fails a run whose outputs are removed: files that it only
// meant to lift hold the table's rows.
func TestLiftedFilesStay(t *testing.T) {
	err := loseTo(t, func(base []*snapshot.ManifestEntry) snapshot.CommitMessage {
		e := base[0]
		return snapshot.CommitMessage{Partition: e.Partition, Bucket: e.Bucket, TotalBuckets: e.TotalBuckets, CompactBefore: []snapshot.DataFile{e.File}}
	})
	if !errors.Is(err, snapshot.ErrConflict) || !strings.Contains(err.Error(), "no longer live") {
		t.Errorf("got %v", err)
	}
}

// TestOverlapIsAConflict lets another writer put a file on the level that the run
// writes to.
func TestOverlapIsAConflict(t *testing.T) {
	err := loseTo(t, func(base []*snapshot.ManifestEntry) snapshot.CommitMessage {
		e := base[0]
		f := e.File
		f.FileName, f.Level = "data-other.parquet", 5
		return snapshot.CommitMessage{Partition: e.Partition, Bucket: e.Bucket, TotalBuckets: e.TotalBuckets, CompactAfter: []snapshot.DataFile{f}}
	})
	if !errors.Is(err, snapshot.ErrConflict) || !strings.Contains(err.Error(), "would overlap in level 5") {
		t.Errorf("got %v", err)
	}
}
