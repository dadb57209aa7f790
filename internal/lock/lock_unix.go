//go:build unix

package lock

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonblocking keeps a pipe that somebody put in the place of a lock file from
// holding us up.
const nonblocking = unix.O_NONBLOCK

// DefaultDir is the folder of locks where none is configured. It does not follow
// TMPDIR and XDG_RUNTIME_DIR, which sessions set and cron does not: their runs
// would not meet.
func DefaultDir() Dir { return Dir{Path: "/tmp/tablectl-locks", Shared: true} }

func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// links is how many names a file has.
func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}
