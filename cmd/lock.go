package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"tablectl/internal/lock"
	"tablectl/table"
)

// The values of --lock and --on-locked.
const (
	lockAuto = "auto"
	lockNone = "none"

	lockedFail = "fail"
	lockedSkip = "skip"
	lockedWait = "wait"
)

// skipLocked is the reason in a result for leaving a whole table alone.
const skipLocked = "locked"

func addLockFlags(f *pflag.FlagSet) {
	f.String("lock", lockAuto, "auto keeps a second run on this machine off the table, none does not")
	f.String("on-locked", lockedFail, "where another run holds the lock: fail, skip (exit 0) or wait")
	f.String("lock-dir", "", "folder of the locks (default: one for all users of the machine)")
}

// lockPolicy is what the user wants about locks.
type lockPolicy struct {
	none     bool
	onLocked string
	dir      lock.Dir
}

func (a *app) lockPolicy() (lockPolicy, error) {
	p := lockPolicy{onLocked: a.config.text("on-locked"), dir: lock.DefaultDir()}
	switch mode := a.config.text("lock"); mode {
	case lockAuto:
	case lockNone:
		p.none = true
	default:
		return p, usageError(fmt.Errorf("--lock %s: expected auto or none", mode))
	}
	switch p.onLocked {
	case lockedFail, lockedSkip, lockedWait:
	default:
		return p, usageError(fmt.Errorf("--on-locked %s: expected fail, skip or wait", p.onLocked))
	}
	if a.config.given("lock-dir") {
		p.dir = lock.Dir{Path: a.config.text("lock-dir")}
		if !filepath.IsAbs(p.dir.Path) { // runs from different folders would not meet
			return p, usageError(fmt.Errorf("--lock-dir %q: expected an absolute path", p.dir.Path))
		}
	}
	return p, nil
}

// lockPoll is how often a run that waits looks whether the lock is free. The kernel
// could wake it, but not if it is to heed signals too.
const lockPoll = 200 * time.Millisecond

// lockTable takes the table's lock and returns what gives it back. A HeldError says
// that another run has it. Where there can be no lock the run goes on without:
// publishing is safe beside any other writer, so at worst it works for nothing.
func (a *app) lockTable(ctx context.Context, run *compactRun, p lockPolicy) (func(), error) {
	unlocked := func() {}
	if p.none {
		return unlocked, nil
	}
	dir, branch, err := table.SplitLocation(run.location)
	if err != nil {
		return unlocked, err
	}
	// However the path leads there, it is one table.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return unlocked, nil // there is no such folder; opening the table says so
	}
	dir = filepath.ToSlash(dir)
	name := dir
	if branch != "" {
		name += "$branch_" + branch
	}
	for waits := false; ; waits = true {
		l, err := p.dir.Acquire(name, lockHolder())
		var held *lock.HeldError
		switch {
		case err == nil:
			return l.Release, nil
		case !errors.As(err, &held):
			run.warn(a, fmt.Sprintf("the table is not locked, so that another run may do the same work: %v (see --lock-dir and --lock none)", err))
			return unlocked, nil
		case p.onLocked != lockedWait:
			run.name, run.held = table.Name(dir, branch), held
			return unlocked, held
		case !waits:
			a.log.Warn("waiting for the lock", "reason", held.Error())
		}
		select {
		case <-ctx.Done():
			return unlocked, fmt.Errorf("wait for the lock: %w: %w", held, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// lockHolder describes this process to others. Its arguments are left out: the file
// can be read by all, and outlives a process that is killed.
func lockHolder() lock.Holder {
	h := lock.Holder{PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second)}
	h.Host, _ = os.Hostname()
	if u, err := user.Current(); err == nil {
		h.User = u.Username
	}
	return h
}
