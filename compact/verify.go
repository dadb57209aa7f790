package compact

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"sync"

	"tablectl/internal/readback"
	"tablectl/internal/types"
	"tablectl/snapshot"
)

// ErrVerification is wrapped when the outputs of a task do not hold the rows that
// its inputs do. Nothing is committed then.
var ErrVerification = errors.New("verification failed, nothing is committed")

// verifier reads what tasks have written back, and what they have read once more,
// with a reader that shares no code with the one that wrote it, and compares the two
// column by column.
type verifier struct {
	*taskFiles
	merge *mergeRewriter // nil where there are no primary keys
	seed  maphash.Seed
	// mu lets one task be verified at a time: merging row by row holds a page of
	// every column of every run.
	mu sync.Mutex
}

func newVerifier(f *taskFiles, r rewriter) *verifier {
	v := &verifier{taskFiles: f, seed: maphash.MakeSeed()}
	v.merge, _ = r.(*mergeRewriter)
	return v
}

// check makes sure, before anything is written, that the inputs of a task can be read.
func (v *verifier) check(ctx context.Context, task Task) error {
	for _, e := range task.read() {
		r, err := v.input(ctx, task, e)
		if errors.Is(err, readback.ErrUnsupported) {
			return &refusalError{fmt.Errorf("--verify: %w", err)}
		}
		if err != nil {
			return err
		}
		if err := r.close(); err != nil {
			return err
		}
	}
	return nil
}

// verify compares what a task has written with what it should have.
func (v *verifier) verify(ctx context.Context, task Task, m snapshot.CommitMessage) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return withoutPanic(func() error {
		want, err := v.expected(ctx, task)
		if err != nil {
			return fmt.Errorf("verify: read inputs: %w", err)
		}
		got := v.newSums()
		for _, f := range m.Created() {
			rows := got.rows
			err := v.output(ctx, task, f, got)
			var unread *unreadError
			switch {
			case errors.As(err, &unread) || ctx.Err() != nil:
				return fmt.Errorf("verify: read outputs: %w", err)
			case err != nil:
				return fmt.Errorf("verify: %w: %w", err, ErrVerification)
			}
			if n := got.rows - rows; n != f.RowCount {
				return fmt.Errorf("verify: data file %s has %d rows, not %d: %w", f.FileName, n, f.RowCount, ErrVerification)
			}
		}
		return want.differs(got)
	})
}

// expected are the sums of the rows that the outputs of a task should have.
func (v *verifier) expected(ctx context.Context, task Task) (*sums, error) {
	s := v.newSums()
	if v.merge == nil {
		for _, e := range task.Inputs {
			r, err := v.input(ctx, task, e)
			if err == nil {
				err = s.addAll(ctx, r)
			}
			if err != nil {
				return nil, err
			}
		}
		return s, nil
	}
	for _, step := range task.Merge.Steps {
		if step.Upgrade != nil {
			continue
		}
		r, err := v.openMerge(ctx, task, step)
		if err == nil {
			err = s.addAll(ctx, r)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// output adds the rows of an output.
func (v *verifier) output(ctx context.Context, task Task, f snapshot.DataFile, s *sums) error {
	r, err := v.open(ctx, task, f.FileName, v.spec.Fields)
	if err != nil {
		return err
	}
	if v.merge == nil {
		return s.addAll(ctx, r)
	}
	return s.addAll(ctx, &ascending{rowSource: r, compare: v.merge.compareKeys})
}

// ascending makes sure that the rows of a file are in the order of their keys.
type ascending struct {
	rowSource
	compare func(a, b []types.Value) int
	last    []types.Value
}

func (a *ascending) next() ([]types.Value, error) {
	row, err := a.rowSource.next()
	if err != nil {
		return nil, err
	}
	if a.last != nil && a.compare(a.last, row) >= 0 {
		return nil, errors.New("the keys of an output do not ascend")
	}
	a.last = append(a.last[:0], row...)
	return row, nil
}

// sums tell rows from others whatever their order: a sum for every column, in which
// a value counts wherever it is, and one of whole rows.
type sums struct {
	fields []types.Field
	seed   maphash.Seed
	rows   int64
	column []uint64
	whole  uint64
	buffer []byte
}

func (v *verifier) newSums() *sums {
	return &sums{fields: v.spec.Fields, seed: v.seed, column: make([]uint64, len(v.spec.Fields))}
}

// addAll adds all rows of a source and closes it.
func (s *sums) addAll(ctx context.Context, r rowSource) (err error) {
	defer func() { err = errors.Join(err, r.close()) }()
	for {
		if s.rows%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		row, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.add(row)
	}
}

func (s *sums) add(row []types.Value) {
	s.rows++
	s.buffer = s.buffer[:0]
	for i, f := range s.fields {
		from := len(s.buffer)
		s.buffer = types.AppendIdentity(s.buffer, f.Type, row[i])
		s.column[i] += maphash.Bytes(s.seed, s.buffer[from:])
	}
	s.whole += maphash.Bytes(s.seed, s.buffer)
}

// differs says in what the outputs differ.
func (s *sums) differs(got *sums) error {
	if s.rows != got.rows {
		return fmt.Errorf("verify: the outputs have %d rows, expected %d: %w", got.rows, s.rows, ErrVerification)
	}
	for i, f := range s.fields {
		if s.column[i] != got.column[i] {
			return fmt.Errorf("verify: the values of column %s are not those of the inputs: %w", f.Name, ErrVerification)
		}
	}
	if s.whole != got.whole {
		return fmt.Errorf("verify: values of different rows were mixed up: %w", ErrVerification)
	}
	return nil
}
