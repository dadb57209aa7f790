package fileio

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace gives a file a name that must be free, on file systems
// without hard links.
func renameNoReplace(from, to string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
