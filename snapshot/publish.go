package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
// writer may replace it. So the file is always read back: our content is unique.
// When a put has failed and there is nothing to read, the same id is tried again, since that try can only
// win or find the answer.
//
// An id is also free when others have used it and expired it since, or have rolled
// the table back. Snapshots expire in order and never the latest, so as long as
// latest itself is in place, neither has happened.
func (c *committer) publish(ctx context.Context, latest, ours *Snapshot, data []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.PublishTimeout)
	defer cancel()
	id := ours.ID
	p := c.table.SnapshotPath(id)
	unclear := false // whether a put that failed may have written the file
	for first := true; ; first = false {
		err := errPassed
		if !c.passed(ctx, latest) && (first || c.listed(ctx, ours)) {
			err = c.table.IO.Put(ctx, p, data, fileio.IfAbsent)
		} else if first {
			return false, nil
		}
		if errors.Is(err, fileio.ErrNotWritten) && first {
			return false, fmt.Errorf("publish snapshot %d: %w", id, err)
		}
		if err == nil {
			return c.confirm(ctx, latest, data)
		}
		unclear = unclear || !errors.Is(err, errPassed) && !errors.Is(err, fileio.ErrNotWritten) && !errors.Is(err, fs.ErrExist)
		found, readErr := fileio.ReadFile(ctx, c.table.IO, p, maxSnapshotFile)
		switch {
		case readErr == nil && bytes.Equal(found, data):
			return c.confirm(ctx, latest, data)
		case readErr == nil && complete(found):
			if unclear {
				c.doubtful = id
			}
			return false, nil
		}
		if errors.Is(err, errPassed) && errors.Is(readErr, fs.ErrNotExist) {
			return false, fmt.Errorf("publish snapshot %d: %w: %w", id, err, ErrCommitUnknown)
		}
		select {
		case <-ctx.Done():
			if c.isOurs(ctx, id, data) {
				return c.confirm(ctx, latest, data)
			}
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
	f, fateErr := c.fate(ctx, latest)
	return err == nil && next || fateErr == nil && f != inPlace
}

// listed reports whether the base list of our snapshot is there. Others who roll
// back a snapshot of ours may remove what it refers to.
func (c *committer) listed(ctx context.Context, ours *Snapshot) bool {
	p, err := c.table.ManifestPath(ours.BaseManifestList)
	if err != nil {
		return false
	}
	there, err := fileio.Exists(ctx, c.table.IO, p)
	return err != nil || there
}

// isOurs looks a last time at what a put that took too long has written, in a time
// of its own.
func (c *committer) isOurs(ctx context.Context, id int64, data []byte) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.PublishTimeout/4)
	defer cancel()
	found, err := fileio.ReadFile(ctx, c.table.IO, c.table.SnapshotPath(id), maxSnapshotFile)
	return err == nil && bytes.Equal(found, data)
}

// fate is what others have done to a snapshot since it was read.
type fate int

const (
	inPlace   fate = iota
	gone           // expired or rolled back
	exchanged      // rolled back, and the id was used again
)

func (c *committer) fate(ctx context.Context, s *Snapshot) (fate, error) {
	data, err := fileio.ReadFile(ctx, c.table.IO, c.table.SnapshotPath(s.ID), maxSnapshotFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone, nil
	case err != nil:
		return 0, err
	}
	now, err := ParseSnapshot(data)
	if err != nil || now.BaseManifestList != s.BaseManifestList || now.DeltaManifestList != s.DeltaManifestList {
		return exchanged, nil // one that was read can be read, and the names of lists are unique
	}
	return inPlace, nil
}

// noneBuilt reports whether it is certain that no one has built on the snapshot that
// an unclear put may have written before another writer replaced it: the next one
// is there, and knows nothing of ours.
func (c *committer) noneBuilt(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	next, err := Read(ctx, c.table, c.doubtful+1)
	if err != nil {
		return false
	}
	outputs, inputs, err := c.alive(ctx, next)
	return err == nil && inputs && !outputs
}

// complete reports whether the bytes are a whole JSON object: another writer may
// be in the middle of writing it, or it may be our own that arrives in parts.
func complete(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && data[0] == '{' && json.Valid(data)
}
