package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"time"

	"tablectl/internal/fileio"
	"tablectl/table"
)

var (
	// ErrConflict is wrapped when a commit certainly did not happen because
	// others changed the table meanwhile. The files of the messages are not used.
	ErrConflict = errors.New("conflict with another writer")
	// ErrCommitUnknown is wrapped when a commit may have happened. Nothing that
	// it refers to may be deleted.
	ErrCommitUnknown = errors.New("outcome of the commit is unknown")
)

// CommitMessage is what a compaction task changed in one bucket (reference:
// CommitMessage with its CompactIncrement). The entries in CompactBefore are
// exactly those that were planned; they are deleted and nothing else.
type CommitMessage struct {
	Partition     []byte
	Bucket        int32
	TotalBuckets  int32
	CompactBefore []DataFile
	CompactAfter  []DataFile
}

// Created lists the files of CompactAfter that the task wrote. The others it only
// lifted to another level: they hold rows of the table and must not be removed.
func (m CommitMessage) Created() []DataFile { return without(m.CompactAfter, m.CompactBefore) }

// Replaced lists the files of CompactBefore that the table no longer needs.
func (m CommitMessage) Replaced() []DataFile { return without(m.CompactBefore, m.CompactAfter) }

// without returns the files whose names are not among those of others.
func without(files, others []DataFile) []DataFile {
	names := make(map[string]bool, len(others))
	for _, f := range others {
		names[f.FileName] = true
	}
	var rest []DataFile
	for _, f := range files {
		if !names[f.FileName] {
			rest = append(rest, f)
		}
	}
	return rest
}

// CommitOptions are the circumstances of a commit. User, Now and NewUUID are needed.
type CommitOptions struct {
	User           string // written to the snapshot; must not repeat from run to run
	WriterVersion  string
	PublishTimeout time.Duration // how long an unclear publish is tried, and then looked at; 0 is a minute
	Now            func() time.Time
	NewUUID        func() string
	BeforePublish  func(id int64) // called before each attempt to publish
}

// Committed describes a successful commit.
type Committed struct {
	Snapshot *Snapshot
	Attempts int
	Lost     []Lost   // messages that were given up; the snapshot has none of their changes
	Warnings []string // what failed and does not matter to the snapshot: the hint, files of lost attempts
}

const (
	defaultPublishTimeout = time.Minute
	cleanupTimeout        = time.Minute
)

// Commit publishes one COMPACT snapshot with the changes of all messages on top
// of the latest one, and again on a newer one when it loses the race (reference:
// FileStoreCommitImpl, ConflictDetection). A message whose files in CompactBefore are
// not all live any more, or which does not fit otherwise, is given up; Commit goes on
// with the others. It returns ErrConflict when the snapshot certainly was not
// published because of others, ErrCommitUnknown when it may have been, and any
// other error when publishing was never attempted. Manifests that it wrote are
// removed unless they are, or may be, used.
//
// The context is obeyed until a snapshot is about to be published; from then on
// the attempt runs to a verdict.
func Commit(ctx context.Context, t *table.Table, base *Snapshot, messages []CommitMessage, o CommitOptions) (*Committed, error) {
	c := &committer{
		table: t, base: base, options: o, messages: messages, entries: messageEntries(t, messages),
		files: &fileWriter{table: t, uuid: o.NewUUID()},
	}
	if err := checkDistinct(c.entries); err != nil {
		return nil, err
	}
	for i := range messages {
		c.pending = append(c.pending, i)
	}
	if c.options.PublishTimeout == 0 {
		c.options.PublishTimeout = defaultPublishTimeout
	}
	result, err := c.run(ctx)
	if err != nil && !errors.Is(err, ErrCommitUnknown) && c.doubtful > 0 && !c.noneBuilt(ctx) {
		err = fmt.Errorf("%w; others may have built on our snapshot %d before it was replaced: %w", err, c.doubtful, ErrCommitUnknown)
	}
	if err != nil && !errors.Is(err, ErrCommitUnknown) {
		err = errors.Join(err, removeFiles(ctx, t, c.files.created))
	}
	if err != nil {
		err = errors.Join(err, errors.Join(c.leftovers...))
	}
	return result, err
}

type committer struct {
	table   *table.Table
	base    *Snapshot
	options CommitOptions
	files   *fileWriter

	messages []CommitMessage
	entries  [][]ManifestEntry // of each message
	pending  []int             // the messages that are not given up
	lost     []Lost            // the others

	leftovers []error // files of lost attempts that could not be removed
	// doubtful is the id of a lost attempt whose snapshot others may have seen.
	doubtful int64
	kept     []string // its files, until another attempt succeeds

	// delta is written once, since it does not depend on the latest snapshot, and
	// again when messages were given up.
	deltaList     string
	deltaListSize int64
	deltaFiles    []string
}

func (c *committer) run(ctx context.Context) (*Committed, error) {
	started := c.options.Now()
	for attempt := 1; ; attempt++ {
		s, err := c.attempt(ctx, attempt)
		if err == nil {
			if err := removeFiles(ctx, c.table, c.kept); err != nil {
				c.leftovers = append(c.leftovers, err)
			}
			done := &Committed{Snapshot: s, Attempts: attempt, Lost: c.lost, Warnings: c.writeHint(ctx, s.ID)}
			for _, l := range c.leftovers {
				done.Warnings = append(done.Warnings, l.Error())
			}
			return done, nil
		}
		var lost *lostRaceError
		if !errors.As(err, &lost) {
			return nil, err
		}
		if lost.id == c.doubtful {
			c.kept = append(c.kept, lost.files...)
		} else {
			c.files.created = c.files.created[:len(c.files.created)-len(lost.files)]
			if err := removeFiles(ctx, c.table, lost.files); err != nil {
				c.leftovers = append(c.leftovers, err)
			}
		}
		o := c.table.Options
		timedOut := o.CommitTimeoutMillis > 0 && c.options.Now().Sub(started).Milliseconds() > o.CommitTimeoutMillis
		if attempt > o.CommitMaxRetries || timedOut {
			return nil, fmt.Errorf("snapshot %d was published by another writer, after %d attempts%s: %w", lost.id, attempt, lost.seen, ErrConflict)
		}
		if err := c.pause(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

// pause waits before the next attempt, twice as long each time.
func (c *committer) pause(ctx context.Context, attempt int) error {
	o := c.table.Options
	wait := min(o.CommitMinRetryMillis<<min(attempt-1, 20), o.CommitMaxRetryMillis)
	d := time.Duration(float64(wait)*(1+0.2*rand.Float64())) * time.Millisecond //nolint:gosec // jitter needs no secret
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// lostRaceError says that another writer published the id first. The files
// were written for this attempt only.
type lostRaceError struct {
	id    int64
	files []string
	seen  string // what made it notice, for the message
}

func (e *lostRaceError) Error() string {
	return fmt.Sprintf("snapshot %d was published by another writer", e.id)
}

// attempt tries to publish on top of the latest snapshot.
func (c *committer) attempt(ctx context.Context, number int) (*Snapshot, error) {
	latest, err := Latest(ctx, c.table)
	if err != nil {
		return nil, err
	}
	if latest == nil || latest.ID < c.base.ID {
		return nil, fmt.Errorf("snapshot %d, which was compacted, is gone: %w", c.base.ID, ErrConflict)
	}
	now, err := c.checkDefinition(ctx, latest)
	if err != nil {
		return nil, c.whyFailed(ctx, latest, nil, err)
	}
	if err := c.giveUp(ctx, latest); err != nil {
		return nil, c.whyFailed(ctx, latest, nil, err)
	}
	if err := c.writeDelta(ctx); err != nil {
		return nil, err
	}
	ours := len(c.files.created)
	s, err := c.prepare(ctx, latest, now.ID, number == 1)
	files := c.files.created[ours:]
	if err != nil {
		return nil, c.whyFailed(ctx, latest, files, err)
	}
	data, err := s.Encode()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.options.BeforePublish != nil {
		c.options.BeforePublish(s.ID)
	}
	won, err := c.publish(ctx, latest, s, data)
	if err != nil {
		return nil, err
	}
	if !won {
		return nil, &lostRaceError{id: s.ID, files: files}
	}
	return s, nil
}

// whyFailed tells a lost race, when the latest snapshot expires while it is read,
// from a file that is missing in the table. What expires first loses its manifests.
func (c *committer) whyFailed(ctx context.Context, latest *Snapshot, files []string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	next, nextErr := fileio.Exists(ctx, c.table.IO, c.table.SnapshotPath(latest.ID+1))
	f, fateErr := c.fate(ctx, latest)
	if nextErr == nil && next || fateErr == nil && f != inPlace {
		return &lostRaceError{id: latest.ID + 1, files: files, seen: fmt.Sprintf("; in snapshot %d: %v", latest.ID, err)}
	}
	return err
}

func (c *committer) writeDelta(ctx context.Context) error {
	if c.deltaList != "" {
		return nil
	}
	before := len(c.files.created)
	out := c.files.manifests(ctx)
	if err := c.each(out.add); err != nil {
		return err
	}
	rows, err := out.close()
	if err != nil {
		return err
	}
	c.deltaList, c.deltaListSize, err = c.files.list(ctx, rows)
	c.deltaFiles = slices.Clone(c.files.created[before:])
	return err
}

// dropDelta removes a delta that names messages which were given up since.
func (c *committer) dropDelta(ctx context.Context) error {
	if c.deltaList == "" {
		return nil
	}
	c.files.created = slices.DeleteFunc(c.files.created, func(p string) bool { return slices.Contains(c.deltaFiles, p) })
	if err := removeFiles(ctx, c.table, c.deltaFiles); err != nil {
		c.leftovers = append(c.leftovers, err)
	}
	c.deltaList, c.deltaFiles = "", nil
	return ctx.Err()
}

// checkDefinition makes sure that the table is still one that can be compacted:
// deletion vectors, say, may have been turned on and written since. It returns
// the schema that holds now.
func (c *committer) checkDefinition(ctx context.Context, latest *Snapshot) (*table.Schema, error) {
	now, err := c.table.Reopen(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the definition of the table again: %w", err)
	}
	if err := now.CheckSupported(); err != nil {
		return nil, fmt.Errorf("the table was altered meanwhile: %s: %w", err.Error(), ErrConflict)
	}
	if name := latest.IndexManifest; name != nil && (c.base.IndexManifest == nil || *name != *c.base.IndexManifest) {
		if err := CheckIndexes(ctx, now, latest); err != nil {
			return nil, fmt.Errorf("indexes were written meanwhile: %s: %w", err.Error(), ErrConflict)
		}
	}
	return now.Schema, nil
}

// prepare writes the base manifest list and builds the snapshot that follows
// latest. Manifests are merged at the first attempt only: merging again and again
// would lose the race against a busy writer for ever.
func (c *committer) prepare(ctx context.Context, latest *Snapshot, schemaID int64, merge bool) (*Snapshot, error) {
	base, err := manifests(ctx, c.table, latest)
	if err != nil {
		return nil, err
	}
	if merge {
		if base, err = mergeManifests(ctx, c.files, base); err != nil {
			return nil, fmt.Errorf("merge manifests: %w", err)
		}
	}
	baseList, baseSize, err := c.files.list(ctx, base)
	if err != nil {
		return nil, err
	}
	delta := int64(0)
	_ = c.each(func(e *ManifestEntry) error {
		if e.Kind == Add {
			delta += e.File.RowCount
		} else {
			delta -= e.File.RowCount
		}
		return nil
	})
	uuid := c.options.NewUUID()
	s := &Snapshot{
		Version: snapshotVersion, UUID: &uuid, ID: latest.ID + 1, SchemaID: max(schemaID, latest.SchemaID),
		BaseManifestList: baseList, BaseManifestListSize: &baseSize,
		DeltaManifestList: c.deltaList, DeltaManifestListSize: &c.deltaListSize,
		IndexManifest: latest.IndexManifest, CommitUser: c.options.User, CommitIdentifier: BatchIdentifier, CommitKind: Compact,
		TimeMillis: c.options.Now().UnixMilli(), TotalRecordCount: latest.TotalRecordCount + delta, DeltaRecordCount: delta,
		Watermark: latest.Watermark, NextRowID: latest.NextRowID,
	}
	if v := c.options.WriterVersion; v != "" {
		s.WriterVersion = &v
	}
	if s.NextRowID == nil {
		zero := int64(0)
		s.NextRowID = &zero
	}
	// Statistics describe columns, so they go when those may have changed.
	if latest.SchemaID == s.SchemaID {
		s.Statistics = latest.Statistics
	}
	return s, nil
}

// touched returns the live files of a snapshot in the partitions of the messages.
func (c *committer) touched(ctx context.Context, s *Snapshot) ([]*ManifestEntry, error) {
	partitions := map[string]bool{}
	for _, i := range c.pending {
		partitions[string(c.messages[i].Partition)] = true
	}
	return liveEntries(ctx, c.table, s, func(p []byte) (bool, error) { return partitions[string(p)], nil })
}

// writeHint points the hint at the new snapshot, unless others have gone on:
// the hint must not go back, to a snapshot that may expire. Readers find the
// snapshot without it, so a failure is only worth a warning.
func (c *committer) writeHint(ctx context.Context, id int64) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	p := path.Join(c.table.SnapshotDir(), latestHint)
	if ids, err := IDs(ctx, c.table); err == nil && (len(ids) == 0 || ids[len(ids)-1] != id) {
		return nil
	}
	if err := c.table.IO.Put(ctx, p, []byte(strconv.FormatInt(id, 10)), fileio.Replace); err != nil {
		return []string{fmt.Sprintf("snapshot %d is published, but the hint %s could not be written: %v", id, p, err)}
	}
	return nil
}

// removeFiles removes files even when the context is done, and reports the ones
// that are left.
func removeFiles(ctx context.Context, t *table.Table, paths []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	for _, p := range paths {
		if err := t.IO.Remove(ctx, p); err != nil {
			errs = append(errs, &LeftoverError{Path: p, Err: err})
		}
	}
	return errors.Join(errs...)
}

// LeftoverError names a file that should have been removed and could not be.
type LeftoverError struct {
	Path string
	Err  error
}

func (e *LeftoverError) Error() string { return fmt.Sprintf("%s is left behind: %v", e.Path, e.Err) }

func (e *LeftoverError) Unwrap() error { return e.Err }
