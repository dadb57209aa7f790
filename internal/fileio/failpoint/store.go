package failpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tablectl/internal/fileio"
)

// Wrap puts the failpoints that text lists in front of the local store.
func Wrap(text string) (fileio.FileIO, error) {
	points, err := parse(text)
	if err != nil {
		return nil, err
	}
	return &store{points: points}, nil
}

type store struct {
	local  fileio.Local
	points []*point
}

// at makes happen what is to happen there. Before the process is killed, torn
// brings to disk what is in the middle of being written, unless it is nil.
func (s *store) at(ctx context.Context, where place, kind, path string, torn func() error) error {
	for _, p := range s.points {
		if !p.matches(where, kind, path) {
			continue
		}
		if p.file == "" && torn != nil {
			if err := torn(); err != nil {
				return err
			}
		}
		if err := p.happen(ctx); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether any failpoint is in the middle of an operation: only then is
// the operation taken apart.
func (s *store) has(where place) bool {
	for _, p := range s.points {
		if p.place == where {
			return true
		}
	}
	return false
}

// around runs an operation between its failpoints.
func (s *store) around(ctx context.Context, kind, path string, do func() error) error {
	if err := s.at(ctx, before, kind, path, nil); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return s.at(ctx, after, kind, path, nil)
}

// Open implements fileio.FileIO.
func (s *store) Open(ctx context.Context, path string) (fileio.File, error) {
	var f fileio.File
	err := s.around(ctx, "open", path, func() (err error) {
		f, err = s.local.Open(ctx, path)
		return err
	})
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	return &file{File: f, ctx: ctx, store: s, path: path}, nil
}

type file struct {
	fileio.File
	ctx   context.Context // that of Open: reads pause in it
	store *store
	path  string
}

func (f *file) ReadAt(p []byte, at int64) (n int, err error) {
	err = f.store.around(f.ctx, "read", f.path, func() error {
		n, err = f.File.ReadAt(p, at)
		return err
	})
	return n, err
}

// Create implements fileio.FileIO.
func (s *store) Create(ctx context.Context, path string) (fileio.Writer, error) {
	var w fileio.Writer
	err := s.around(ctx, "create", path, func() (err error) {
		w, err = s.local.Create(ctx, path)
		return err
	})
	if err != nil {
		if w != nil {
			err = errors.Join(err, w.Close())
		}
		return nil, err
	}
	return &writer{Writer: w, ctx: ctx, store: s, path: path}, nil
}

type writer struct {
	fileio.Writer
	ctx   context.Context // that of Create: writes pause in it
	store *store
	path  string
}

// Write implements fileio.Writer. Half a write is on disk when the process is killed,
// as if its buffers had been full just then.
func (w *writer) Write(p []byte) (n int, err error) {
	err = w.store.around(w.ctx, "write", w.path, func() error {
		if !w.store.has(half) {
			n, err = w.Writer.Write(p)
			return err
		}
		if n, err = w.Writer.Write(p[:len(p)/2]); err != nil {
			return err
		}
		if err := w.store.at(w.ctx, half, "write", w.path, w.Writer.Close); err != nil {
			return err
		}
		rest, err := w.Writer.Write(p[n:])
		n += rest
		return err
	})
	return n, err
}

func (w *writer) Close() error {
	err := w.store.at(w.ctx, before, "close", w.path, nil)
	if err = errors.Join(err, w.Writer.Close()); err != nil {
		return err
	}
	return w.store.at(w.ctx, after, "close", w.path, nil)
}

// Put implements fileio.FileIO. The states in its middle are made as Local would
// leave them.
func (s *store) Put(ctx context.Context, path string, data []byte, mode fileio.Mode) error {
	return s.around(ctx, "put", path, func() error {
		hidden := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.tmp", filepath.Base(path), os.Getpid()))
		middle := func(where place, content []byte) error {
			if !s.has(where) {
				return nil
			}
			err := os.MkdirAll(filepath.Dir(path), 0o777)
			if err == nil {
				err = os.WriteFile(hidden, content, 0o666)
			}
			if err == nil {
				err = s.at(ctx, where, "put", path, nil)
			}
			return errors.Join(err, os.Remove(hidden))
		}
		if err := middle(half, data[:len(data)/2]); err != nil {
			return fmt.Errorf("%w: %w", fileio.ErrNotWritten, err)
		}
		if err := s.local.Put(ctx, path, data, mode); err != nil {
			return err
		}
		return middle(named, data)
	})
}

// List implements fileio.FileIO.
func (s *store) List(ctx context.Context, dir string) (infos []fileio.Info, err error) {
	err = s.around(ctx, "list", dir, func() (err error) {
		infos, err = s.local.List(ctx, dir)
		return err
	})
	return infos, err
}

// Remove implements fileio.FileIO.
func (s *store) Remove(ctx context.Context, path string) error {
	return s.around(ctx, "remove", path, func() error { return s.local.Remove(ctx, path) })
}
