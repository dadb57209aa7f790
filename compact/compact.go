// Package compact decides which files of a table to rewrite, rewrites them, and
// publishes the result as one snapshot.
//
// A Plan holds Tasks; a task rewrites files of one bucket as one sequence of
// files and yields a snapshot.CommitMessage. In tables with primary keys, the files of
// a bucket are sorted runs on levels; a task merges some of them into files of a higher
// level, and lifts files there that have nothing to be merged with. Table runs the
// whole: plan from the latest snapshot, run the tasks with bounded concurrency, commit.
// Every layer is all or nothing: a task that fails removes its own files, a run that
// fails removes those of the tasks that had finished, and only a commit whose outcome
// is unknown removes nothing. The exception are tasks whose bucket other writers change
// meanwhile: these are given up, and the others are committed.
package compact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"time"

	"github.com/google/uuid"

	"tablectl/snapshot"
	"tablectl/table"
)

// Options are the circumstances of a run. The zero value compacts the whole
// table.
type Options struct {
	Filter        table.Filter
	Strategy      Strategy // "" is Full
	CommitUser    string   // prefix of the user in the snapshot; "" makes one up
	Parallelism   int      // tasks at a time; 0 is the number of usable CPUs
	Memory        int64    // bytes that the run may hold; 0 is no bound
	Verify        bool     // read outputs and inputs back before the commit, and compare
	WriterVersion string
	OnEvent       func(Event)

	Now     func() time.Time // nil is time.Now
	NewUUID func() string    // nil is random
}

// Event tells how a run proceeds. Exactly one member is set.
type Event struct {
	Planned    *Plan          // before any file is written
	TaskDone   *TaskDone      // after a task has finished
	Committing *CommittingTry // before each attempt to publish
}

// TaskDone describes a finished task.
type TaskDone struct {
	Task    Task
	Message snapshot.CommitMessage
	Done    int // tasks that have finished, this one included
	Total   int
}

// CommittingTry says which snapshot is about to be published.
type CommittingTry struct{ SnapshotID int64 }

// Report is what a run did.
type Report struct {
	Plan           *Plan
	Messages       []snapshot.CommitMessage // of the tasks that were committed, in the order of the plan
	Lost           []LostTask               // tasks that were given up
	Before         *snapshot.Snapshot       // nil for a table without snapshots
	After          *snapshot.Snapshot       // nil when nothing was committed
	CommitUser     string
	Attempts       int
	Warnings       []string
	DurationMillis int64
}

// LostTask is a task that was given up because another writer changed its bucket.
// Its files are removed; the other tasks do not depend on it.
type LostTask struct {
	Task Task
	Err  error // wraps snapshot.ErrConflict and names the bucket or the file
}

func (o Options) withDefaults() Options {
	if o.Strategy == "" {
		o.Strategy = Full
	}
	if o.Parallelism <= 0 {
		o.Parallelism = runtime.GOMAXPROCS(0)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewUUID == nil {
		o.NewUUID = uuid.NewString
	}
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	return o
}

// Table compacts a table: it plans from the latest snapshot, runs the tasks and
// publishes one snapshot of kind COMPACT. With nothing to do it publishes nothing.
// Tasks whose inputs others have changed meanwhile are given up and listed in the
// report; the snapshot holds the others. With none left, the error wraps
// snapshot.ErrConflict; where verification fails, ErrVerification. On an error nothing
// was published and the files it wrote are removed (those that could not be are named
// in the error), unless the error wraps snapshot.ErrCommitUnknown. The report is never
// nil and tells how far the run came.
func Table(ctx context.Context, t *table.Table, o Options) (*Report, error) {
	o = o.withDefaults()
	started := o.Now()
	report := &Report{}
	err := compactTable(ctx, t, o, report)
	report.DurationMillis = o.Now().Sub(started).Milliseconds()
	return report, err
}

func compactTable(ctx context.Context, t *table.Table, o Options, report *Report) error {
	if err := checkTable(t); err != nil {
		return err
	}
	base, plan, err := prepare(ctx, t, o)
	report.Before, report.Plan = base, plan
	if err != nil {
		return err
	}
	o.OnEvent(Event{Planned: plan})
	if len(plan.Tasks) == 0 {
		return nil
	}
	report.CommitUser = commitUser(t, o)
	results, err := runTasks(ctx, t, base, plan, o)
	if err != nil {
		return err
	}
	return commit(ctx, t, base, results, o, report)
}

// commit publishes the messages of all tasks that were not given up, and removes the
// outputs of those that turn out to have lost against others.
func commit(ctx context.Context, t *table.Table, base *snapshot.Snapshot, results []taskResult, o Options, report *Report) error {
	report.Messages = messagesOf(results)
	if len(report.Messages) == 0 {
		report.addLost(results)
		return results[0].lost
	}
	done, err := snapshot.Commit(ctx, t, base, report.Messages, snapshot.CommitOptions{
		User: report.CommitUser, WriterVersion: o.WriterVersion, Now: o.Now, NewUUID: o.NewUUID,
		BeforePublish: func(id int64) { o.OnEvent(Event{Committing: &CommittingTry{SnapshotID: id}}) },
	})
	if errors.Is(err, snapshot.ErrCommitUnknown) {
		report.addLost(results)
		return err
	}
	if err != nil {
		report.addLost(results)
		return errors.Join(err, removeOutputs(ctx, t, report.Messages))
	}
	report.After, report.Attempts, report.Warnings = done.Snapshot, done.Attempts, done.Warnings
	tasks := pending(results)
	var lost []snapshot.CommitMessage
	for _, l := range done.Lost {
		lost = append(lost, report.Messages[l.Index])
		results[tasks[l.Index]].lost = l.Err
	}
	for _, l := range leftoversOf(removeOutputs(ctx, t, lost)) {
		report.Warnings = append(report.Warnings, l.Error())
	}
	report.Messages = messagesOf(results)
	report.addLost(results)
	return nil
}

func (r *Report) addLost(results []taskResult) {
	for i, result := range results {
		if result.lost != nil {
			r.Lost = append(r.Lost, LostTask{Task: r.Plan.Tasks[i], Err: result.lost})
		}
	}
}

// prepareAttempts is how often planning starts again when the snapshot that it
// reads expires under it.
const prepareAttempts = 3

func prepare(ctx context.Context, t *table.Table, o Options) (*snapshot.Snapshot, *Plan, error) {
	var last error
	for range prepareAttempts {
		base, err := snapshot.Latest(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		if base == nil {
			return nil, &Plan{Skipped: map[Skip]int{}}, nil
		}
		plan, err := planFrom(ctx, t, base, o)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return base, plan, err
		}
		last = err
	}
	return nil, nil, last
}

func planFrom(ctx context.Context, t *table.Table, base *snapshot.Snapshot, o Options) (*Plan, error) {
	if base.SchemaID > t.Schema.ID {
		return nil, newerSchema(ctx, t, fmt.Sprintf("snapshot %d", base.ID), base.SchemaID)
	}
	if err := snapshot.CheckIndexes(ctx, t, base); err != nil {
		return nil, err
	}
	buckets, err := snapshot.LiveFiles(ctx, t, base, o.Filter)
	if err != nil {
		return nil, err
	}
	return NewPlan(Definition{Schema: t.Schema, Options: t.Options, Now: o.Now()}, base, buckets, o.Strategy)
}

// newerSchema is the error when something refers to a newer schema than the table
// was opened with: others altered it since, unless there is no such schema.
func newerSchema(ctx context.Context, t *table.Table, what string, id int64) error {
	if _, err := t.SchemaByID(ctx, id); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s has the schema %d, but the table was opened with %d, run again: %w", what, id, t.Schema.ID, snapshot.ErrConflict)
}

// commitUser is fresh for every run: commits of one user with one identifier
// count as one commit to others.
func commitUser(t *table.Table, o Options) string {
	user := o.CommitUser
	if user == "" {
		user = t.Options.CommitUserPrefix
	}
	if user == "" {
		user = "tablectl"
	}
	return fmt.Sprintf("%s-compact-%s", user, o.NewUUID())
}
