package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tablectl/internal/binrow"
	"tablectl/internal/datafile"
	"tablectl/internal/merge"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// Columns that data files of tables with primary keys have beside those of the
// table, and their ids (reference: SpecialFields, KeyValue.schema).
const (
	keyPrefix      = "_KEY_"
	keyFieldBase   = 1073741823
	sequenceColumn = "_SEQUENCE_NUMBER"
	sequenceID     = 2147483646
	kindColumn     = "_VALUE_KIND"
	kindID         = 2147483645
)

var (
	sequenceField = types.Field{ID: sequenceID, Name: sequenceColumn, Type: types.Type{Kind: types.BigInt, NotNull: true}}
	kindField     = types.Field{ID: kindID, Name: kindColumn, Type: types.Type{Kind: types.TinyInt, NotNull: true}}
)

// mergeRewriter rewrites files of tables with primary keys: it merges sorted runs
// (reference: MergeTreeCompactRewriter).
type mergeRewriter struct {
	*taskFiles
	keys  []types.Field // the table's columns by which files are sorted
	first int           // the index of the table's first column among those of a file
	merge datafile.MergeSpec
}

func newMergeRewriter(f *taskFiles) (*mergeRewriter, error) {
	s, o := f.table.Schema, f.table.Options.MergeTree
	engine, err := newEngine(s, f.table.Options)
	if err != nil {
		return nil, err
	}
	r := &mergeRewriter{taskFiles: f, keys: s.KeyFields()}
	var fields []types.Field
	if !o.ThinMode {
		for _, k := range r.keys {
			fields = append(fields, types.Field{ID: keyFieldBase + k.ID, Name: keyPrefix + k.Name, Type: k.Type})
		}
	}
	r.merge = datafile.MergeSpec{Sequence: len(fields), Kind: len(fields) + 1, Descending: o.SequenceDescends, Engine: engine}
	r.first = len(fields) + 2
	r.merge.Values = r.first
	f.spec.Fields = append(append(fields, sequenceField, kindField), s.Fields...)
	column := func(name string) int {
		return r.first + slices.IndexFunc(s.Fields, func(c types.Field) bool { return c.Name == name })
	}
	for _, k := range r.keys {
		r.merge.Keys = append(r.merge.Keys, column(k.Name))
	}
	for _, name := range o.SequenceFields {
		if _, ok := s.Field(name); !ok {
			return nil, fmt.Errorf("option sequence.field names the column %q, which the table does not have: %w", name, table.ErrInvalid)
		}
		r.merge.UserSequence = append(r.merge.UserSequence, column(name))
	}
	e, err := newExpiry(s, o, f.options.Now())
	if err != nil {
		return nil, err
	}
	if e != nil {
		r.merge.Expired, r.merge.ExpireColumn = e.expired, r.first+e.column
	}
	return r, nil
}

// newEngine makes the merge engine of a table.
func newEngine(s *table.Schema, o table.Options) (*merge.Engine, error) {
	e, err := merge.NewEngine(merge.Definition{
		Engine: o.MergeTree.Engine, Fields: s.Fields, PrimaryKeys: s.PrimaryKeys, SequenceFields: o.MergeTree.SequenceFields, Options: o.Raw,
	})
	switch {
	case errors.Is(err, merge.ErrUnsupported):
		return nil, fmt.Errorf("%w: %w", err, table.ErrUnsupported)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, table.ErrInvalid)
	}
	return e, nil
}

// columnsOfKeyValues are the columns of a file. Keys are read from the table's own
// columns, which all files have.
func columnsOfKeyValues(s *table.Schema) []types.Field {
	var fields []types.Field
	for _, f := range s.Fields {
		fields = append(fields, types.Field{ID: keyFieldBase + f.ID, Name: f.Name, Type: f.Type})
	}
	return append(append(fields, sequenceField, kindField), s.Fields...)
}

func (r *mergeRewriter) check(ctx context.Context, task Task) error {
	if len(task.read()) == 0 {
		return nil
	}
	spec, err := r.specFor(task)
	if err != nil {
		return err
	}
	return r.taskFiles.check(ctx, task, spec, columnsOfKeyValues)
}

// specFor is how files of the level that a task writes are written.
func (r *mergeRewriter) specFor(task Task) (datafile.Spec, error) {
	level := int(task.Merge.Level)
	o := r.table.Options
	if mode, ok := o.MergeTree.StatsModes[level]; ok {
		o.StatsMode = mode
	}
	modes, err := statsModes(r.table.Schema, o)
	if err != nil {
		return datafile.Spec{}, err
	}
	spec := r.spec
	spec.Compression = o.CompressionAt(level)
	if err := datafile.CheckCompression(spec.Compression); err != nil {
		return spec, refusal(fmt.Errorf("option file.compression.per.level, level %d: %w", level, err))
	}
	system := datafile.StatsMode{Counts: true, Bounds: true, Length: systemStatsLength}
	if o.MergeTree.ThinMode {
		for _, k := range r.merge.Keys {
			modes[k-r.first] = system
		}
	}
	spec.Stats = append(slices.Repeat([]datafile.StatsMode{system}, r.first), modes...)
	return spec, nil
}

// systemStatsLength is where the bounds of columns that a table does not declare
// are cut (reference: StatsCollectorFactories).
const systemStatsLength = 128

func (r *mergeRewriter) rewrite(ctx context.Context, task Task) (snapshot.CommitMessage, error) {
	message := snapshot.CommitMessage{Partition: task.Partition, Bucket: task.Bucket, TotalBuckets: task.TotalBuckets}
	var created []string
	err := withoutPanic(func() error {
		for _, s := range task.Merge.Steps {
			for _, e := range s.files() {
				message.CompactBefore = append(message.CompactBefore, e.File)
			}
			if s.Upgrade != nil {
				f := s.Upgrade.File
				f.Level = task.Merge.Level
				message.CompactAfter = append(message.CompactAfter, f)
				continue
			}
			files, err := r.mergeSections(ctx, task, s.Sections, &created)
			if err != nil {
				return err
			}
			message.CompactAfter = append(message.CompactAfter, files...)
		}
		return nil
	})
	if err != nil {
		return snapshot.CommitMessage{}, errors.Join(refusal(err), r.remove(ctx, task, created))
	}
	return message, nil
}

// mergeSections merges sections that follow each other. The runs of one section
// and those of the next become longer runs: their keys do not overlap.
func (r *mergeRewriter) mergeSections(ctx context.Context, task Task, all []Section, created *[]string) ([]snapshot.DataFile, error) {
	spec, err := r.specFor(task)
	if err != nil {
		return nil, err
	}
	spec.Create = r.creator(task, spec.Compression, created)
	spec.NewIndex = r.newIndexes
	ages := filesByAge(all)
	var runs [][]datafile.Input
	for _, s := range all {
		for i, run := range s {
			inputs, err := r.inputs(task, run.Files, columnsOfKeyValues)
			if err != nil {
				return nil, err
			}
			for j, e := range run.Files {
				spec.InputBytes += e.File.FileSize
				inputs[j].Age = ages[e]
			}
			if i == len(runs) {
				runs = append(runs, nil)
			}
			runs[i] = append(runs[i], inputs...)
		}
	}
	m := r.merge
	m.DropDelete = task.Merge.DropDelete
	outputs, err := datafile.Merge(ctx, runs, m, spec)
	if err != nil {
		return nil, fmt.Errorf("merge %s: %w", r.table.BucketName(task.Partition, task.Bucket), err)
	}
	return r.describe(ctx, task, outputs, created)
}

// filesByAge numbers files, the oldest first: those of higher levels, then those of
// level 0 in the order in which they were written.
func filesByAge(all []Section) map[*snapshot.ManifestEntry]int {
	var files []*snapshot.ManifestEntry
	for _, s := range all {
		for _, run := range s {
			files = append(files, run.Files...)
		}
	}
	slices.SortFunc(files, func(a, b *snapshot.ManifestEntry) int {
		if a.File.Level != b.File.Level {
			return int(b.File.Level - a.File.Level)
		}
		return newestFirst(b, a)
	})
	ages := make(map[*snapshot.ManifestEntry]int, len(files))
	for i, f := range files {
		ages[f] = i
	}
	return ages
}

// newIndexes makes the builders of file indexes, which count the table's columns.
func (r *mergeRewriter) newIndexes() []datafile.IndexBuilder {
	builders := r.indexes.NewBuilders()
	for i, b := range builders {
		builders[i] = shiftedIndex{b, r.first}
	}
	return builders
}

// shiftedIndex is a builder for a column that has others before it.
type shiftedIndex struct {
	datafile.IndexBuilder
	by int
}

func (s shiftedIndex) Column() int { return s.by + s.IndexBuilder.Column() }

// describe makes the metadata of merged files and writes their indexes.
func (r *mergeRewriter) describe(ctx context.Context, task Task, outputs []datafile.Output, created *[]string) ([]snapshot.DataFile, error) {
	now := localWallClock(r.options.Now())
	var ts []types.Type
	for _, k := range r.keys {
		ts = append(ts, k.Type)
	}
	files := make([]snapshot.DataFile, len(outputs))
	for i, o := range outputs {
		for j, b := range o.Indexes {
			o.Indexes[j] = b.(shiftedIndex).IndexBuilder
		}
		source, deletes := snapshot.FileSourceCompact, o.Deletes
		f := snapshot.DataFile{
			FileName: o.Name, FileSize: o.Size, RowCount: o.Rows, MinKey: binrow.Encode(ts, o.MinKey), MaxKey: binrow.Encode(ts, o.MaxKey),
			MinSequenceNumber: o.MinSequence, MaxSequenceNumber: o.MaxSequence, SchemaID: r.table.Schema.ID, Level: task.Merge.Level,
			ExtraFiles: []string{}, CreationTime: &now, DeleteRowCount: &deletes, FileSource: &source,
		}
		f.KeyStats = r.keyStats(ts, o)
		f.ValueStats, f.ValueStatsCols = valueStats(r.table, o.Stats[r.first:])
		if err := r.writeIndex(ctx, task, o, &f, created); err != nil {
			return nil, err
		}
		files[i] = f
	}
	return files, nil
}

// keyStats are the statistics of the key columns, all of them.
func (r *mergeRewriter) keyStats(ts []types.Type, o datafile.Output) snapshot.SimpleStats {
	var low, high []types.Value
	nulls := []*int64{}
	for i, at := range r.merge.Keys {
		if !r.table.Options.MergeTree.ThinMode {
			at = i
		}
		low, high, nulls = append(low, o.Stats[at].Min), append(high, o.Stats[at].Max), append(nulls, o.Stats[at].NullCount)
	}
	return snapshot.SimpleStats{Min: binrow.Encode(ts, low), Max: binrow.Encode(ts, high), NullCounts: nulls}
}
