// Package snapshot reads and publishes versions of a table.
//
// A Snapshot is one version: it names a base manifest list (everything before
// it), a delta manifest list (what it changed), and, where the table has them, an
// index manifest and statistics. A manifest list holds a ManifestFile for
// each manifest; a manifest holds a ManifestEntry for each data file that was
// added or deleted. The live files of a snapshot are the added ones that were not
// deleted since, matched by their FileIdentity. A CommitMessage is what one
// compaction task changed in one bucket; Commit turns messages into one snapshot
// of kind COMPACT, or changes nothing.
package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tablectl/table"
)

// CommitKind says what a snapshot did to the table.
type CommitKind string

// The kinds of the reference's Snapshot.CommitKind.
const (
	Append    CommitKind = "APPEND"
	Compact   CommitKind = "COMPACT"
	Overwrite CommitKind = "OVERWRITE"
	Analyze   CommitKind = "ANALYZE"
)

// BatchIdentifier is the commit identifier of every batch commit, Java's
// Long.MAX_VALUE.
const BatchIdentifier = 1<<63 - 1

const snapshotVersion = 3

// Snapshot is the content of a file snapshot/snapshot-<id> (reference:
// Snapshot). Pointers are members that may be absent.
type Snapshot struct {
	Version                   int               `json:"version"`
	UUID                      *string           `json:"uuid,omitempty"`
	ID                        int64             `json:"id"`
	SchemaID                  int64             `json:"schemaId"`
	BaseManifestList          string            `json:"baseManifestList"`
	BaseManifestListSize      *int64            `json:"baseManifestListSize,omitempty"`
	DeltaManifestList         string            `json:"deltaManifestList"`
	DeltaManifestListSize     *int64            `json:"deltaManifestListSize,omitempty"`
	ChangelogManifestList     *string           `json:"changelogManifestList,omitempty"`
	ChangelogManifestListSize *int64            `json:"changelogManifestListSize,omitempty"`
	IndexManifest             *string           `json:"indexManifest,omitempty"`
	CommitUser                string            `json:"commitUser"`
	WriterVersion             *string           `json:"writerVersion,omitempty"`
	CommitIdentifier          int64             `json:"commitIdentifier"`
	CommitKind                CommitKind        `json:"commitKind"`
	TimeMillis                int64             `json:"timeMillis"`
	TotalRecordCount          int64             `json:"totalRecordCount"`
	DeltaRecordCount          int64             `json:"deltaRecordCount"`
	ChangelogRecordCount      *int64            `json:"changelogRecordCount,omitempty"`
	Watermark                 *int64            `json:"watermark,omitempty"`
	Statistics                *string           `json:"statistics,omitempty"`
	Properties                map[string]string `json:"properties,omitempty"`
	NextRowID                 *int64            `json:"nextRowId,omitempty"`
	Operation                 *string           `json:"operation,omitempty"`

	// Unknown holds members that are not known here, so that a snapshot that is
	// read and written again keeps them. A new snapshot does not inherit them.
	Unknown map[string]json.RawMessage `json:"-"`
}

// ParseSnapshot reads a snapshot file. Explicit nulls and members that are not
// known are accepted; a missing member that every snapshot has is an error.
func ParseSnapshot(data []byte) (*Snapshot, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, fmt.Errorf("parse snapshot: %w", err)
	}
	// Go's decoder does not look at the case of names, but ID is not id.
	known := map[string]json.RawMessage{}
	for _, m := range knownMembers {
		if raw, ok := members[m]; ok {
			known[m] = raw
			delete(members, m)
		}
	}
	exact, err := json.Marshal(known)
	if err != nil {
		return nil, fmt.Errorf("parse snapshot: %w", err)
	}
	s := &Snapshot{Version: 1}
	if err := json.Unmarshal(exact, s); err != nil {
		return nil, fmt.Errorf("parse snapshot: %w", err)
	}
	for _, m := range []string{
		"id", "schemaId", "baseManifestList", "deltaManifestList", "commitUser", "commitIdentifier", "commitKind", "timeMillis",
	} {
		if raw, ok := known[m]; !ok || bytes.Equal(raw, []byte("null")) {
			return nil, fmt.Errorf("parse snapshot: member %q is missing", m)
		}
	}
	if s.Version > snapshotVersion {
		return nil, fmt.Errorf("parse snapshot: version %d is newer than %d: %w", s.Version, snapshotVersion, table.ErrUnsupported)
	}
	switch s.CommitKind {
	case Append, Compact, Overwrite, Analyze:
	default:
		return nil, fmt.Errorf("parse snapshot: unknown commit kind %q", s.CommitKind)
	}
	if err := s.checkNumbers(); err != nil {
		return nil, fmt.Errorf("parse snapshot: %w", err)
	}
	delete(members, "logOffsets") // a leftover of older writers
	if len(members) > 0 {
		s.Unknown = members
	}
	return s, nil
}

// checkNumbers refuses what no table reaches and what could not be added to. A total
// may be below zero: old writers left it out, and merges make rows fewer.
func (s *Snapshot) checkNumbers() error {
	switch {
	case s.ID < 1 || s.ID > maxID:
		return fmt.Errorf("member \"id\" is %d", s.ID)
	case s.SchemaID < 0 || s.SchemaID > maxID:
		return fmt.Errorf("member \"schemaId\" is %d", s.SchemaID)
	case s.TotalRecordCount < -maxRows || s.TotalRecordCount > maxRows:
		return fmt.Errorf("member \"totalRecordCount\" is %d", s.TotalRecordCount)
	case s.DeltaRecordCount < -maxRows || s.DeltaRecordCount > maxRows:
		return fmt.Errorf("member \"deltaRecordCount\" is %d", s.DeltaRecordCount)
	case s.NextRowID != nil && (*s.NextRowID < 0 || *s.NextRowID > maxID):
		return fmt.Errorf("member \"nextRowId\" is %d", *s.NextRowID)
	}
	return nil
}

var knownMembers = func() []string {
	one, text := int64(1), "x"
	full := Snapshot{
		UUID: &text, BaseManifestListSize: &one, DeltaManifestListSize: &one, ChangelogManifestList: &text,
		ChangelogManifestListSize: &one, IndexManifest: &text, WriterVersion: &text, ChangelogRecordCount: &one,
		Watermark: &one, Statistics: &text, Properties: map[string]string{"k": "v"}, NextRowID: &one, Operation: &text,
	}
	data, _ := json.Marshal(full)
	var members map[string]json.RawMessage
	_ = json.Unmarshal(data, &members)
	return slices.Collect(maps.Keys(members))
}()

// Encode writes the snapshot as the reference does: members in its order, null
// ones left out, pretty-printed. Unknown members follow, sorted.
func (s *Snapshot) Encode() ([]byte, error) {
	if s.CommitUser == "" || s.ID < 1 {
		return nil, errors.New("encode snapshot: id or commit user is missing")
	}
	var flat bytes.Buffer
	enc := json.NewEncoder(&flat)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	body := bytes.TrimSuffix(bytes.TrimSpace(flat.Bytes()), []byte("}"))
	for _, k := range slices.Sorted(maps.Keys(s.Unknown)) {
		name, err := json.Marshal(k)
		if err != nil {
			return nil, fmt.Errorf("encode snapshot: %w", err)
		}
		body = slices.Concat(body, []byte(","), name, []byte(":"), s.Unknown[k])
	}
	var out bytes.Buffer
	if err := json.Indent(&out, append(body, '}'), "", "  "); err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	return javaStyle(out.Bytes()), nil
}

// javaStyle puts the blank before the colon that the reference's printer has.
// Only the quote that ends a member's name is followed by a colon and a blank
// outside of strings, and json.Indent puts each on a line of its own.
func javaStyle(pretty []byte) []byte {
	lines := bytes.Split(pretty, []byte("\n"))
	for i, line := range lines {
		trimmed := bytes.TrimLeft(line, " ")
		if len(trimmed) == 0 || trimmed[0] != '"' {
			continue
		}
		end := 1
		for end < len(trimmed) && trimmed[end] != '"' {
			if trimmed[end] == '\\' {
				end++
			}
			end++
		}
		if rest := trimmed[min(end+1, len(trimmed)):]; bytes.HasPrefix(rest, []byte(": ")) {
			at := len(line) - len(rest)
			lines[i] = slices.Concat(line[:at], []byte(" "), line[at:])
		}
	}
	return bytes.Join(lines, []byte("\n"))
}
