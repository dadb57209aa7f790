package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"tablectl/table"
)

// The Avro schemas that the reference writes. Readers, ours included, find
// fields by name under the schema in the file's header, so a file of any writer
// can be read: plain records or ["null", record], fewer or more columns, other
// record names.
const (
	avroNamespace = "org.apache.paimon.avro.generated"

	statsAvro = `{"type":"record","name":"%s","fields":[` +
		`{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},` +
		`{"name":"_NULL_COUNTS","type":["null",{"type":"array","items":["null","long"]}],"default":null}]}`

	manifestListAvro = `{"type":"record","name":"record","namespace":"` + avroNamespace + `","fields":[` +
		`{"name":"_VERSION","type":"int"},{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},` +
		`{"name":"_NUM_ADDED_FILES","type":"long"},{"name":"_NUM_DELETED_FILES","type":"long"},` +
		`{"name":"_PARTITION_STATS","type":%s},{"name":"_SCHEMA_ID","type":"long"},` +
		`{"name":"_MIN_BUCKET","type":["null","int"],"default":null},{"name":"_MAX_BUCKET","type":["null","int"],"default":null},` +
		`{"name":"_MIN_LEVEL","type":["null","int"],"default":null},{"name":"_MAX_LEVEL","type":["null","int"],"default":null},` +
		`{"name":"_MIN_ROW_ID","type":["null","long"],"default":null},{"name":"_MAX_ROW_ID","type":["null","long"],"default":null}%s]}`

	// manifestListMore are columns that other writers add; they are written only
	// where a row has one, since they must survive when a row is kept.
	manifestListMore = `,{"name":"_TOTAL_BUCKETS","type":["null","int"],"default":null},` +
		`{"name":"_EXTRA_FILES","type":["null",{"type":"array","items":"string"}],"default":null}`

	manifestAvro = `{"type":"record","name":"record","namespace":"` + avroNamespace + `","fields":[` +
		`{"name":"_VERSION","type":"int"},{"name":"_KIND","type":"int"},{"name":"_PARTITION","type":"bytes"},` +
		`{"name":"_BUCKET","type":"int"},{"name":"_TOTAL_BUCKETS","type":"int"},` +
		`{"name":"_FILE","type":{"type":"record","name":"record__FILE","fields":[` +
		`{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},{"name":"_ROW_COUNT","type":"long"},` +
		`{"name":"_MIN_KEY","type":"bytes"},{"name":"_MAX_KEY","type":"bytes"},{"name":"_KEY_STATS","type":%s},{"name":"_VALUE_STATS","type":%s},` +
		`{"name":"_MIN_SEQUENCE_NUMBER","type":"long"},{"name":"_MAX_SEQUENCE_NUMBER","type":"long"},{"name":"_SCHEMA_ID","type":"long"},` +
		`{"name":"_LEVEL","type":"int"},{"name":"_EXTRA_FILES","type":{"type":"array","items":"string"}%s},` +
		`{"name":"_CREATION_TIME","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},` +
		`{"name":"_DELETE_ROW_COUNT","type":["null","long"],"default":null},{"name":"_EMBEDDED_FILE_INDEX","type":["null","bytes"],"default":null},` +
		`{"name":"_FILE_SOURCE","type":["null","int"],"default":null},` +
		`{"name":"_VALUE_STATS_COLS","type":["null",{"type":"array","items":"string"}],"default":null},` +
		`{"name":"_EXTERNAL_PATH","type":["null","string"],"default":null},{"name":"_FIRST_ROW_ID","type":["null","long"],"default":null},` +
		`{"name":"_WRITE_COLS","type":["null",{"type":"array","items":"string"}],"default":null}%s]}}]}`

	manifestMore = `,{"name":"_WRITE_COLS_SEQUENCES","type":["null",{"type":"array","items":"long"}],"default":null}`
)

func manifestListSchema(more bool) string {
	extra := ""
	if more {
		extra = manifestListMore
	}
	return fmt.Sprintf(manifestListAvro, fmt.Sprintf(statsAvro, "record__PARTITION_STATS"), extra)
}

// manifestSchema is the schema to write, or, with readable, the one to read
// with, in which columns that old writers lack have defaults.
func manifestSchema(more, readable bool) string {
	extra, extraFilesDefault := "", ""
	if more || readable {
		extra = manifestMore
	}
	if readable {
		extraFilesDefault = `,"default":[]`
	}
	return fmt.Sprintf(manifestAvro, fmt.Sprintf(statsAvro, "record__FILE__KEY_STATS"),
		fmt.Sprintf(statsAvro, "record__FILE__VALUE_STATS"), extraFilesDefault, extra)
}

var (
	writeManifestList     = avro.MustParse(manifestListSchema(false))
	writeManifestListMore = avro.MustParse(manifestListSchema(true))
	writeManifest         = avro.MustParse(manifestSchema(false, false))
	writeManifestMore     = avro.MustParse(manifestSchema(true, false))
)

// maxBlock bounds what one block of an Avro file may inflate to. Writers begin a new
// one after some ten kilobytes. A row can take sixteen times as much once it is decoded.
const maxBlock = 32 << 20

// readerSchemas caches the schema to read with, by kind of file and header schema.
// Headers are untrusted, so it starts again when it is full.
var readerSchemas = struct {
	sync.Mutex
	m map[readerKey]*avro.Schema
}{m: map[readerKey]*avro.Schema{}}

type readerKey struct{ ours, writer string }

const maxReaderSchemas = 64

// readerSchema puts our schema into the writer's shape, because Avro resolves
// records by name and writers differ in the names and in what may be null.
func readerSchema(ours, writer string) (*avro.Schema, error) {
	readerSchemas.Lock()
	defer readerSchemas.Unlock()
	key := readerKey{ours, writer}
	if s, ok := readerSchemas.m[key]; ok {
		return s, nil
	}
	var mine, theirs any
	if err := json.Unmarshal([]byte(ours), &mine); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(writer), &theirs); err != nil {
		return nil, err
	}
	text, err := json.Marshal(adopt(mine, theirs, ""))
	if err != nil {
		return nil, err
	}
	s, err := avro.Parse(string(text))
	if err != nil {
		return nil, err
	}
	if len(readerSchemas.m) >= maxReaderSchemas {
		clear(readerSchemas.m)
	}
	readerSchemas.m[key] = s
	return s, nil
}

// adopt walks both schemas in step and returns ours in the writer's shape: with
// his names, and nullable where he wrote a nullable record, which decodes into the
// same struct. Names in an Avro schema inherit the namespace around them.
func adopt(mine, theirs any, namespace string) any {
	if union, ok := theirs.([]any); ok {
		m, isRecord := mine.(map[string]any)
		for _, branch := range union {
			if branch != "null" && isRecord && m["type"] == "record" {
				return []any{"null", adopt(mine, branch, namespace)}
			}
		}
		return mine
	}
	m, ok1 := mine.(map[string]any)
	w, ok2 := theirs.(map[string]any)
	if !ok1 || !ok2 || m["type"] != "record" || w["type"] != "record" {
		return mine
	}
	if ns, ok := w["namespace"].(string); ok {
		namespace = ns
	}
	m["name"], m["namespace"] = w["name"], namespace
	types := map[any]any{}
	theirFields, _ := w["fields"].([]any)
	for _, f := range theirFields {
		if f, ok := f.(map[string]any); ok {
			if name, ok := f["name"].(string); ok {
				types[name] = f["type"]
			}
		}
	}
	myFields, _ := m["fields"].([]any)
	for _, f := range myFields {
		f := f.(map[string]any)
		f["type"] = adopt(f["type"], types[f["name"]], namespace)
	}
	return m
}

// readAvro calls each with every row of an Avro file. The error names the file.
func readAvro[T any](ctx context.Context, t *table.Table, name, ours string, each func(*T) error) error {
	p, err := t.ManifestPath(name)
	if err != nil {
		return err
	}
	f, err := t.IO.Open(ctx, p)
	if err != nil {
		return fmt.Errorf("read manifest %s: %w", name, err)
	}
	defer f.Close()
	in := io.NewSectionReader(f, 0, f.Size())
	if format := otherFormat(in); format != "" {
		return fmt.Errorf("read manifest %s: manifests in the format %s: %w", p, format, table.ErrUnsupported)
	}
	if err := decodeAvro(ctx, in, ours, each); err != nil {
		return fmt.Errorf("read manifest %s: %w", p, err)
	}
	return nil
}

// otherFormat recognizes the other formats that manifest.format can name.
func otherFormat(in io.ReaderAt) string {
	var magic [4]byte
	_, _ = in.ReadAt(magic[:], 0) // what is too short is not one of them
	switch {
	case string(magic[:3]) == "ORC":
		return "orc"
	case string(magic[:]) == "PAR1":
		return "parquet"
	}
	return ""
}

// sizedReader is what an Avro file is read from.
type sizedReader interface {
	io.Reader
	Size() int64
}

func decodeAvro[T any](ctx context.Context, in sizedReader, ours string, each func(*T) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged, or beyond the Avro library: %v", p)
		}
	}()
	memory := newHeld(in.Size())
	r, err := ocf.NewReader(in, ocf.WithMaxBlockBytes(maxBlock), ocf.WithMaxDecompressedBlockBytes(maxBlock),
		ocf.WithReaderSchemaFunc(func(r *ocf.Reader) (*avro.Schema, error) {
			return readerSchema(ours, string(r.Metadata()["avro.schema"]))
		}))
	if err != nil {
		return err
	}
	defer r.Close()
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var row T
		err := r.Decode(&row)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if w, ok := any(&row).(weigher); ok && err == nil {
			err = memory.add(w.weight())
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		if err := each(&row); err != nil {
			return err
		}
	}
}

// ReadManifestList reads the rows of a manifest list.
func ReadManifestList(ctx context.Context, t *table.Table, name string) ([]ManifestFile, error) {
	var rows []ManifestFile
	err := readAvro(ctx, t, name, manifestListSchema(true), func(m *ManifestFile) error {
		if m.Version != manifestListVersion {
			return fmt.Errorf("manifest list row has the version %d, expected %d: %w", m.Version, manifestListVersion, table.ErrUnsupported)
		}
		if err := m.check(); err != nil {
			return err
		}
		rows = append(rows, *m)
		return nil
	})
	return rows, err
}

// ReadManifest calls each with every entry of a manifest, in order.
func ReadManifest(ctx context.Context, t *table.Table, name string, each func(*ManifestEntry) error) error {
	var all tally
	return readAvro(ctx, t, name, manifestSchema(true, true), func(e *ManifestEntry) error {
		err := e.check()
		if err == nil {
			err = all.add(&e.File)
		}
		if err != nil {
			return err
		}
		return each(e)
	})
}

// avroCodec returns the codec of the option manifest.compression.
func avroCodec(compression string) (ocf.Codec, error) {
	switch compression {
	case "zstd", "zstandard":
		return ocf.ZstdCodec(nil, nil)
	case "snappy":
		return ocf.SnappyCodec(), nil
	case "deflate", "gzip":
		return ocf.DeflateCodec(6), nil
	case "none", "null", "uncompressed":
		return nil, nil
	}
	return nil, fmt.Errorf("option manifest.compression=%s: %w", compression, table.ErrUnsupported)
}

// CheckCodec refuses a manifest compression that cannot be written.
func CheckCodec(t *table.Table) error {
	codec, err := avroCodec(t.Options.ManifestCompression)
	if codec != nil {
		err = errors.Join(err, codec.Close())
	}
	return err
}

// newAvroWriter starts an Avro file under the schema.
func newAvroWriter(out *bytes.Buffer, schema *avro.Schema, compression string) (*ocf.Writer, error) {
	codec, err := avroCodec(compression)
	if err != nil {
		return nil, err
	}
	var opts []ocf.WriterOpt
	if codec != nil {
		opts = append(opts, ocf.WithCodec(codec))
	}
	return ocf.NewWriter(out, schema, opts...)
}

// encodeAvro writes rows as an Avro file under the schema.
func encodeAvro[T any](schema *avro.Schema, compression string, rows []T) ([]byte, error) {
	var out bytes.Buffer
	w, err := newAvroWriter(&out, schema, compression)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if err := w.Encode(&rows[i]); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func encodeManifestList(compression string, rows []ManifestFile) ([]byte, error) {
	schema := writeManifestList
	for _, r := range rows {
		if r.TotalBuckets != nil || r.ExtraFiles != nil {
			schema = writeManifestListMore
		}
	}
	return encodeAvro(schema, compression, rows)
}
