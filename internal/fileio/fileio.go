// Package fileio says where bytes live: the few operations on files that a
// table needs, on local disks and, for tests, in front of injected faults.
//
// Paths are absolute and slash-separated. Nothing here knows what a file holds.
package fileio

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// File is an open file that is read at any place. Reads may be concurrent.
type File interface {
	io.ReaderAt
	io.Closer
	// Size is the file's length in bytes when it was opened.
	Size() int64
}

// Writer is a file under construction. Close makes what was written durable;
// until Close has returned without an error the file must not be relied upon.
type Writer interface {
	io.WriteCloser
}

// Info describes one entry of a directory.
type Info struct {
	Name    string // base name
	Size    int64  // bytes
	Dir     bool
	ModTime time.Time
}

// Mode says what Put does when the path exists.
type Mode int

const (
	// IfAbsent makes Put fail with fs.ErrExist and leave the existing file as it is.
	// Of several concurrent calls for one path, at most one succeeds.
	IfAbsent Mode = iota
	// Replace makes Put replace the file; a reader sees the old or the new content.
	Replace
)

// FileIO is a store of files. A missing file is reported as fs.ErrNotExist.
type FileIO interface {
	// Open opens a file for reading.
	Open(ctx context.Context, path string) (File, error)
	// Create starts a new file and the folders above it; an existing file is fs.ErrExist.
	Create(ctx context.Context, path string) (Writer, error)
	// Put writes a small file in one step: it is there with all its content, or
	// not. An error that wraps fs.ErrExist or ErrNotWritten says that this call has
	// not written it; after any other error the outcome is not known.
	Put(ctx context.Context, path string, data []byte, mode Mode) error
	// List returns the entries of a directory, sorted by name; a missing directory is empty.
	List(ctx context.Context, dir string) ([]Info, error)
	// Remove deletes a file; a missing file is not an error.
	Remove(ctx context.Context, path string) error
}

// ErrNotWritten is wrapped by Put when it certainly has not written the file.
var ErrNotWritten = errors.New("not written")

// ErrTooLarge is wrapped by ReadFile when a file exceeds the limit.
var ErrTooLarge = errors.New("file is too large")

// ReadFile reads a whole file of at most limit bytes.
func ReadFile(ctx context.Context, store FileIO, path string, limit int64) ([]byte, error) {
	f, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size() > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
	}
	data := make([]byte, f.Size())
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, nil
}

// Exists reports whether a file is there, by opening it.
func Exists(ctx context.Context, store FileIO, path string) (bool, error) {
	f, err := store.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}
