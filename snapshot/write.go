package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
	"tablectl/table"
)

// fileWriter writes the metadata files of one commit and remembers them, so
// that they can be removed when the commit certainly did not happen. Its uuid
// makes their names unique.
type fileWriter struct {
	table   *table.Table
	uuid    string
	lists   int
	files   int
	created []string // paths
}

func (w *fileWriter) create(ctx context.Context, name string, data []byte) error {
	p, err := w.table.ManifestPath(name)
	if err != nil {
		return err
	}
	f, err := w.table.IO.Create(ctx, p)
	if errors.Is(err, fs.ErrExist) {
		// It may be someone else's, so it is only reported.
		return fmt.Errorf("write %s: %w", p, errors.Join(err, &LeftoverError{Path: p, Err: err}))
	}
	w.created = append(w.created, p) // it may be there even if the store reports a failure
	if err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", p, errors.Join(err, f.Close()))
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	return nil
}

// list writes a manifest list and returns its name and size in bytes.
func (w *fileWriter) list(ctx context.Context, rows []ManifestFile) (string, int64, error) {
	data, err := encodeManifestList(w.table.Options.ManifestCompression, rows)
	if err != nil {
		return "", 0, fmt.Errorf("encode manifest list: %w", err)
	}
	name := fmt.Sprintf("manifest-list-%s-%d", w.uuid, w.lists)
	w.lists++
	return name, int64(len(data)), w.create(ctx, name, data)
}

// rollingManifest writes entries into manifests of about the target size.
type rollingManifest struct {
	ctx    context.Context
	w      *fileWriter
	schema *avro.Schema

	buf   bytes.Buffer
	out   *ocf.Writer
	stats manifestStats
	done  []ManifestFile
}

// manifests starts to write manifests. The wider schema must be used where one
// of the entries has a WriteColsSequences.
func (w *fileWriter) manifests(ctx context.Context) *rollingManifest {
	return &rollingManifest{ctx: ctx, w: w, schema: writeManifest}
}

func (r *rollingManifest) add(e *ManifestEntry) error {
	if e.File.WriteColsSequences != nil && r.schema != writeManifestMore {
		if err := r.roll(); err != nil {
			return err
		}
		r.schema = writeManifestMore
	}
	if r.out == nil {
		r.buf.Reset()
		var err error
		if r.out, err = newAvroWriter(&r.buf, r.schema, r.w.table.Options.ManifestCompression); err != nil {
			return fmt.Errorf("encode manifest: %w", err)
		}
		r.stats = newManifestStats(r.w.table)
	}
	if err := r.out.Encode(e); err != nil {
		return fmt.Errorf("encode manifest entry of %s: %w", e.File.FileName, err)
	}
	if err := r.stats.add(e); err != nil {
		return err
	}
	if int64(r.buf.Len()) >= r.w.table.Options.ManifestTargetSize {
		return r.roll()
	}
	return nil
}

// roll finishes the manifest under construction, if there is one.
func (r *rollingManifest) roll() error {
	if r.out == nil {
		return nil
	}
	err := r.out.Close()
	r.out = nil
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	name := fmt.Sprintf("manifest-%s-%d", r.w.uuid, r.w.files)
	r.w.files++
	if err := r.w.create(r.ctx, name, r.buf.Bytes()); err != nil {
		return err
	}
	r.done = append(r.done, r.stats.file(name, int64(r.buf.Len())))
	return nil
}

// close finishes the last manifest and returns all of them.
func (r *rollingManifest) close() ([]ManifestFile, error) {
	err := r.roll()
	return r.done, err
}

// manifestStats gathers what a manifest list says of a manifest (reference:
// ManifestFile's writer).
type manifestStats struct {
	types    []types.Type
	min, max []types.Value
	nulls    []int64
	row      ManifestFile
	rowIDs   bool
}

func newManifestStats(t *table.Table) manifestStats {
	ts := t.Schema.PartitionTypes()
	s := manifestStats{types: ts, min: make([]types.Value, len(ts)), max: make([]types.Value, len(ts)), nulls: make([]int64, len(ts)), rowIDs: true}
	for i := range ts {
		s.min[i], s.max[i] = types.NullValue, types.NullValue
	}
	return s
}

func (s *manifestStats) add(e *ManifestEntry) error {
	values, err := binrow.Decode(e.Partition, s.types)
	if err != nil {
		return fmt.Errorf("read partition %x: %w", e.Partition, err)
	}
	for i, v := range values {
		switch kind := s.types[i].Kind; {
		case v.Null:
			s.nulls[i]++
		case s.min[i].Null:
			s.min[i], s.max[i] = v, v
		default:
			if types.Compare(kind, v, s.min[i]) < 0 {
				s.min[i] = v
			}
			if types.Compare(kind, v, s.max[i]) > 0 {
				s.max[i] = v
			}
		}
	}
	first := s.row.NumAddedFiles+s.row.NumDeletedFiles == 0
	if e.Kind == Add {
		s.row.NumAddedFiles++
	} else {
		s.row.NumDeletedFiles++
	}
	s.row.SchemaID = max(s.row.SchemaID, e.File.SchemaID)
	widen(&s.row.MinBucket, &s.row.MaxBucket, e.Bucket)
	widen(&s.row.MinLevel, &s.row.MaxLevel, e.File.Level)
	if id := e.File.FirstRowID; id != nil && s.rowIDs && (first || s.row.MinRowID != nil) {
		widen(&s.row.MinRowID, &s.row.MaxRowID, *id)
		widen(&s.row.MinRowID, &s.row.MaxRowID, *id+e.File.RowCount-1)
	} else {
		s.rowIDs = false
	}
	return nil
}

func widen[T int32 | int64](low, high **T, v T) {
	if *low == nil {
		a, b := v, v
		*low, *high = &a, &b
		return
	}
	**low, **high = min(**low, v), max(**high, v)
}

func (s *manifestStats) file(name string, size int64) ManifestFile {
	row := s.row
	row.Version, row.FileName, row.FileSize = manifestListVersion, name, size
	if !s.rowIDs {
		row.MinRowID, row.MaxRowID = nil, nil
	}
	nulls := make([]*int64, len(s.nulls))
	for i := range s.nulls {
		nulls[i] = &s.nulls[i]
	}
	row.PartitionStats = SimpleStats{Min: binrow.Encode(s.types, s.min), Max: binrow.Encode(s.types, s.max), NullCounts: nulls}
	return row
}
