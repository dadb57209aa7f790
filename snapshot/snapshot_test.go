package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"tablectl/table"
)

// members decodes JSON without losing digits, without what ParseSnapshot may
// drop: nulls and logOffsets.
func members(t testing.TB, data []byte) map[string]any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var all map[string]any
	if err := dec.Decode(&all); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(all, func(k string, v any) bool { return v == nil || k == "logOffsets" })
	return all
}

// TestSnapshotFiles reads every snapshot and tag of testdata and writes it again.
func TestSnapshotFiles(t *testing.T) {
	n, same := 0, 0
	for _, folder := range []string{"snapshot", "tag", "branch/*/snapshot", "branch/*/tag"} {
		for _, prefix := range []string{"snapshot-", "tag-"} {
			if strings.HasSuffix(folder, "snapshot") != (prefix == "snapshot-") || folder == "branch/*/tag" {
				continue
			}
			metadata(t, folder, prefix, func(table, path string, data []byte) {
				n++
				s, err := ParseSnapshot(data)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					return
				}
				again, err := s.Encode()
				if err != nil {
					t.Errorf("%s: %v", path, err)
					return
				}
				if want, got := members(t, data), members(t, again); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: wrote %v, want %v", path, got, want)
				}
				if strings.HasPrefix(table, "written-by-") || prefix == "tag-" {
					return
				}
				same++
				if !bytes.Equal(again, data) {
					t.Errorf("%s: wrote\n%s\nwant\n%s", path, again, data)
				}
			})
		}
	}
	if n < 300 || same < 250 {
		t.Errorf("only %d files, %d of Java 1.4.2", n, same)
	}
}

const full = `{
  "version" : 3, "uuid" : "u", "id" : 7, "schemaId" : 2, "baseManifestList" : "b", "baseManifestListSize" : 1,
  "deltaManifestList" : "d", "deltaManifestListSize" : 2, "changelogManifestList" : "c", "changelogManifestListSize" : 3,
  "indexManifest" : "i", "commitUser" : "me", "writerVersion" : "w", "commitIdentifier" : 9223372036854775807,
  "commitKind" : "OVERWRITE", "timeMillis" : 4, "totalRecordCount" : 5, "deltaRecordCount" : -6, "changelogRecordCount" : 8,
  "watermark" : -9223372036854775808, "statistics" : "s", "properties" : { "a : \"b\"" : "<c>", "k" : "v" }, "nextRowId" : 9,
  "operation" : "WRITE"
}`

func TestEverySnapshotMember(t *testing.T) {
	s, err := ParseSnapshot([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		if f := v.Type().Field(i); v.Field(i).IsZero() != (f.Name == "Unknown") {
			t.Errorf("%s is %v", f.Name, v.Field(i))
		}
	}
	again, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(members(t, again), members(t, []byte(full))) {
		t.Errorf("wrote %s", again)
	}
	if !bytes.Contains(again, []byte(`    "a : \"b\"" : "<c>",`)) {
		t.Errorf("not as Java prints it: %s", again)
	}
}

func TestUnknownSnapshotMembers(t *testing.T) {
	text := strings.Replace(full, "{", `{ "new" : { "deep" : [ 1, null ] }, "statistics2" : null, "logOffsets" : { "0" : 1 },`, 1)
	s, err := ParseSnapshot([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Unknown) != 2 || s.Unknown["new"] == nil || s.Unknown["statistics2"] == nil {
		t.Errorf("kept %v", s.Unknown)
	}
	again, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(members(t, again), members(t, []byte(text))) || bytes.Contains(again, []byte("logOffsets")) {
		t.Errorf("wrote %s", again)
	}
}

// TestSnapshotMemberCase has members that differ from known ones in case only.
func TestSnapshotMemberCase(t *testing.T) {
	s, err := ParseSnapshot([]byte(strings.TrimSuffix(full, "\n}") + `, "ID" : 70, "commituser" : "you" }`))
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != 7 || s.CommitUser != "me" || len(s.Unknown) != 2 {
		t.Errorf("snapshot %d of %q, unknown %v", s.ID, s.CommitUser, s.Unknown)
	}
}

// Old writers spell out nulls, and leave out the version.
const old = `{"id":1,"schemaId":0,"baseManifestList":"b","baseManifestListSize":null,"deltaManifestList":"d","changelogManifestList":null,
	"indexManifest":null,"commitUser":"u","commitIdentifier":1,"commitKind":"APPEND","timeMillis":1,"logOffsets":{},"totalRecordCount":null,
	"deltaRecordCount":null,"watermark":null,"statistics":null,"properties":null,"nextRowId":null}`

func TestOldSnapshot(t *testing.T) {
	s, err := ParseSnapshot([]byte(old))
	if err != nil {
		t.Fatal(err)
	}
	want := &Snapshot{Version: 1, ID: 1, BaseManifestList: "b", DeltaManifestList: "d", CommitUser: "u", CommitIdentifier: 1, CommitKind: Append, TimeMillis: 1}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v", s)
	}
}

func TestParseSnapshotErrors(t *testing.T) {
	for _, c := range []struct{ from, to, message string }{
		{`"id":1`, `"id":null`, `"id" is missing`},
		{`"id":1,`, ``, `"id" is missing`},
		{`"id":1`, `"id":"1"`, "parse snapshot"},
		{`"commitUser":"u",`, ``, `"commitUser" is missing`},
		{`"deltaManifestList":"d",`, ``, `"deltaManifestList" is missing`},
		{`"APPEND"`, `"SPLIT"`, `unknown commit kind "SPLIT"`},
		{`{"id":1`, `{"version":4,"id":1`, "version 4 is newer"},
		{`}`, ``, "parse snapshot"},
		{old, `[]`, "parse snapshot"},
		{old, ``, "parse snapshot"},
	} {
		if _, err := ParseSnapshot([]byte(strings.Replace(old, c.from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.message) || errors.Is(err, table.ErrUnsupported) != strings.Contains(c.message, "newer") {
			t.Errorf("%s → %s: got %v", c.from, c.to, err)
		}
	}
}

func FuzzParseSnapshot(f *testing.F) {
	metadata(f, "snapshot", "snapshot-1", func(_, _ string, data []byte) { f.Add(data) })
	f.Add([]byte(full))
	f.Add([]byte(old))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSnapshot(data)
		if err != nil || s.ID < 1 || s.CommitUser == "" {
			return
		}
		first, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseSnapshot(first)
		if err != nil {
			t.Fatalf("cannot read back %s: %v", first, err)
		}
		second, err := again.Encode()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("wrote %s, then %s: %v", first, second, err)
		}
		again.Unknown, s.Unknown = nil, nil
		if fmt.Sprintf("%+v", deref(again)) != fmt.Sprintf("%+v", deref(s)) {
			t.Fatalf("read %+v, then %+v", deref(s), deref(again))
		}
	})
}

// deref shows a snapshot with the values behind its pointers.
func deref(s *Snapshot) string {
	data, err := json.Marshal(s)
	return fmt.Sprint(string(data), err)
}
