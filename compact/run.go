package compact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// taskResult is what came of a task: a message, or why it was given up.
type taskResult struct {
	message snapshot.CommitMessage
	lost    error // wraps snapshot.ErrConflict
}

// runTasks rewrites what was planned and returns a result for each task.
func runTasks(ctx context.Context, t *table.Table, base *snapshot.Snapshot, plan *Plan, o Options) ([]taskResult, error) {
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
	e := &execution{table: t, plan: plan, options: o, rewriter: r, changes: &changes{table: t, base: base}, results: make([]taskResult, len(plan.Tasks))}
	if o.Verify {
		e.verifier = newVerifier(files, r)
	}
	return e.results, e.run(ctx)
}

// execution is the run of the tasks of a plan.
type execution struct {
	table    *table.Table
	plan     *Plan
	options  Options
	rewriter rewriter
	verifier *verifier // nil where nothing is verified
	changes  *changes
	results  []taskResult // in the order of the plan

	mu        sync.Mutex
	done      int
	first     error
	leftovers []error // of the tasks that failed after the first
}

// run checks all tasks, then runs them, a few at a time. One whose inputs another
// writer has replaced is given up. When one fails otherwise, the others are stopped,
// the files of the ones that had finished are removed, and the error is that of the
// task that failed first.
func (e *execution) run(ctx context.Context) error {
	if err := e.check(ctx); err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(e.options.Parallelism)
	for i := range e.plan.Tasks {
		if e.results[i].lost != nil {
			continue
		}
		group.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err // queued tasks are still started after a failure
			}
			return e.rewrite(gctx, i)
		})
	}
	err := group.Wait()
	if err == nil {
		return nil
	}
	if e.first != nil {
		err = e.first
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		// The tasks failed because they were told to stop.
		err = errors.Join(append([]error{cause}, leftoversOf(err)...)...)
	}
	return errors.Join(err, errors.Join(e.leftovers...), removeOutputs(ctx, e.table, messagesOf(e.results)))
}

func (e *execution) rewrite(ctx context.Context, i int) error {
	task := e.plan.Tasks[i]
	m, err := e.rewriter.rewrite(ctx, task)
	if err == nil && e.verifier != nil {
		if err = e.verifier.verify(ctx, task, m); err != nil {
			err = errors.Join(err, removeOutputs(ctx, e.table, []snapshot.CommitMessage{m}))
		}
	}
	if err != nil {
		err = fmt.Errorf("compact %s: %w", e.table.BucketName(task.Partition, task.Bucket), err)
		if lost := e.changes.why(ctx, task, err); lost != nil {
			e.results[i].lost = lost
			return nil
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.results[i].message = m
		e.done++
		e.options.OnEvent(Event{TaskDone: &TaskDone{Task: task, Message: m, Done: e.done, Total: len(e.plan.Tasks)}})
	case e.first == nil:
		e.first = err
	default:
		e.leftovers = append(e.leftovers, leftoversOf(err)...)
	}
	return err
}

func (e *execution) check(ctx context.Context) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(checksAtOnce)
	for i, task := range e.plan.Tasks {
		group.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			err := e.rewriter.check(gctx, task)
			if err == nil && e.verifier != nil {
				err = e.verifier.check(gctx, task)
			}
			if lost := e.changes.why(gctx, task, err); lost != nil {
				e.results[i].lost = lost
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// pending are the tasks that were not given up.
func pending(results []taskResult) []int {
	var tasks []int
	for i, r := range results {
		if r.lost == nil {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// messagesOf are the messages of the tasks that were not given up.
func messagesOf(results []taskResult) []snapshot.CommitMessage {
	var messages []snapshot.CommitMessage
	for _, i := range pending(results) {
		messages = append(messages, results[i].message)
	}
	return messages
}

// changes tells what others have done to the inputs of tasks since the plan.
type changes struct {
	table *table.Table
	base  *snapshot.Snapshot

	mu   sync.Mutex
	list string // the delta list of the snapshot that was looked at last: ids can be used again
	live map[string]bool
}

// why tells a file that another writer has compacted and expired since the plan,
// which is a conflict, from one that is missing in a table, or any other error: nil.
func (c *changes) why(ctx context.Context, task Task, missing error) error {
	if !errors.Is(missing, fs.ErrNotExist) || len(leftoversOf(missing)) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	latest, err := snapshot.Latest(ctx, c.table)
	switch {
	case err == nil && latest == nil: // the table was dropped
		return fmt.Errorf("snapshot %d, which was compacted, is gone: %w: %w", c.base.ID, snapshot.ErrConflict, missing)
	case err != nil || latest.DeltaManifestList == c.base.DeltaManifestList:
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list != latest.DeltaManifestList {
		buckets, err := snapshot.LiveFiles(ctx, c.table, latest, table.Filter{})
		if err != nil {
			return nil
		}
		c.list, c.live = latest.DeltaManifestList, map[string]bool{}
		for _, b := range buckets {
			for _, e := range b.Files {
				c.live[e.File.FileName] = true
			}
		}
	}
	for _, e := range task.Inputs {
		if !c.live[e.File.FileName] {
			return fmt.Errorf("%s was replaced by snapshot %d or earlier: %w: %w", e.File.FileName, latest.ID, snapshot.ErrConflict, missing)
		}
	}
	return nil
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
