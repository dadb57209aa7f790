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

// publish writes the snapshot file so that an existing one can never be
// replaced, and finds out whose it is. It returns true when the file holds our
// content, false when it certainly holds another writer's, an error that wraps
// ErrCommitUnknown when it cannot be told, and any other error when nothing can
// have been written.
//
// A store may report a failure though it has written the file, or report that
// the file exists because it wrote it on an earlier try of its own, and a careless
// writer may replace it. So the file is read back: our content is unique. When
// there is nothing to read, the same id is tried again, since that try can only
// win or find the answer.
//
// An id is also free again when others have used it and expired it since. They
// expire in order and never the latest snapshot, so as long as the one before is
// there the id has not been used. A rollback by others, after which that one may
// be another than the one that was read, is not noticed.
func (c *committer) publish(ctx context.Context, id int64, data []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.PublishTimeout)
	defer cancel()
	p := c.table.SnapshotPath(id)
	for first := true; ; first = false {
		err := errPassed
		if !c.passed(ctx, id) {
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
			return c.confirm(ctx, id, data)
		case readErr == nil && err == nil:
			return false, replaced(id)
		case readErr == nil && complete(found):
			return false, nil
		case err == nil:
			return true, nil // written; that it cannot be read now does not take it back
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
var errPassed = errors.New("others have published it, or newer ones, and expired what was before")

// passed reports whether others have gone on beyond an id that is not there.
func (c *committer) passed(ctx context.Context, id int64) bool {
	next, err := fileio.Exists(ctx, c.table.IO, c.table.SnapshotPath(id+1))
	return err == nil && next || c.gone(ctx, id-1)
}

// gone reports whether a snapshot that was there has expired.
func (c *committer) gone(ctx context.Context, id int64) bool {
	there, err := fileio.Exists(ctx, c.table.IO, c.table.SnapshotPath(id))
	return err == nil && !there
}

// confirm looks at our snapshot once more when others have had the time to replace
// it, and makes sure that what follows it was built on it.
func (c *committer) confirm(ctx context.Context, id int64, data []byte) (bool, error) {
	if c.gone(ctx, id-1) {
		if inTable, err := c.followed(ctx, id); !inTable || err != nil {
			return false, err
		}
	}
	select {
	case <-ctx.Done():
		return true, nil // seen once
	case <-time.After(replacePause):
	}
	found, err := fileio.ReadFile(ctx, c.table.IO, c.table.SnapshotPath(id), maxSnapshotFile)
	if err == nil && !bytes.Equal(found, data) {
		return false, replaced(id)
	}
	return true, nil // one that is gone by now has expired
}

// followed decides whether our snapshot, of which the one before is gone, is part
// of the table: either that one has expired since, or the id had been used and
// expired before we took it, and newer snapshots know nothing of ours. The first
// of them tells. In the second case ours is removed again, since expiring it would
// remove files that are live.
func (c *committer) followed(ctx context.Context, id int64) (bool, error) {
	unknown := func(err error) (bool, error) {
		return false, fmt.Errorf("snapshot %d was published, but newer snapshots may not follow it: %w: %w", id, err, ErrCommitUnknown)
	}
	ids, err := IDs(ctx, c.table)
	if err != nil {
		return unknown(err)
	}
	next := slices.IndexFunc(ids, func(other int64) bool { return other > id })
	if next < 0 {
		return true, nil
	}
	s, err := Read(ctx, c.table, ids[next])
	if err != nil {
		return unknown(err)
	}
	live, err := c.touched(ctx, s)
	if err != nil {
		return unknown(err)
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
		return unknown(fmt.Errorf("snapshot %d has neither its inputs nor its outputs", s.ID))
	}
	if err := removeFiles(ctx, c.table, []string{c.table.SnapshotPath(id)}); err != nil {
		return unknown(err)
	}
	return false, nil
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
