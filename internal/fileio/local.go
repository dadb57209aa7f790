package fileio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/uuid"
)

// Local is the file system of this machine, mounted ones included.
type Local struct{}

const writeBuffer = 256 << 10

type localFile struct {
	*os.File
	size int64
}

func (f localFile) Size() int64 { return f.size }

// Open implements FileIO. Only regular files can be opened.
func (Local) Open(ctx context.Context, path string) (File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// Opening a pipe would wait for its other end.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return localFile{File: f, size: info.Size()}, nil
}

type localWriter struct {
	f *os.File
	w *bufio.Writer
}

func (w *localWriter) Write(p []byte) (int, error) { return w.w.Write(p) }

func (w *localWriter) Close() error {
	err := w.w.Flush()
	if err == nil {
		err = w.f.Sync()
	}
	if err == nil {
		err = syncDir(filepath.Dir(w.f.Name())) // the name has to outlive a crash too
	}
	return errors.Join(err, w.f.Close())
}

// Create implements FileIO. Close syncs the file and its folder.
func (Local) Create(ctx context.Context, path string) (Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &localWriter{f: f, w: bufio.NewWriterSize(f, writeBuffer)}, nil
}

// Put implements FileIO: the data goes to a hidden file beside the target, is
// synced, and then gets its name by link, which fails where the name exists, or
// by rename, which replaces. The directory is synced last, so that the name
// outlives a crash.
func (Local) Put(ctx context.Context, path string, data []byte, mode Mode) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotWritten, err)
	}
	dir, base := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("%w: %w", ErrNotWritten, err)
	}
	tmp := filepath.Join(dir, fmt.Sprintf(".%s.%s.tmp", base, uuid.NewString()))
	if err := writeSynced(tmp, data); err != nil {
		return fmt.Errorf("%w: %w", ErrNotWritten, errors.Join(err, removeIfThere(tmp)))
	}
	var err error
	if mode == Replace {
		err = os.Rename(tmp, path)
	} else if err = os.Link(tmp, path); noLinks(err) {
		if err = renameNoReplace(tmp, path); noLinks(err) {
			err = fmt.Errorf("the file system has neither hard links nor a rename that does not replace: %w: %w", err, ErrNotWritten)
		}
	}
	removeErr := removeIfThere(tmp)
	if err != nil {
		return errors.Join(err, removeErr)
	}
	return errors.Join(syncDir(dir), removeErr)
}

// noLinks reports whether a file system said that it has no hard links.
func noLinks(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func removeIfThere(path string) error {
	err := os.Remove(path)
	if errors.Is(err, syscall.EROFS) { // before it looks whether there is a file
		if _, statErr := os.Lstat(path); errors.Is(statErr, fs.ErrNotExist) {
			return nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List implements FileIO.
func (Local) List(ctx context.Context, dir string) ([]Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, Info{Name: e.Name(), Size: info.Size(), Dir: e.IsDir(), ModTime: info.ModTime()})
	}
	return infos, nil
}

// Remove implements FileIO.
func (Local) Remove(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return removeIfThere(path)
}
