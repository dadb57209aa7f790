package snapshot

import (
	"bytes"
	"context"
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
func (c *committer) publish(ctx context.Context, id int64, data []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.PublishTimeout)
	defer cancel()
	p := c.table.SnapshotPath(id)
	for first := true; ; first = false {
		err := c.table.IO.Put(ctx, p, data, fileio.IfAbsent)
		if errors.Is(err, fileio.ErrNotWritten) && first {
			return false, fmt.Errorf("publish snapshot %d: %w", id, err)
		}
		found, readErr := fileio.ReadFile(ctx, c.table.IO, p, maxSnapshotFile)
		switch {
		case readErr == nil && bytes.Equal(found, data):
			err := c.confirm(ctx, id, data)
			return err == nil, err
		case readErr == nil && err == nil:
			return false, replaced(id)
		case readErr == nil && complete(found):
			return false, nil
		case err == nil:
			return true, nil // written; that it cannot be read now does not take it back
		}
		if next, nextErr := fileio.Exists(ctx, c.table.IO, c.table.SnapshotPath(id+1)); nextErr == nil && next && errors.Is(readErr, fs.ErrNotExist) {
			return false, fmt.Errorf("publish snapshot %d: %w: newer snapshots exist and this one is gone: %w", id, errors.Join(err, readErr), ErrCommitUnknown)
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("publish snapshot %d: %w: %w", id, errors.Join(err, readErr), ErrCommitUnknown)
		case <-time.After(publishPause):
		}
	}
}

// confirm looks at our snapshot once more when others have had the time to replace
// it. One that is gone by then has expired.
func (c *committer) confirm(ctx context.Context, id int64, data []byte) error {
	select {
	case <-ctx.Done():
		return nil // seen once
	case <-time.After(replacePause):
	}
	found, err := fileio.ReadFile(ctx, c.table.IO, c.table.SnapshotPath(id), maxSnapshotFile)
	if err == nil && !bytes.Equal(found, data) {
		return replaced(id)
	}
	return nil
}

// replaced is the error when we published and someone replaced it: only a writer
// that looks and then renames can do that. Others may have built on ours.
func replaced(id int64) error {
	return fmt.Errorf("snapshot %d was published and then replaced by another writer: %w", id, ErrCommitUnknown)
}

// complete reports whether the bytes are a whole snapshot: another writer may
// be in the middle of writing it, or it may be our own that arrives in parts.
func complete(data []byte) bool {
	_, err := ParseSnapshot(data)
	return err == nil
}
