package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tablectl/internal/fileio"
	"tablectl/internal/fileio/faultio"
	"tablectl/table"
)

// TestCommitMembers checks every member of a new snapshot.
func TestCommitMembers(t *testing.T) {
	store, tbl := openTable(t, "statistics-watermark-properties", 0)
	base := latest(t, tbl)
	base.IndexManifest, base.Unknown = ptr("index-manifest-x"), map[string]json.RawMessage{"new": []byte("1")}
	base.NextRowID = ptr[int64](77)
	write(t, store, tbl, base)
	b := firstLive(t, tbl, base)
	now := time.UnixMilli(1234567890123)
	var before []string
	uuids := 0
	done, err := Commit(t.Context(), tbl, base, []CommitMessage{message(b, b.Files[:2], "new")}, CommitOptions{
		User: "me", WriterVersion: "tablectl x", Now: func() time.Time { return now },
		NewUUID:       func() string { uuids++; return fmt.Sprint("uuid-", uuids) },
		BeforePublish: func(id int64) { before = append(before, fmt.Sprint(id)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	size := func(name string) *int64 {
		n := int64(len(store.Files()[location+"/manifest/"+name]))
		return &n
	}
	delta := 10 - b.Files[0].File.RowCount - b.Files[1].File.RowCount
	want := &Snapshot{
		Version: 3, UUID: ptr("uuid-2"), ID: base.ID + 1, SchemaID: 0,
		BaseManifestList: "manifest-list-uuid-1-1", BaseManifestListSize: size("manifest-list-uuid-1-1"),
		DeltaManifestList: "manifest-list-uuid-1-0", DeltaManifestListSize: size("manifest-list-uuid-1-0"),
		IndexManifest: base.IndexManifest, CommitUser: "me", WriterVersion: ptr("tablectl x"), CommitIdentifier: 1<<63 - 1, CommitKind: "COMPACT",
		TimeMillis: 1234567890123, TotalRecordCount: base.TotalRecordCount + delta, DeltaRecordCount: delta,
		Watermark: base.Watermark, Statistics: base.Statistics, NextRowID: ptr[int64](77),
	}
	if base.Watermark == nil || base.Statistics == nil || base.Properties == nil {
		t.Fatalf("the fixture has changed: %+v", base)
	}
	if !reflect.DeepEqual(done.Snapshot, want) || !reflect.DeepEqual(latest(t, tbl), want) || done.Attempts != 1 || done.Warnings != nil {
		t.Errorf("got %s, want %s", asJSON(t, done), asJSON(t, want))
	}
	if hint := store.Files()[location+"/snapshot/LATEST"]; hint != fmt.Sprint(want.ID) || !slices.Equal(before, []string{hint}) {
		t.Errorf("the hint is %q, announced were %v", hint, before)
	}
}

// write puts a snapshot in the place of the one that is there.
func write(t testing.TB, store *faultio.Memory, tbl *table.Table, s *Snapshot) {
	t.Helper()
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	store.Set(tbl.SnapshotPath(s.ID), string(data))
}

// TestCommitAfterSchemaChange drops statistics, which speak of columns, and takes
// the newest schema.
func TestCommitAfterSchemaChange(t *testing.T) {
	store, tbl := openTable(t, "statistics-watermark-properties", 0)
	store.Set(location+"/schema/schema-1", strings.Replace(store.Files()[location+"/schema/schema-0"], `"id" : 0`, `"id" : 1`, 1))
	s := commitAll(t, tbl)
	if s.SchemaID != 1 || s.Statistics != nil || s.Watermark == nil {
		t.Errorf("got %s", asJSON(t, s))
	}
}

func TestCommitNextRowID(t *testing.T) {
	store, tbl := openTable(t, "append-partitioned", 2)
	base := latest(t, tbl)
	base.NextRowID = nil // as old writers leave it
	write(t, store, tbl, base)
	if s := commitAll(t, tbl); s.NextRowID == nil || *s.NextRowID != 0 {
		t.Errorf("got %v", s.NextRowID)
	}
}

// TestCommitEntries checks that deletions are the entries that were planned, in
// front of the additions, and what the option makes of their statistics.
func TestCommitEntries(t *testing.T) {
	for _, drop := range []bool{false, true} {
		_, tbl := openTable(t, "append-bucketed", 0)
		tbl.Options.DeleteFileDropStats = drop
		b := firstLive(t, tbl, latest(t, tbl))
		s := commitAll(t, tbl, message(b, b.Files, "new-1", "new-2"))
		rows, err := ReadManifestList(t.Context(), tbl, s.DeltaManifestList)
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		var got, want []ManifestEntry
		if err := ReadManifest(t.Context(), tbl, rows[0].FileName, func(e *ManifestEntry) error { got = append(got, *e); return nil }); err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Files {
			d := *e
			d.Kind = Delete
			if drop {
				d.File.ValueStats, d.File.ValueStatsCols = emptyStats(), []string{}
			}
			want = append(want, d)
		}
		for _, name := range []string{"new-1", "new-2"} {
			want = append(want, ManifestEntry{Version: 2, Partition: b.Partition, Bucket: b.Number, TotalBuckets: 2, File: newFile(name, 10)})
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("drop %v: got %s, want %s", drop, asJSON(t, got), asJSON(t, want))
		}
	}
}

// TestKeptManifestRows commits to tables of writers with columns of their own in
// manifest lists. Rows that are kept say the same afterwards.
func TestKeptManifestRows(t *testing.T) {
	for _, name := range []string{"written-by-rust-append", "written-by-pypaimon-append", "written-by-java-0.8-append"} {
		store, tbl := openTable(t, name, 0)
		s := latest(t, tbl)
		rows, err := manifests(t.Context(), tbl, s)
		if err != nil || len(rows) < 3 {
			t.Fatal(len(rows), err)
		}
		for i := range rows {
			rows[i].TotalBuckets, rows[i].ExtraFiles = ptr(int32(i)), []string{rows[i].FileName + ".avro.sidecar"}
		}
		rows[0].TotalBuckets, rows[1].ExtraFiles = nil, nil
		store.Set(location+"/manifest/base", string(mustEncode(t, rows)))
		store.Set(location+"/manifest/delta", string(mustEncode(t, nil)))
		s.BaseManifestList, s.DeltaManifestList = "base", "delta"
		write(t, store, tbl, s)
		for range 2 {
			b := firstLive(t, tbl, s)
			s = commitAll(t, tbl, message(b, b.Files[:1], "new"+fmt.Sprint(s.ID)))
			kept, err := ReadManifestList(t.Context(), tbl, s.BaseManifestList)
			if err != nil || len(kept) < len(rows) || !reflect.DeepEqual(kept[:len(rows)], rows) {
				t.Errorf("%s: kept %s, want %s", name, asJSON(t, kept), asJSON(t, rows))
			}
		}
		_, header := generic(t, []byte(store.Files()[location+"/manifest/"+s.DeltaManifestList]))
		if strings.Contains(header["avro.schema"], "_TOTAL_BUCKETS") {
			t.Errorf("%s: a list without the columns has them", name)
		}
	}
}

func TestCommitConflicts(t *testing.T) {
	bucketed := func(t *testing.T) (*faultio.Memory, *table.Table, Bucket) {
		store, tbl := openTable(t, "append-bucketed", 0)
		return store, tbl, firstLive(t, tbl, latest(t, tbl))
	}
	for _, c := range []struct {
		name    string
		prepare func(tbl *table.Table, b Bucket) []CommitMessage
		message string // of the conflict; "" is success
	}{
		{"nothing happened", func(_ *table.Table, b Bucket) []CommitMessage { return []CommitMessage{message(b, b.Files, "x")} }, ""},
		{"an input is gone", func(tbl *table.Table, b Bucket) []CommitMessage {
			commitAll(t, tbl, message(b, b.Files[2:3], "other"))
			return []CommitMessage{message(b, b.Files, "x")}
		}, "no longer live"},
		{"a file of another name is gone", func(tbl *table.Table, b Bucket) []CommitMessage {
			commitAll(t, tbl, message(b, b.Files[2:3], "other"))
			return []CommitMessage{message(b, b.Files[:2], "x")}
		}, ""},
		{"an input is at another level", func(tbl *table.Table, b Bucket) []CommitMessage {
			up := message(b, b.Files[:1])
			f := b.Files[0].File
			f.Level = 1
			up.CompactAfter = append(up.CompactAfter, f)
			commitAll(t, tbl, up)
			return []CommitMessage{message(b, b.Files, "x")}
		}, "no longer live"},
		{"a live file is added", func(_ *table.Table, b Bucket) []CommitMessage {
			return []CommitMessage{message(b, b.Files[:2], b.Files[3].File.FileName)}
		}, "added twice"},
		{"others have more buckets", func(tbl *table.Table, b Bucket) []CommitMessage {
			buckets, err := LiveFiles(t.Context(), tbl, latest(t, tbl), table.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			var drop, rescale []CommitMessage
			for _, b := range buckets {
				drop = append(drop, message(b, b.Files))
				b.TotalBuckets = 4
				rescale = append(rescale, message(b, nil, "rescaled"))
			}
			commitAll(t, tbl, drop...)
			commitAll(t, tbl, rescale...)
			return []CommitMessage{message(b, nil, "x")}
		}, "buckets"},
		{"the snapshot is gone", func(tbl *table.Table, b Bucket) []CommitMessage {
			if err := tbl.IO.Remove(t.Context(), tbl.SnapshotPath(6)); err != nil {
				t.Fatal(err)
			}
			return []CommitMessage{message(b, b.Files, "x")}
		}, "is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, tbl, b := bucketed(t)
			base := latest(t, tbl)
			messages := c.prepare(tbl, b)
			before := store.Files()
			_, err := Commit(t.Context(), tbl, base, messages, options("me"))
			if c.message == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), c.message) || errors.Is(err, ErrCommitUnknown) {
				t.Errorf("got %v", err)
			}
			if !maps.Equal(store.Files(), before) {
				t.Errorf("the table was changed")
			}
		})
	}
}

// TestPartOfTheMessages lets others change what some of the messages change, before
// the commit or while it is about to publish: only these are given up.
func TestPartOfTheMessages(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
			store, tbl := openTable(t, "append-partitioned", 2)
			tbl.Options.CommitMinRetryMillis = 1
			base := latest(t, tbl)
			buckets, err := LiveFiles(t.Context(), tbl, base, table.Filter{})
			if err != nil || len(buckets) < 3 {
				t.Fatal(buckets, err)
			}
			before := orphans(t, tbl) // of the snapshots that the table had later
			others := func() { commitAll(t, load(t, store), message(buckets[1], buckets[1].Files[:1], "other")) }
			var messages []CommitMessage
			for i, b := range buckets[:3] {
				messages = append(messages, message(b, b.Files, fmt.Sprint("ours-", i)))
			}
			o, tries := options("me"), 0
			o.BeforePublish = func(int64) {
				if tries++; late && tries == 1 {
					others()
				}
			}
			if !late {
				others()
			}
			done, err := Commit(t.Context(), tbl, base, messages, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(done.Lost) != 1 || done.Lost[0].Index != 1 || !errors.Is(done.Lost[0].Err, ErrConflict) ||
				!strings.Contains(done.Lost[0].Err.Error(), buckets[1].Files[0].File.FileName) {
				t.Errorf("lost %v", done.Lost)
			}
			live := liveNames(t, tbl, done.Snapshot)
			for name, want := range map[string]bool{"ours-0": true, "ours-1": false, "ours-2": true, "other": true} {
				if slices.Contains(live, name) != want {
					t.Errorf("%s is live: %v", name, !want)
				}
			}
			delta := int64(20)
			for _, b := range []Bucket{buckets[0], buckets[2]} {
				for _, e := range b.Files {
					delta -= e.File.RowCount
				}
			}
			if done.Snapshot.DeltaRecordCount != delta {
				t.Errorf("%d rows more, want %d", done.Snapshot.DeltaRecordCount, delta)
			}
			if left := orphans(t, tbl); !slices.Equal(left, before) {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestCollidingMessages commits nothing when two messages are about one file.
func TestCollidingMessages(t *testing.T) {
	store, tbl := openTable(t, "append-bucketed", 0)
	base := latest(t, tbl)
	b := firstLive(t, tbl, base)
	before := store.Files()
	for _, messages := range [][]CommitMessage{
		{message(b, b.Files[:2], "x"), message(b, b.Files[1:3], "y")},
		{message(b, b.Files[:2], "x"), message(b, b.Files[2:4], "x")},
	} {
		_, err := Commit(t.Context(), tbl, base, messages, options("me"))
		if err == nil || errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "in two compaction messages") {
			t.Errorf("got %v", err)
		}
	}
	if !maps.Equal(store.Files(), before) {
		t.Error("the table was changed")
	}
}

// TestAddAfterDelete lets one commit delete and add files of one name.
func TestAddAfterDelete(t *testing.T) {
	_, tbl := openTable(t, "append-bucketed", 0)
	s := latest(t, tbl)
	b, want := firstLive(t, tbl, s), liveNames(t, tbl, s)
	name := b.Files[1].File.FileName
	s = commitAll(t, tbl, message(b, b.Files[1:2], name))
	if got := liveNames(t, tbl, s); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRetriesEnd loses every race.
func TestRetriesEnd(t *testing.T) {
	store, tbl := openTable(t, "append-bucketed", 0)
	rival := load(t, store)
	tbl.Options.CommitMaxRetries, tbl.Options.CommitMinRetryMillis = 3, 1
	b := firstLive(t, tbl, latest(t, tbl))
	attempts := 0
	o := options("me")
	o.BeforePublish = func(int64) { attempts++; commitAll(t, rival) }
	_, err := Commit(t.Context(), tbl, latest(t, tbl), []CommitMessage{message(b, b.Files, "x")}, o)
	if !errors.Is(err, ErrConflict) || attempts != 4 || !strings.Contains(err.Error(), "after 4 attempts") {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
	if left := orphans(t, tbl); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	tbl.Options.CommitMaxRetries, tbl.Options.CommitTimeoutMillis, attempts = 1000, 20, 0
	o.BeforePublish = func(int64) { attempts++; commitAll(t, rival); time.Sleep(15 * time.Millisecond) }
	if _, err := Commit(t.Context(), tbl, latest(t, tbl), []CommitMessage{message(b, b.Files, "x")}, o); !errors.Is(err, ErrConflict) || attempts > 3 {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
}

// orphans are the metadata files that no snapshot refers to.
func orphans(t testing.TB, tbl *table.Table) []string {
	t.Helper()
	used := map[string]bool{}
	all, err := All(t.Context(), tbl)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		rows, err := manifests(t.Context(), tbl, s)
		if err != nil {
			t.Fatal(err)
		}
		used[s.BaseManifestList], used[s.DeltaManifestList] = true, true
		for _, r := range rows {
			used[r.FileName] = true
		}
	}
	infos, err := tbl.IO.List(t.Context(), location+"/manifest")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	infos = slices.DeleteFunc(infos, func(i fileio.Info) bool { return used[i.Name] })
	var names []string
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return names
}
