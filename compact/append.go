package compact

import (
	"context"
	"errors"
	"fmt"

	"tablectl/internal/datafile"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// appendRewriter rewrites files of tables without primary keys: the rows of the
// inputs one after the other, under the table's latest schema (reference:
// AppendCompactTask, BaseAppendFileStoreWrite.compactRewrite).
type appendRewriter struct{ *taskFiles }

func newAppendRewriter(f *taskFiles) (*appendRewriter, error) {
	modes, err := statsModes(f.table.Schema, f.table.Options)
	if err != nil {
		return nil, err
	}
	f.spec.Fields, f.spec.Stats = f.table.Schema.Fields, modes
	return &appendRewriter{f}, nil
}

func columnsOf(s *table.Schema) []types.Field { return s.Fields }

func (r *appendRewriter) check(ctx context.Context, task Task) error {
	return r.taskFiles.check(ctx, task, r.spec, columnsOf)
}

func (r *appendRewriter) rewrite(ctx context.Context, task Task) (snapshot.CommitMessage, error) {
	inputs, err := r.inputs(task, task.Inputs, columnsOf)
	if err != nil {
		return snapshot.CommitMessage{}, err
	}
	var created []string
	spec := r.spec
	spec.InputBytes = task.Bytes()
	if task.AbsorbTail {
		spec.AbsorbTail = r.table.Options.SmallFileSize()
	}
	spec.NewIndex = r.indexes.NewBuilders
	spec.Create = r.creator(task, r.table.Options.Compression, &created)
	message := snapshot.CommitMessage{Partition: task.Partition, Bucket: task.Bucket, TotalBuckets: task.TotalBuckets}
	err = withoutPanic(func() error {
		outputs, err := datafile.Concat(ctx, inputs, spec)
		if err != nil {
			return err
		}
		if err := checkRows(task, outputs); err != nil {
			return err
		}
		message.CompactAfter, err = r.describe(ctx, task, outputs, &created)
		return err
	})
	if err != nil {
		return snapshot.CommitMessage{}, errors.Join(refusal(err), r.remove(ctx, task, created))
	}
	for _, e := range task.Inputs {
		message.CompactBefore = append(message.CompactBefore, e.File)
	}
	return message, nil
}

// checkRows is the last line of defence before a commit: every row that was in
// the inputs is in the outputs, and nothing else.
func checkRows(task Task, outputs []datafile.Output) error {
	var in, out int64
	for _, e := range task.Inputs {
		in += e.File.RowCount
	}
	for _, o := range outputs {
		out += o.Rows
	}
	if in != out {
		return fmt.Errorf("wrote %d rows from inputs with %d rows: nothing is committed", out, in)
	}
	return nil
}

// describe makes the metadata of a task's files and writes their indexes.
func (r *appendRewriter) describe(ctx context.Context, task Task, outputs []datafile.Output, created *[]string) ([]snapshot.DataFile, error) {
	sequence := task.Inputs[0].File.MinSequenceNumber
	now := localWallClock(r.options.Now())
	files := make([]snapshot.DataFile, len(outputs))
	for i, o := range outputs {
		source, noDeletes := snapshot.FileSourceCompact, int64(0)
		f := snapshot.DataFile{
			FileName: o.Name, FileSize: o.Size, RowCount: o.Rows,
			MinSequenceNumber: sequence, MaxSequenceNumber: sequence + o.Rows - 1, SchemaID: r.table.Schema.ID,
			ExtraFiles: []string{}, CreationTime: &now, DeleteRowCount: &noDeletes, FileSource: &source,
		}
		sequence += o.Rows
		f.AppendKeys()
		f.ValueStats, f.ValueStatsCols = valueStats(r.table, o.Stats)
		if err := r.writeIndex(ctx, task, o, &f, created); err != nil {
			return nil, err
		}
		files[i] = f
	}
	return files, nil
}
