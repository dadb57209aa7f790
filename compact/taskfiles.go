package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"tablectl/internal/binrow"
	"tablectl/internal/datafile"
	"tablectl/internal/fileindex"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// taskFiles reads the inputs of tasks and writes their outputs; it is what the
// rewriters have in common.
type taskFiles struct {
	table   *table.Table
	options Options
	spec    datafile.Spec
	indexes fileindex.Config
	schemas map[int64]*table.Schema // of the inputs
}

// Sizes of row groups and pages. The reference's default for a row group is that
// of parquet-mr.
const (
	defaultRowGroup = 128 << 20
	minRowGroup     = 1 << 20
	minPage         = 64 << 10
)

// checkTable refuses tables that cannot be compacted, and options whose value
// cannot be honoured, before anything else is read.
func checkTable(t *table.Table) error {
	if err := t.CheckSupported(); err != nil {
		return err
	}
	if err := snapshot.CheckCodec(t); err != nil {
		return err
	}
	if err := datafile.CheckCompression(t.Options.Compression); err != nil {
		return refusal(fmt.Errorf("option file.compression: %w", err))
	}
	if _, err := statsModes(t.Schema, t.Options); err != nil {
		return err
	}
	if len(t.Schema.PrimaryKeys) > 0 {
		if _, err := newEngine(t.Schema, t.Options); err != nil {
			return fmt.Errorf("table %s: %w", t.Name(), err)
		}
	}
	_, err := fileindex.ParseConfig(t.Options.Raw, t.Schema.Fields)
	if err != nil && !errors.Is(err, fileindex.ErrUnsupported) {
		return fmt.Errorf("%w: %w", err, table.ErrInvalid)
	}
	return refusal(err)
}

// statsModes returns the statistics mode of every column: its own, or that of
// the table, or none for columns behind the first n (reference:
// StatsCollectorFactories).
func statsModes(s *table.Schema, o table.Options) ([]datafile.StatsMode, error) {
	modes := make([]datafile.StatsMode, len(s.Fields))
	for i, f := range s.Fields {
		option := "fields." + f.Name + ".stats-mode"
		text, own := o.Raw[option]
		if !own {
			option, text = "metadata.stats-mode", o.StatsMode
			if n := o.StatsFirstN; n >= 0 && i >= n {
				text = "none"
			}
		}
		var err error
		if modes[i], err = datafile.ParseStatsMode(text); err != nil {
			return nil, fmt.Errorf("option %s: %w: %w", option, err, table.ErrInvalid)
		}
	}
	return modes, nil
}

func newTaskFiles(ctx context.Context, t *table.Table, plan *Plan, o Options) (*taskFiles, error) {
	indexes, err := fileindex.ParseConfig(t.Options.Raw, t.Schema.Fields)
	if err != nil {
		return nil, err
	}
	r := &taskFiles{table: t, options: o, indexes: indexes, schemas: map[int64]*table.Schema{}}
	for _, task := range plan.Tasks {
		for _, e := range task.read() {
			id := e.File.SchemaID
			if r.schemas[id] != nil {
				continue
			}
			if id > t.Schema.ID {
				return nil, newerSchema(ctx, t, "data file "+e.File.FileName, id)
			}
			if r.schemas[id], err = t.SchemaByID(ctx, id); err != nil {
				return nil, fmt.Errorf("data file %s: %w", e.File.FileName, err)
			}
		}
	}
	running := min(o.Parallelism, len(plan.Tasks))
	r.spec = datafile.Spec{
		Compression: t.Options.Compression, ZstdLevel: t.Options.ZstdLevel,
		TargetSize: t.Options.TargetFileSize, RowGroupSize: t.Options.BlockSize, PageSize: t.Options.PageSize,
		Dictionary: t.Options.Dictionary, CreatedBy: o.WriterVersion,
		Workers: max(1, o.Parallelism/max(running, 1)),
	}
	if r.spec.RowGroupSize <= 0 {
		r.spec.RowGroupSize = defaultRowGroup
	}
	if o.Memory > 0 {
		// A task holds one row group of its output, compressed, in buffers that grow by
		// doubling; of every column a page and a dictionary, uncompressed; and read
		// buffers. A sixth of its share for each of the first two leaves room for what
		// the garbage collector has not taken back. A merge also holds pages of every
		// run that it reads.
		parts := 6
		if len(t.Schema.PrimaryKeys) > 0 {
			parts = 9
		}
		share := o.Memory / int64(max(running, 1)*parts)
		r.spec.RowGroupSize = min(r.spec.RowGroupSize, max(share, minRowGroup))
		r.spec.ReadMemory = share
		r.spec.PageSize = min(r.spec.PageSize, max(share/int64(2*max(len(t.Schema.Fields), 1)), minPage))
	}
	return r, nil
}

// inputs opens nothing yet. The columns of a file under its schema are what the
// function says.
func (r *taskFiles) inputs(task Task, entries []*snapshot.ManifestEntry, columns func(*table.Schema) []types.Field) ([]datafile.Input, error) {
	fixed, err := r.partitionValues(task.Partition)
	if err != nil {
		return nil, err
	}
	inputs := make([]datafile.Input, len(entries))
	for i, e := range entries {
		p, err := r.table.FilePath(task.Partition, int(task.Bucket), e.File.FileName)
		if err != nil {
			return nil, err
		}
		inputs[i] = datafile.Input{
			Name: p, Fields: columns(r.schemas[e.File.SchemaID]), Rows: e.File.RowCount, Fixed: fixed,
			Open: func(ctx context.Context) (datafile.File, error) { return r.table.IO.Open(ctx, p) },
		}
	}
	return inputs, nil
}

// partitionValues are the values of the partition columns by field id. Files that
// a migration from Hive took over do not hold them (reference:
// FormatReaderMapping, which never reads them from a file).
func (r *taskFiles) partitionValues(partition []byte) (map[int]types.Value, error) {
	values, err := binrow.Decode(partition, r.table.Schema.PartitionTypes())
	if err != nil {
		return nil, fmt.Errorf("read partition %x: %w", partition, err)
	}
	fixed := map[int]types.Value{}
	for i, f := range r.table.Schema.PartitionFields() {
		fixed[f.ID] = values[i]
	}
	return fixed, nil
}

// check opens the files that a task will read and makes sure that they can be
// written under the spec.
func (r *taskFiles) check(ctx context.Context, task Task, spec datafile.Spec, columns func(*table.Schema) []types.Field) error {
	inputs, err := r.inputs(task, task.read(), columns)
	if err != nil {
		return err
	}
	// A missing file would also be found by opening it, but this says what is wrong.
	if err := r.table.CheckBucketDir(ctx, task.Partition, int(task.Bucket), task.Inputs[0].File.FileName); err != nil {
		return err
	}
	for _, in := range inputs {
		if err := datafile.Check(ctx, in, spec); err != nil {
			return refusal(err)
		}
	}
	return nil
}

// refusal makes what the packages below cannot do a refusal of the table; it
// leaves other errors as they are.
func refusal(err error) error {
	if errors.Is(err, datafile.ErrUnsupported) || errors.Is(err, fileindex.ErrUnsupported) {
		return &refusalError{err}
	}
	return err
}

// refusalError adds table.ErrUnsupported to an error that already says so.
type refusalError struct{ err error }

func (e *refusalError) Error() string { return e.err.Error() }

func (e *refusalError) Unwrap() []error { return []error{e.err, table.ErrUnsupported} }

// creator makes the function that starts the data files of a task.
func (r *taskFiles) creator(task Task, compression string, created *[]string) func(ctx context.Context) (string, io.WriteCloser, error) {
	names := r.namer(compression)
	return func(ctx context.Context) (string, io.WriteCloser, error) {
		name := names()
		p, err := r.table.FilePath(task.Partition, int(task.Bucket), name)
		if err != nil {
			return "", nil, err
		}
		w, err := r.create(ctx, p, name, created)
		return name, w, err
	}
}

// create starts a file and notes it among those to remove on failure. It may be
// there even if the store reports that it could not be created; but one that
// exists already may be someone else's, and is only reported.
func (r *taskFiles) create(ctx context.Context, p, name string, created *[]string) (io.WriteCloser, error) {
	w, err := r.table.IO.Create(ctx, p)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("create %s: %w", p, errors.Join(err, &snapshot.LeftoverError{Path: p, Err: err}))
	case err != nil:
		*created = append(*created, name)
		return nil, fmt.Errorf("create %s: %w", p, err)
	}
	*created = append(*created, name)
	return w, nil
}

// remove removes files of a task that failed.
func (r *taskFiles) remove(ctx context.Context, task Task, names []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	for _, name := range names {
		errs = append(errs, removeOutput(ctx, r.table, task.Partition, task.Bucket, name))
	}
	return errors.Join(errs...)
}

// withoutPanic turns a panic into an error, so that the files of the task are
// removed like after any other failure.
func withoutPanic(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return f()
}

// namer names the data files of a task, as the reference does: one uuid, and a
// number for each file.
func (r *taskFiles) namer(compression string) func() string {
	o := r.table.Options
	prefix, suffix := o.DataFilePrefix+r.options.NewUUID(), ".parquet"
	if o.SuffixCompression {
		suffix = "." + compression + suffix
	}
	n := -1
	return func() string {
		n++
		return fmt.Sprintf("%s-%d%s", prefix, n, suffix)
	}
}

// localWallClock is the creation time as the reference stores it: the local
// date and time as if it were UTC, in milliseconds.
func localWallClock(t time.Time) int64 {
	_, offset := t.Zone()
	return t.UnixMilli() + int64(offset)*1000
}

// valueStats encodes the statistics of a file's columns: of all of them, or,
// stored densely, of those of which something is known (reference:
// SimpleStatsConverter).
func valueStats(t *table.Table, columns []datafile.ColumnStats) (snapshot.SimpleStats, []string) {
	names := []string{}
	var ts []types.Type
	var low, high []types.Value
	nulls := []*int64{}
	for i, c := range columns {
		if t.Options.StatsDense && c.NullCount == nil {
			continue
		}
		f := t.Schema.Fields[i]
		names, ts = append(names, f.Name), append(ts, f.Type)
		low, high, nulls = append(low, c.Min), append(high, c.Max), append(nulls, c.NullCount)
	}
	if len(names) == len(columns) {
		names = nil
	}
	return snapshot.SimpleStats{Min: binrow.Encode(ts, low), Max: binrow.Encode(ts, high), NullCounts: nulls}, names
}

// writeIndex puts the file indexes that the table declares into the metadata
// when they are small, else into a file beside the data file.
func (r *taskFiles) writeIndex(ctx context.Context, task Task, o datafile.Output, f *snapshot.DataFile, created *[]string) error {
	if len(o.Indexes) == 0 {
		return nil
	}
	data, err := r.indexes.Serialize(o.Indexes)
	if err != nil {
		return fmt.Errorf("build file index of %s: %w", o.Name, err)
	}
	if int64(len(data)) <= r.table.Options.IndexInManifest {
		f.EmbeddedFileIndex = data
		return nil
	}
	name := o.Name + ".index"
	p, err := r.table.FilePath(task.Partition, int(task.Bucket), name)
	if err != nil {
		return err
	}
	w, err := r.create(ctx, p, name, created)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		_ = w.Close() // which failed to write what it had, and will be removed
		return fmt.Errorf("write %s: %w", p, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	f.ExtraFiles = []string{name}
	return nil
}
