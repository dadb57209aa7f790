//go:build !linux

package fileio

import (
	"errors"
	"os"
)

// renameNoReplace is not to be had here: such a file system cannot publish a
// snapshot without the risk of replacing one.
func renameNoReplace(from, to string) error {
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: errors.ErrUnsupported}
}
