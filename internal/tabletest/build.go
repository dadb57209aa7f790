package tabletest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"tablectl/internal/binrow"
	"tablectl/internal/fileio"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// A Builder makes a small append table. Its data files are of this package's
// writer; its manifests and snapshots are of the product's, which tests of the
// metadata check against other implementations. The empty manifest list that every
// table begins with is one of testdata, since the product never writes one.
type Builder struct {
	Location string

	t             testing.TB
	partitionKeys []string
	options       map[string]string
	schemas       [][]types.Field
	files         int
}

// Data is a data file to add.
type Data struct {
	Partition []types.Value
	Rows      [][]any
	Options   FileOptions
	Rename    func(name string) string // of the file, unless nil
	Columns   []types.Field            // of the file, if it lacks some of the schema's

	// SchemaID is the schema to write with, less one; 0 is the latest.
	Schema int
}

// emptyCase is a table with a snapshot whose base is empty.
const emptyCase = "append-unpartitioned"

// NewTable makes a table without a snapshot.
func NewTable(t testing.TB, fields []types.Field, partitionKeys []string, options map[string]string) *Builder {
	t.Helper()
	b := &Builder{t: t, Location: filepath.Join(t.TempDir(), "wh.db", "t"), partitionKeys: partitionKeys, options: options}
	b.Evolve(fields)
	return b
}

// Evolve adds a schema.
func (b *Builder) Evolve(fields []types.Field) {
	b.t.Helper()
	id := len(b.schemas)
	b.schemas = append(b.schemas, fields)
	highest := 0
	for _, fs := range b.schemas {
		highest = max(highest, highestID(fs))
	}
	options := b.options
	if options == nil {
		options = map[string]string{}
	}
	keys := b.partitionKeys
	if keys == nil {
		keys = []string{}
	}
	b.write(filepath.Join("schema", fmt.Sprintf("schema-%d", id)), map[string]any{
		"version": 3, "id": id, "fields": fieldsJSON(fields), "highestFieldId": highest, "partitionKeys": keys,
		"primaryKeys": []string{}, "options": options, "timeMillis": 1,
	})
}

// Load opens the table.
func (b *Builder) Load(overrides map[string]string) *table.Table {
	b.t.Helper()
	return Load(b.t, b.Location, overrides)
}

// Append adds data files and publishes them as one snapshot.
func (b *Builder) Append(files ...Data) {
	b.t.Helper()
	ctx, tbl := b.t.Context(), b.Load(nil)
	base, err := snapshot.Latest(ctx, tbl)
	if err == nil && base == nil {
		b.firstSnapshot(tbl)
		base, err = snapshot.Latest(ctx, tbl)
	}
	if err != nil {
		b.t.Fatalf("find the latest snapshot: %v", err)
	}
	messages := make([]snapshot.CommitMessage, len(files))
	for i, d := range files {
		partition := binrow.Encode(tbl.Schema.PartitionTypes(), d.Partition)
		messages[i] = snapshot.CommitMessage{
			Partition: partition, TotalBuckets: -1, CompactAfter: []snapshot.DataFile{b.dataFile(tbl, partition, d)},
		}
	}
	done, err := snapshot.Commit(ctx, tbl, base, messages, snapshot.CommitOptions{User: uuid.NewString(), Now: time.Now, NewUUID: uuid.NewString})
	if err != nil {
		b.t.Fatalf("commit data files: %v", err)
	}
	done.Snapshot.CommitKind = snapshot.Append
	b.publish(tbl, done.Snapshot)
}

// firstSnapshot publishes a snapshot of no files.
func (b *Builder) firstSnapshot(tbl *table.Table) {
	b.t.Helper()
	from := Load(b.t, File(b.t, emptyCase, "wh.db/t"), nil)
	s, err := snapshot.Read(b.t.Context(), from, 1)
	if err != nil {
		b.t.Fatalf("read a snapshot of testdata: %v", err)
	}
	data, err := os.ReadFile(File(b.t, emptyCase, "wh.db/t/manifest/"+s.BaseManifestList))
	if err != nil {
		b.t.Fatalf("read an empty manifest list: %v", err)
	}
	const name = "manifest-list-empty"
	b.writeBytes(filepath.Join("manifest", name), data)
	s.BaseManifestList, s.DeltaManifestList = name, name
	size := int64(len(data))
	s.BaseManifestListSize, s.DeltaManifestListSize = &size, &size
	s.TotalRecordCount, s.DeltaRecordCount = 0, 0
	b.publish(tbl, s)
}

func (b *Builder) publish(tbl *table.Table, s *snapshot.Snapshot) {
	b.t.Helper()
	data, err := s.Encode()
	if err == nil {
		err = tbl.IO.Put(b.t.Context(), tbl.SnapshotPath(s.ID), data, fileio.Replace)
	}
	if err != nil {
		b.t.Fatalf("write snapshot %d: %v", s.ID, err)
	}
}

func (b *Builder) dataFile(tbl *table.Table, partition []byte, d Data) snapshot.DataFile {
	b.t.Helper()
	schema := len(b.schemas) - 1
	if d.Schema > 0 {
		schema = d.Schema - 1
	}
	columns := b.schemas[schema]
	if d.Columns != nil {
		columns = d.Columns
	}
	data, err := WriteFile(columns, d.Rows, d.Options)
	if err != nil {
		b.t.Fatalf("write a data file: %v", err)
	}
	name := fmt.Sprintf("data-%08d-0000-4000-8000-000000000000-0.parquet", b.files)
	b.files++
	if d.Rename != nil {
		name = d.Rename(name)
	}
	path, err := tbl.FilePath(partition, 0, name)
	if err != nil {
		b.t.Fatalf("place a data file: %v", err)
	}
	rel, err := filepath.Rel(b.Location, path)
	if err != nil {
		b.t.Fatalf("place a data file: %v", err)
	}
	b.writeBytes(rel, data)
	created, noDeletes, appended := int64(1), int64(0), int32(0)
	f := snapshot.DataFile{
		FileName: name, FileSize: int64(len(data)), RowCount: int64(len(d.Rows)), MaxSequenceNumber: int64(len(d.Rows)) - 1,
		SchemaID: int64(schema), ExtraFiles: []string{}, CreationTime: &created, DeleteRowCount: &noDeletes, FileSource: &appended,
		ValueStatsCols: []string{},
	}
	f.AppendKeys()
	f.ValueStats = f.KeyStats // of no columns
	return f
}

func (b *Builder) write(name string, content any) {
	b.t.Helper()
	data, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		b.t.Fatalf("encode %s: %v", name, err)
	}
	b.writeBytes(name, data)
}

func (b *Builder) writeBytes(name string, data []byte) {
	b.t.Helper()
	path := filepath.Join(b.Location, name)
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		err = os.WriteFile(path, data, 0o666)
	}
	if err != nil {
		b.t.Fatalf("write %s: %v", name, err)
	}
}

func highestID(fields []types.Field) int {
	highest := 0
	for _, f := range fields {
		highest = max(highest, f.ID, highestIn(f.Type))
	}
	return highest
}

func highestIn(t types.Type) int {
	highest := highestID(t.Fields)
	for _, part := range []*types.Type{t.Key, t.Element} {
		if part != nil {
			highest = max(highest, highestIn(*part))
		}
	}
	return highest
}

func fieldsJSON(fields []types.Field) []any {
	out := make([]any, len(fields))
	for i, f := range fields {
		out[i] = map[string]any{"id": f.ID, "name": f.Name, "type": typeJSON(f.Type)}
	}
	return out
}

// typeJSON is a type as schema files hold it.
func typeJSON(t types.Type) any {
	name := t.Kind.String()
	if t.NotNull {
		name += " NOT NULL"
	}
	switch t.Kind {
	case types.Array, types.Multiset:
		return map[string]any{"type": name, "element": typeJSON(*t.Element)}
	case types.Map:
		return map[string]any{"type": name, "key": typeJSON(*t.Key), "value": typeJSON(*t.Element)}
	case types.Row:
		return map[string]any{"type": name, "fields": fieldsJSON(t.Fields)}
	}
	return t.String()
}

// Columns parses a list of columns, "name type" each, for tables of scalars,
// numbered from 0.
func Columns(t testing.TB, columns ...[2]string) []types.Field {
	t.Helper()
	fields := make([]types.Field, len(columns))
	for i, c := range columns {
		typ, err := types.Parse(c[1])
		if err != nil {
			t.Fatalf("column %s: %v", c[0], err)
		}
		fields[i] = types.Field{ID: i, Name: c[0], Type: typ}
	}
	return fields
}
