package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"tablectl/internal/fileio"
)

// confirm makes sure that our snapshot is part of the table: that it follows
// latest, and that what follows it was built on it. It looks at once, since others
// should not meet a stray one, and when they have had the time to replace it. It has
// a time of its own: when publishing took long, looking matters most. It returns
// false when our snapshot certainly is not part of the table and was removed, and
// an error that wraps ErrCommitUnknown when it cannot tell, or others rolled the
// table back: someone may have built on ours until then.
func (c *committer) confirm(ctx context.Context, latest *Snapshot, data []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.options.PublishTimeout)
	defer cancel()
	for _, pause := range []time.Duration{0, replacePause} {
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		inTable, doubt := false, false
		err := c.persist(ctx, func(ctx context.Context) (err error) {
			inTable, err = c.look(ctx, latest, data, &doubt)
			return err
		})
		if errors.Is(err, errUnseen) && pause > 0 && !doubt {
			return true, nil // the first look saw it
		}
		if err != nil {
			return false, fmt.Errorf("snapshot %d was published, but %w: %w", latest.ID+1, err, ErrCommitUnknown)
		}
		if !inTable {
			return false, nil
		}
	}
	return true, nil
}

// errUnseen says that the time was over before a look saw anything.
var errUnseen = errors.New("it could not be seen that it is part of the table")

// persist looks again and again while something cannot be read, until the time is
// over: others may expire it meanwhile. A look that hangs is given up.
func (c *committer) persist(ctx context.Context, look func(context.Context) error) error {
	for {
		part, cancel := context.WithTimeout(ctx, c.options.PublishTimeout/4)
		err := look(part)
		cancel()
		var verdict *verdictError
		if err == nil || errors.As(err, &verdict) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errUnseen, err)
		case <-time.After(publishPause):
		}
	}
}

// verdictError says what others have done to our snapshot; looking again would not
// change it.
type verdictError struct{ text string }

func (e *verdictError) Error() string { return e.text }

// look decides about our snapshot. It sets doubt as soon as it sees that latest, which
// it follows, is not in place.
func (c *committer) look(ctx context.Context, latest *Snapshot, data []byte, doubt *bool) (bool, error) {
	found, readErr := fileio.ReadFile(ctx, c.table.IO, c.table.SnapshotPath(latest.ID+1), maxSnapshotFile)
	if readErr == nil && !bytes.Equal(found, data) {
		// Only a writer that looks and then renames can do that. Others may have built on ours.
		return false, &verdictError{"then replaced by another writer"}
	}
	f, err := c.fate(ctx, latest)
	*doubt = *doubt || err == nil && f != inPlace
	switch {
	case err != nil:
		return false, err
	case f == exchanged:
		return false, c.takeBack(ctx, latest, data)
	case f == gone:
		return c.followed(ctx, latest, data)
	case errors.Is(readErr, fs.ErrNotExist): // it cannot expire before the one that it follows
		return false, &verdictError{"others removed it"}
	}
	return readErr == nil, readErr
}

// followed decides whether our snapshot is part of the table when latest, which it
// follows, is gone. Either latest has expired since, or the id after it had been
// used and expired before we took it, and newer snapshots know nothing of ours: the
// first of them that is still complete tells. In that case ours is removed again,
// since expiring it would remove files that are live. Or others have rolled the
// table back: what expires goes in order, so that older snapshots speak of it, or a
// hint that names one.
func (c *committer) followed(ctx context.Context, latest *Snapshot, data []byte) (bool, error) {
	ids, err := IDs(ctx, c.table)
	if err != nil {
		return false, err
	}
	to, err := readHint(ctx, c.table)
	if err != nil {
		return false, err
	}
	rolledBack := to > 0 && to < latest.ID
	switch {
	case len(ids) == 0:
		return false, &verdictError{"no snapshot is left"}
	case ids[0] < latest.ID && rolledBack && slices.Contains(ids, to):
		return false, c.takeBack(ctx, latest, data)
	case ids[0] < latest.ID:
		return false, &verdictError{fmt.Sprintf("snapshot %d, which it follows, is gone while older ones are there", latest.ID)}
	}
	var missing error // half expired
	for _, id := range ids {
		if id <= latest.ID+1 {
			continue
		}
		s, err := Read(ctx, c.table, id)
		var outputs, inputs bool
		if err == nil {
			outputs, inputs, err = c.alive(ctx, s)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = err
			continue
		case err != nil || outputs:
			return outputs, err
		case !inputs:
			return false, &verdictError{fmt.Sprintf("snapshot %d has neither its inputs nor its outputs", s.ID)}
		}
		return false, c.removeOurs(ctx, latest.ID+1, data)
	}
	switch {
	case missing != nil:
		return false, missing
	case rolledBack:
		return false, &verdictError{fmt.Sprintf("the hint names snapshot %d", to)}
	}
	return c.whole(ctx, latest.ID+1, data)
}

// whole decides about our snapshot when it is the newest and the one that it follows
// is gone: what it refers to cannot have expired, so if that is not there, the table
// was dropped before we published. Ours is removed then, lest it turn up in a table
// that is made in the same place.
func (c *committer) whole(ctx context.Context, id int64, data []byte) (bool, error) {
	p, err := c.table.ManifestPath(c.deltaList)
	if err != nil {
		return false, err
	}
	there, err := fileio.Exists(ctx, c.table.IO, p)
	if err != nil || there {
		return there, err
	}
	ids, err := IDs(ctx, c.table)
	switch {
	case err != nil:
		return false, err
	case len(ids) > 0 && ids[len(ids)-1] > id:
		return false, fmt.Errorf("snapshot %d was published meanwhile", ids[len(ids)-1])
	}
	return false, c.removeOurs(ctx, id, data)
}

// alive reports whether outputs and inputs of the commit are live in a snapshot.
func (c *committer) alive(ctx context.Context, s *Snapshot) (outputs, inputs bool, err error) {
	live, err := c.touched(ctx, s)
	if err != nil {
		return false, false, err
	}
	has := map[FileIdentity]bool{}
	for _, e := range live {
		has[e.Identity()] = true
	}
	_ = c.each(func(e *ManifestEntry) error {
		outputs = outputs || e.Kind == Add && has[e.Identity()]
		inputs = inputs || e.Kind == Delete && has[e.Identity()]
		return nil
	})
	return outputs, inputs, nil
}

// takeBack removes our snapshot, which would undo a rollback by others, unless
// newer ones follow it already. It always returns an error, in the end a verdict.
func (c *committer) takeBack(ctx context.Context, latest *Snapshot, data []byte) error {
	id := latest.ID + 1
	text := fmt.Sprintf("others rolled back snapshot %d, which it follows", latest.ID)
	ids, err := IDs(ctx, c.table)
	if err != nil {
		return fmt.Errorf("%s, and it could not be removed: %w", text, err)
	}
	if len(ids) > 0 && ids[len(ids)-1] > id {
		return &verdictError{text + ", and newer snapshots are there"}
	}
	if err := c.removeOurs(ctx, id, data); err != nil {
		return fmt.Errorf("%s, and it could not be removed: %w", text, err)
	}
	return &verdictError{text}
}

// removeOurs removes our snapshot if it is there. Others can use its id when a
// rollback has removed it, so the file is looked at just before.
func (c *committer) removeOurs(ctx context.Context, id int64, data []byte) error {
	p := c.table.SnapshotPath(id)
	found, err := fileio.ReadFile(ctx, c.table.IO, p, maxSnapshotFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(found, data) {
		return nil
	}
	if err != nil {
		return err
	}
	return removeFiles(ctx, c.table, []string{p})
}
