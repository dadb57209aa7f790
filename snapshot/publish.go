package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"tablectl/internal/fileio"
)

const (
	publishPause = 200 * time.Millisecond
	// replacePause is how long a snapshot may still be replaced by a writer that had
	// seen no file of that name just before it was published, and then renames its own.
	replacePause = 100 * time.Millisecond
)

// publish writes the snapshot that follows latest so that an existing file can
// never be replaced, and finds out whose it is. It returns true when the file holds
// our content, false when it certainly holds another writer's or latest is no longer
// what one may follow, an error that wraps ErrCommitUnknown when it cannot be told,
// and any other error when nothing can have been written.
//
// A store may report a failure though it has written the file, or report that
// the file exists because it wrote it on an earlier try of its own, and a careless
// writer may replace it. So the file is read back: our content is unique. When
// there is nothing to read, the same id is tried again, since that try can only
// win or find the answer.
//
// An id is also free when others have used it and expired it since, or have rolled
// the table back. Snapshots expire in order and never the latest, so as long as
// latest itself is in place, neither has happened.
func (c *committer) publish(ctx context.Context, latest *Snapshot, data []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.PublishTimeout)
	defer cancel()
	id := latest.ID + 1
	p := c.table.SnapshotPath(id)
	for first := true; ; first = false {
		err := errPassed
		if !c.passed(ctx, latest) {
			err = c.table.IO.Put(ctx, p, data, fileio.IfAbsent)
		} else if first {
			return false, nil
		}
		if errors.Is(err, fileio.ErrNotWritten) && first {
			return false, fmt.Errorf("publish snapshot %d: %w", id, err)
		}
		found, readErr := fileio.ReadFile(ctx, c.table.IO, p, maxSnapshotFile)
		switch {
		case readErr == nil && bytes.Equal(found, data):
			return c.confirm(ctx, latest, data)
		case readErr == nil && err == nil:
			return false, replaced(id)
		case readErr == nil && complete(found):
			return false, nil
		case err == nil: // written; that it cannot be read now does not take it back
			return c.confirm(ctx, latest, data)
		}
		if errors.Is(err, errPassed) && errors.Is(readErr, fs.ErrNotExist) {
			return false, fmt.Errorf("publish snapshot %d: %w: %w", id, err, ErrCommitUnknown)
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("publish snapshot %d: %w: %w", id, errors.Join(err, readErr), ErrCommitUnknown)
		case <-time.After(publishPause):
		}
	}
}

// errPassed is why an id is not tried again.
var errPassed = errors.New("others have gone on without it, or rolled the table back")

// passed reports whether others have gone on beyond the id after latest, which is
// not there, or latest is no longer what they would go on from.
func (c *committer) passed(ctx context.Context, latest *Snapshot) bool {
	next, err := fileio.Exists(ctx, c.table.IO, c.table.SnapshotPath(latest.ID+2))
	return err == nil && next || c.fate(ctx, latest) != inPlace
}

// fate is what others have done to a snapshot since it was read.
type fate int

const (
	inPlace   fate = iota // as far as can be told
	gone                  // expired or rolled back
	exchanged             // rolled back, and the id was used again
)

func (c *committer) fate(ctx context.Context, s *Snapshot) fate {
	now, err := Read(ctx, c.table, s.ID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone
	case err == nil && (now.BaseManifestList != s.BaseManifestList || now.DeltaManifestList != s.DeltaManifestList):
		return exchanged // the names of lists are unique
	}
	return inPlace
}

// confirm makes sure that our snapshot is part of the table: that it follows
// latest, and that what follows it was built on it. It looks at once, since others
// should not meet a stray one, and when they have had the time to replace it. It has
// a time of its own: when publishing took long, looking matters most.
func (c *committer) confirm(ctx context.Context, latest *Snapshot, data []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.PublishTimeout)
	defer cancel()
	for _, pause := range []time.Duration{0, replacePause} {
		select {
		case <-ctx.Done():
			return true, nil
		case <-time.After(pause):
		}
		found, err := fileio.ReadFile(ctx, c.table.IO, c.table.SnapshotPath(latest.ID+1), maxSnapshotFile)
		if err == nil && !bytes.Equal(found, data) {
			return false, replaced(latest.ID + 1) // one that is gone has expired, or was rolled back
		}
		switch c.fate(ctx, latest) {
		case gone:
			if inTable, err := c.followed(ctx, latest); !inTable || err != nil {
				return false, err
			}
		case exchanged:
			return false, c.takeBack(ctx, latest)
		}
	}
	return true, nil
}

// followed decides whether our snapshot is part of the table when latest, which it
// follows, is gone. Others may expire files while they are read.
func (c *committer) followed(ctx context.Context, latest *Snapshot) (bool, error) {
	for attempt := 1; ; attempt++ {
		inTable, err := c.lookBehind(ctx, latest)
		if err == nil || errors.Is(err, ErrCommitUnknown) {
			return inTable, err
		}
		if !errors.Is(err, fs.ErrNotExist) || attempt == readAttempts {
			return false, fmt.Errorf("snapshot %d was published, but newer snapshots may not follow it: %w: %w", latest.ID+1, err, ErrCommitUnknown)
		}
		select {
		case <-ctx.Done():
		case <-time.After(readPause):
		}
	}
}

// lookBehind does one attempt of followed. Either latest has expired since, or the
// id after it had been used and expired before we took it, and newer snapshots know
// nothing of ours: the first of them tells. In that case ours is removed again,
// since expiring it would remove files that are live. Or others have rolled the
// table back.
func (c *committer) lookBehind(ctx context.Context, latest *Snapshot) (bool, error) {
	id := latest.ID + 1
	ids, err := IDs(ctx, c.table)
	if err != nil {
		return false, err
	}
	next := slices.IndexFunc(ids, func(other int64) bool { return other > id })
	if next < 0 {
		return c.notRolledBack(ctx, latest, ids)
	}
	s, err := Read(ctx, c.table, ids[next])
	if err != nil {
		return false, err
	}
	live, err := c.touched(ctx, s)
	if err != nil {
		return false, err
	}
	has := map[FileIdentity]bool{}
	for _, e := range live {
		has[e.Identity()] = true
	}
	alive := map[Kind]bool{}
	for i := range c.entries {
		if e := &c.entries[i]; has[e.Identity()] {
			alive[e.Kind] = true
		}
	}
	switch {
	case alive[Add]:
		return true, nil
	case !alive[Delete]:
		return false, fmt.Errorf("snapshot %d has neither its inputs nor its outputs", s.ID)
	}
	return false, removeFiles(ctx, c.table, []string{c.table.SnapshotPath(id)})
}

// notRolledBack decides why latest is gone when nothing follows our snapshot. What
// expires goes in order, so older snapshots speak of a rollback, which begins with
// the hint.
func (c *committer) notRolledBack(ctx context.Context, latest *Snapshot, ids []int64) (bool, error) {
	if len(ids) == 0 || ids[0] > latest.ID {
		return true, nil
	}
	if to, ok := readHint(ctx, c.table); ok && slices.Contains(ids, to) && to < latest.ID {
		return false, c.takeBack(ctx, latest)
	}
	return false, fmt.Errorf("snapshot %d was published, but snapshot %d, which it follows, is gone while older ones are there: %w",
		latest.ID+1, latest.ID, ErrCommitUnknown)
}

// takeBack removes our snapshot, which would undo a rollback by others, unless they
// have gone on from it. Someone may be about to do so, hence it always returns an
// error that wraps ErrCommitUnknown.
func (c *committer) takeBack(ctx context.Context, latest *Snapshot) error {
	id := latest.ID + 1
	ids, err := IDs(ctx, c.table)
	if err == nil && len(ids) > 0 && ids[len(ids)-1] == id {
		err = removeFiles(ctx, c.table, []string{c.table.SnapshotPath(id)})
	}
	return errors.Join(fmt.Errorf("snapshot %d was published while others rolled back snapshot %d, which it follows: %w", id, latest.ID, ErrCommitUnknown), err)
}

// replaced is the error when we published and someone replaced it: only a writer
// that looks and then renames can do that. Others may have built on ours.
func replaced(id int64) error {
	return fmt.Errorf("snapshot %d was published and then replaced by another writer: %w", id, ErrCommitUnknown)
}

// complete reports whether the bytes are a whole JSON object: another writer may
// be in the middle of writing it, or it may be our own that arrives in parts.
func complete(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && data[0] == '{' && json.Valid(data)
}
