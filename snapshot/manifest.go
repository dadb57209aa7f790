package snapshot

import (
	"fmt"
	"strings"

	"tablectl/internal/binrow"
	"tablectl/table"
)

// Kind says whether a manifest entry adds or deletes a data file.
type Kind int32

// The kinds of the reference's FileKind.
const (
	Add    Kind = 0
	Delete Kind = 1
)

// The newest layouts of the rows in manifest lists and manifests; older ones
// have not been written for years.
const (
	manifestListVersion = 2
	manifestVersion     = 2
)

// postponeBucket is the lowest bucket number: that of files whose bucket is not
// decided yet (reference: BucketMode).
const postponeBucket = -2

// SimpleStats are the bounds and null counts of some columns (reference:
// SimpleStats). Min and Max are binary rows; NullCounts has a nil for a count that
// is not known, and is itself nil where the writer stored none.
type SimpleStats struct {
	Min        []byte   `avro:"_MIN_VALUES"`
	Max        []byte   `avro:"_MAX_VALUES"`
	NullCounts []*int64 `avro:"_NULL_COUNTS"`
}

// ManifestFile is a row of a manifest list (reference: ManifestFileMeta).
type ManifestFile struct {
	Version         int32       `avro:"_VERSION"`
	FileName        string      `avro:"_FILE_NAME"`
	FileSize        int64       `avro:"_FILE_SIZE"`
	NumAddedFiles   int64       `avro:"_NUM_ADDED_FILES"`
	NumDeletedFiles int64       `avro:"_NUM_DELETED_FILES"`
	PartitionStats  SimpleStats `avro:"_PARTITION_STATS"`
	SchemaID        int64       `avro:"_SCHEMA_ID"`
	MinBucket       *int32      `avro:"_MIN_BUCKET"`
	MaxBucket       *int32      `avro:"_MAX_BUCKET"`
	MinLevel        *int32      `avro:"_MIN_LEVEL"`
	MaxLevel        *int32      `avro:"_MAX_LEVEL"`
	MinRowID        *int64      `avro:"_MIN_ROW_ID"`
	MaxRowID        *int64      `avro:"_MAX_ROW_ID"`
	TotalBuckets    *int32      `avro:"_TOTAL_BUCKETS"`
	ExtraFiles      []string    `avro:"_EXTRA_FILES"`
}

// ManifestEntry is a row of a manifest: one data file added or deleted
// (reference: ManifestEntry).
type ManifestEntry struct {
	Version      int32    `avro:"_VERSION"`
	Kind         Kind     `avro:"_KIND"`
	Partition    []byte   `avro:"_PARTITION"` // serialized binary row
	Bucket       int32    `avro:"_BUCKET"`
	TotalBuckets int32    `avro:"_TOTAL_BUCKETS"`
	File         DataFile `avro:"_FILE"`
}

// DataFile describes one data file (reference: DataFileMeta). A nil pointer or
// slice is a null.
type DataFile struct {
	FileName           string      `avro:"_FILE_NAME"`
	FileSize           int64       `avro:"_FILE_SIZE"`
	RowCount           int64       `avro:"_ROW_COUNT"`
	MinKey             []byte      `avro:"_MIN_KEY"`
	MaxKey             []byte      `avro:"_MAX_KEY"`
	KeyStats           SimpleStats `avro:"_KEY_STATS"`
	ValueStats         SimpleStats `avro:"_VALUE_STATS"`
	MinSequenceNumber  int64       `avro:"_MIN_SEQUENCE_NUMBER"`
	MaxSequenceNumber  int64       `avro:"_MAX_SEQUENCE_NUMBER"`
	SchemaID           int64       `avro:"_SCHEMA_ID"`
	Level              int32       `avro:"_LEVEL"`
	ExtraFiles         []string    `avro:"_EXTRA_FILES"`
	CreationTime       *int64      `avro:"_CREATION_TIME"` // local wall clock as if it were UTC, milliseconds
	DeleteRowCount     *int64      `avro:"_DELETE_ROW_COUNT"`
	EmbeddedFileIndex  []byte      `avro:"_EMBEDDED_FILE_INDEX"`
	FileSource         *int32      `avro:"_FILE_SOURCE"`
	ValueStatsCols     []string    `avro:"_VALUE_STATS_COLS"`
	ExternalPath       *string     `avro:"_EXTERNAL_PATH"`
	FirstRowID         *int64      `avro:"_FIRST_ROW_ID"`
	WriteCols          []string    `avro:"_WRITE_COLS"`
	WriteColsSequences []int64     `avro:"_WRITE_COLS_SEQUENCES"`
}

// FileSourceCompact is the FileSource of a file that compaction wrote.
const FileSourceCompact int32 = 1

// FileIdentity is what makes a DELETE cancel an ADD (reference:
// FileEntry.Identifier). Two entries with equal identities speak of the same file at
// the same level. It can be a map key.
type FileIdentity struct {
	partition, fileName, extraFiles, index, externalPath string
	bucket, level                                        int32
	hasIndex, hasExternalPath                            bool
}

// Identity returns the identity of the entry's file.
func (e *ManifestEntry) Identity() FileIdentity {
	id := FileIdentity{
		partition: string(e.Partition), bucket: e.Bucket, level: e.File.Level, fileName: e.File.FileName,
		extraFiles: strings.Join(e.File.ExtraFiles, "\x00"),
		index:      string(e.File.EmbeddedFileIndex), hasIndex: e.File.EmbeddedFileIndex != nil,
	}
	if p := e.File.ExternalPath; p != nil {
		id.externalPath, id.hasExternalPath = *p, true
	}
	return id
}

func (e *ManifestEntry) check() error {
	switch {
	case e.Version != manifestVersion:
		return fmt.Errorf("manifest entry has the version %d, expected %d: %w", e.Version, manifestVersion, table.ErrUnsupported)
	case e.Kind != Add && e.Kind != Delete:
		return fmt.Errorf("manifest entry has the kind %d", e.Kind)
	case e.Bucket < postponeBucket:
		return fmt.Errorf("data file %q is in the bucket %d", e.File.FileName, e.Bucket)
	case e.TotalBuckets < postponeBucket, e.TotalBuckets > 0 && e.Bucket >= e.TotalBuckets:
		return fmt.Errorf("data file %q is in the bucket %d of %d", e.File.FileName, e.Bucket, e.TotalBuckets)
	case e.File.Level < 0:
		return fmt.Errorf("data file %q is at level %d", e.File.FileName, e.File.Level)
	case e.File.SchemaID < 0 || e.File.SchemaID > maxID:
		return fmt.Errorf("data file %q has the schema %d", e.File.FileName, e.File.SchemaID)
	case e.File.FirstRowID != nil && (*e.File.FirstRowID < 0 || *e.File.FirstRowID > maxID):
		return fmt.Errorf("data file %q begins with the row id %d", e.File.FileName, *e.File.FirstRowID)
	}
	return nil
}

func (m *ManifestFile) check() error {
	if m.FileSize < 0 || m.FileSize > maxHeldFile || m.NumAddedFiles < 0 || m.NumDeletedFiles < 0 {
		return fmt.Errorf("manifest %q has %d bytes, %d additions and %d deletions", m.FileName, m.FileSize, m.NumAddedFiles, m.NumDeletedFiles)
	}
	return nil
}

// merged is the result of applying entries in order: live files in the order
// in which they were added, and deletions whose addition was not seen.
type merged struct {
	order    []FileIdentity
	live     map[FileIdentity]*ManifestEntry
	dangling map[FileIdentity]*ManifestEntry
	deletes  []FileIdentity // dangling ones, in order
}

func newMerged() *merged {
	return &merged{live: map[FileIdentity]*ManifestEntry{}, dangling: map[FileIdentity]*ManifestEntry{}}
}

// apply takes the next entry (reference: FileEntry.mergeEntries). Adding a live
// file is an error: it would count rows twice.
func (m *merged) apply(e *ManifestEntry) error {
	id := e.Identity()
	if e.Kind == Add {
		if _, ok := m.live[id]; ok {
			return fmt.Errorf("data file %s is added twice", e.File.FileName)
		}
		m.live[id] = e
		m.order = append(m.order, id)
		return nil
	}
	if _, ok := m.live[id]; ok {
		delete(m.live, id)
		return nil
	}
	if _, ok := m.dangling[id]; !ok {
		m.deletes = append(m.deletes, id)
	}
	m.dangling[id] = e
	return nil
}

// entries returns the live entries in order of addition. A file that was added,
// deleted and added again is at the place of its last addition.
func (m *merged) entries() []*ManifestEntry {
	out := make([]*ManifestEntry, 0, len(m.live))
	seen := make(map[FileIdentity]bool, len(m.live))
	for i := len(m.order) - 1; i >= 0; i-- {
		id := m.order[i]
		if e, ok := m.live[id]; ok && !seen[id] {
			seen[id] = true
			out = append(out, e)
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// emptyStats are the statistics of no columns.
func emptyStats() SimpleStats {
	return SimpleStats{Min: binrow.Empty(), Max: binrow.Empty(), NullCounts: []*int64{}}
}

// AppendKeys fills in what the files of append tables have in place of keys.
func (f *DataFile) AppendKeys() {
	f.MinKey, f.MaxKey, f.KeyStats = binrow.Empty(), binrow.Empty(), emptyStats()
}
