package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

const nonblocking = 0

// DefaultDir is the folder of locks where none is configured. The folder for
// temporary files is the user's own here.
func DefaultDir() Dir { return Dir{Path: filepath.Join(os.TempDir(), "tablectl-locks")} }

// tryLock locks a byte far behind the content, since what is locked cannot be
// read by others.
func tryLock(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{OffsetHigh: 1})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// links is not to be had without another call, and links to files of others take
// rights to them here.
func links(fs.FileInfo) uint64 { return 1 }
