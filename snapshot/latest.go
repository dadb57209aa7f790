package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tablectl/internal/fileio"
	"tablectl/table"
)

const (
	maxSnapshotFile = 16 << 20 // bytes
	maxHintFile     = 1 << 10
	latestHint      = "LATEST"
	// A snapshot can be expired, or be seen half written through a store without
	// atomic writes, between finding and reading it.
	readAttempts = 10
	readPause    = 50 * time.Millisecond
)

// Latest returns the newest snapshot, or nil when the table has none.
func Latest(ctx context.Context, t *table.Table) (*Snapshot, error) {
	var last error
	for attempt := range readAttempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(readPause):
			}
		}
		id, err := latestID(ctx, t)
		if err != nil {
			return nil, err
		}
		if id == 0 {
			return nil, nil
		}
		s, err := Read(ctx, t, id)
		if err == nil {
			return s, nil
		}
		last = err
	}
	return nil, last
}

// Read reads the snapshot with that id. A missing one is fs.ErrNotExist.
func Read(ctx context.Context, t *table.Table, id int64) (*Snapshot, error) {
	p := t.SnapshotPath(id)
	data, err := fileio.ReadFile(ctx, t.IO, p, maxSnapshotFile)
	if err != nil {
		return nil, fmt.Errorf("read snapshot %d: %w", id, err)
	}
	s, err := ParseSnapshot(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	if s.ID != id {
		return nil, fmt.Errorf("%s holds the snapshot %d", p, s.ID)
	}
	return s, nil
}

// latestID finds the id of the newest snapshot; 0 is none. The hint only saves
// the listing: it counts when the snapshot it names exists and the next one
// does not.
func latestID(ctx context.Context, t *table.Table) (int64, error) {
	if id, err := readHint(ctx, t); err == nil && id > 0 {
		exists, err := fileio.Exists(ctx, t.IO, t.SnapshotPath(id))
		if err == nil && exists {
			if next, err := fileio.Exists(ctx, t.IO, t.SnapshotPath(id+1)); err == nil && !next {
				return id, nil
			}
		}
	}
	ids, err := IDs(ctx, t)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[len(ids)-1], nil
}

// readHint returns the id that the hint names; 0 is none.
func readHint(ctx context.Context, t *table.Table) (int64, error) {
	data, err := fileio.ReadFile(ctx, t.IO, path.Join(t.SnapshotDir(), latestHint), maxHintFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, nil //nolint:nilerr // a damaged hint is none
	}
	return max(id, 0), nil
}

// IDs lists the ids of all snapshots of the branch, in order.
func IDs(ctx context.Context, t *table.Table) ([]int64, error) {
	infos, err := t.IO.List(ctx, t.SnapshotDir())
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var ids []int64
	for _, info := range infos {
		digits, ok := strings.CutPrefix(info.Name, "snapshot-")
		if !ok || info.Dir {
			continue
		}
		if id, err := strconv.ParseInt(digits, 10, 64); err == nil && id > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// All reads every snapshot of the branch in order of id, leaving out those
// that expire meanwhile.
func All(ctx context.Context, t *table.Table) ([]*Snapshot, error) {
	ids, err := IDs(ctx, t)
	if err != nil {
		return nil, err
	}
	var all []*Snapshot
	for _, id := range ids {
		s, err := Read(ctx, t, id)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
