package compact

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tablectl/snapshot"
	"tablectl/table"
)

// rewriter rewrites the files of a task.
type rewriter interface {
	// check makes sure, before anything is written, that a task can be rewritten.
	check(ctx context.Context, task Task) error
	// rewrite returns a message whose files exist and are complete. On an error it
	// has removed its own files; those that it could not remove are in the error.
	rewrite(ctx context.Context, task Task) (snapshot.CommitMessage, error)
}

// cleanupTimeout bounds the removal of files after a failure.
const cleanupTimeout = time.Minute

// checksAtOnce is how many inputs of tasks are opened at the same time before
// the run: a check waits for the store, not for a CPU.
const checksAtOnce = 16

func runTasks(ctx context.Context, t *table.Table, plan *Plan, o Options) ([]snapshot.CommitMessage, error) {
	files, err := newTaskFiles(ctx, t, plan, o)
	if err != nil {
		return nil, err
	}
	var r rewriter
	if len(t.Schema.PrimaryKeys) > 0 {
		r, err = newMergeRewriter(files)
	} else {
		r, err = newAppendRewriter(files)
	}
	if err != nil {
		return nil, err
	}
	return execute(ctx, t, plan, o, r)
}

// execute checks all tasks, then runs them, a few at a time, and returns their
// messages in the order of the plan. When one fails, the others are stopped, the
// files of the ones that had finished are removed, and the error is that of the
// task that failed first.
func execute(ctx context.Context, t *table.Table, plan *Plan, o Options, r rewriter) ([]snapshot.CommitMessage, error) {
	if err := checkTasks(ctx, plan, r); err != nil {
		return nil, err
	}
	messages := make([]snapshot.CommitMessage, len(plan.Tasks))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(o.Parallelism)
	var mu sync.Mutex
	done := 0
	var first error
	var leftovers []error // of the tasks that failed after the first
	for i, task := range plan.Tasks {
		group.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err // queued tasks are still started after a failure
			}
			m, err := r.rewrite(gctx, task)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				err = fmt.Errorf("compact %s: %w", t.BucketName(task.Partition, task.Bucket), err)
				if first == nil {
					first = err
				} else {
					leftovers = append(leftovers, leftoversOf(err)...)
				}
				return err
			}
			messages[i] = m
			done++
			o.OnEvent(Event{TaskDone: &TaskDone{Task: task, Message: m, Done: done, Total: len(plan.Tasks)}})
			return nil
		})
	}
	err := group.Wait()
	if err == nil {
		return messages, nil
	}
	if first != nil {
		err = first
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		// The tasks failed because they were told to stop.
		err = errors.Join(append([]error{cause}, leftoversOf(err)...)...)
	}
	return nil, errors.Join(err, errors.Join(leftovers...), removeOutputs(ctx, t, messages))
}

func checkTasks(ctx context.Context, plan *Plan, r rewriter) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(checksAtOnce)
	for _, task := range plan.Tasks {
		group.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			return r.check(gctx, task)
		})
	}
	return group.Wait()
}

// leftoversOf finds the files that an error says could not be removed.
func leftoversOf(err error) []error {
	switch e := err.(type) { //nolint:errorlint // walks the tree itself
	case *snapshot.LeftoverError:
		return []error{e}
	case interface{ Unwrap() []error }:
		var all []error
		for _, sub := range e.Unwrap() {
			all = append(all, leftoversOf(sub)...)
		}
		return all
	case interface{ Unwrap() error }:
		return leftoversOf(e.Unwrap())
	}
	return nil
}

// Leftovers lists the files that an error of Table says could not be removed.
func Leftovers(err error) []string {
	var paths []string
	for _, l := range leftoversOf(err) {
		paths = append(paths, l.(*snapshot.LeftoverError).Path) //nolint:errorlint,forcetypeassert // leftoversOf returns no others
	}
	return paths
}

// removeOutputs removes every file that the messages add. It works on when the
// context is done, since that is when it is called.
func removeOutputs(ctx context.Context, t *table.Table, messages []snapshot.CommitMessage) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	for _, m := range messages {
		for _, f := range m.Created() {
			for _, name := range append([]string{f.FileName}, f.ExtraFiles...) {
				errs = append(errs, removeOutput(ctx, t, m.Partition, m.Bucket, name))
			}
		}
	}
	return errors.Join(errs...)
}

func removeOutput(ctx context.Context, t *table.Table, partition []byte, bucket int32, name string) error {
	p, err := t.FilePath(partition, int(bucket), name)
	if err == nil {
		err = t.IO.Remove(ctx, p)
	}
	if err != nil {
		return &snapshot.LeftoverError{Path: p, Err: err}
	}
	return nil
}
