// Package faultio makes stores go wrong, for tests.
//
// FS wraps a fileio.FileIO: it numbers every operation, shows it to a Hook, and
// does to it what the Hook says. A Hook can also be a failpoint: it may block,
// cancel a context, or change the store before the operation goes on. Memory is a
// store that is quick to copy and to compare.
package faultio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"

	"tablectl/internal/fileio"
)

// ErrInjected is wrapped by every error that comes from a Fault.
var ErrInjected = errors.New("injected fault")

// Kind is what an operation does.
type Kind string

// The kinds. Write and Close are those of a Writer, Read is that of a File.
const (
	Open   Kind = "open"
	Read   Kind = "read"
	Create Kind = "create"
	Write  Kind = "write"
	Close  Kind = "close"
	Put    Kind = "put"
	List   Kind = "list"
	Remove Kind = "remove"
)

// Changes reports whether operations of that kind change the store.
func (k Kind) Changes() bool {
	switch k {
	case Open, Read, List:
		return false
	}
	return true
}

// Op is one operation. The first one has the number 1.
type Op struct {
	N    int
	Kind Kind
	Path string
}

// Fault is what goes wrong with an operation.
type Fault int

// The faults. Where an operation has nothing that could be halved, Partial and
// NoSpace fail without an effect.
const (
	None      Fault = iota
	Fail            // an error, without an effect
	LostReply       // the effect, then an error
	Exists          // the effect, then fs.ErrExist
	Partial         // half of the bytes, then an error
	NoSpace         // ENOSPC: half of the bytes of a Write; of a Put none, and it says so
	Hang            // blocks until the context of the operation is done, without an effect
	LateHang        // the effect, then blocks until the context of the operation is done
	Timeout         // the effect, then an error as of a store's client that does not wait any longer
)

// Hook is called before each operation, from the goroutine that does it.
type Hook func(Op) Fault

// Hit is an operation with what went wrong with it.
type Hit struct {
	Op
	Fault Fault
}

// FS is a store with faults.
type FS struct {
	base    fileio.FileIO
	hook    Hook
	n       atomic.Int64
	handles atomic.Int64

	mu   sync.Mutex
	hits []Hit
}

// New wraps a store. A nil hook lets everything pass.
func New(base fileio.FileIO, hook Hook) *FS { return &FS{base: base, hook: hook} }

// Ops is how many operations there were.
func (s *FS) Ops() int { return int(s.n.Load()) }

// Handles is how many files and writers are open.
func (s *FS) Handles() int { return int(s.handles.Load()) }

// Hits are the operations that went wrong.
func (s *FS) Hits() []Hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Hit(nil), s.hits...)
}

// do runs one operation: effect does all of it, half the part that a Partial
// fault leaves.
func (s *FS) do(ctx context.Context, kind Kind, path string, effect, half func() error) error {
	op, fault := Op{N: int(s.n.Add(1)), Kind: kind, Path: path}, None
	if s.hook != nil {
		fault = s.hook(op)
	}
	if fault == None {
		return effect()
	}
	s.mu.Lock()
	s.hits = append(s.hits, Hit{op, fault})
	s.mu.Unlock()
	fail := func(cause error) error { return fmt.Errorf("%s %s: %w: %w", kind, path, ErrInjected, cause) }
	switch fault {
	case LostReply, Exists, LateHang, Timeout:
		if err := effect(); err != nil {
			return err
		}
	case Partial:
		if err := half(); err != nil {
			return err
		}
	case NoSpace:
		if kind == Put {
			return fail(fmt.Errorf("%w: %w", fileio.ErrNotWritten, syscall.ENOSPC))
		}
		if err := half(); err != nil {
			return err
		}
		return fail(syscall.ENOSPC)
	}
	switch fault {
	case Exists:
		return fail(fs.ErrExist)
	case Timeout:
		return fail(context.DeadlineExceeded)
	case Hang, LateHang:
		<-ctx.Done()
		return fail(ctx.Err())
	}
	return fail(syscall.EIO)
}

func nothing() error { return nil }

type file struct {
	fileio.File
	ctx    context.Context // that of Open: reads hang on it
	fs     *FS
	path   string
	closed atomic.Bool
}

// Open implements fileio.FileIO.
func (s *FS) Open(ctx context.Context, path string) (fileio.File, error) {
	var f fileio.File
	err := s.do(ctx, Open, path, func() (err error) {
		f, err = s.base.Open(ctx, path)
		return err
	}, nothing)
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	s.handles.Add(1)
	return &file{File: f, ctx: ctx, fs: s, path: path}, nil
}

// ReadAt implements fileio.File.
func (f *file) ReadAt(p []byte, at int64) (n int, err error) {
	err = f.fs.do(f.ctx, Read, f.path, func() error {
		n, err = f.File.ReadAt(p, at)
		return err
	}, func() error {
		n, err = f.File.ReadAt(p[:len(p)/2], at)
		return err
	})
	return n, err
}

// Close implements fileio.File.
func (f *file) Close() error {
	if !f.closed.Swap(true) {
		f.fs.handles.Add(-1)
	}
	return f.File.Close()
}

type writer struct {
	fileio.Writer
	ctx    context.Context // that of Create: writes hang on it
	fs     *FS
	path   string
	closed atomic.Bool
}

// Create implements fileio.FileIO.
func (s *FS) Create(ctx context.Context, path string) (fileio.Writer, error) {
	var w fileio.Writer
	err := s.do(ctx, Create, path, func() (err error) {
		w, err = s.base.Create(ctx, path)
		return err
	}, nothing)
	if err != nil {
		if w != nil {
			err = errors.Join(err, w.Close())
		}
		return nil, err
	}
	s.handles.Add(1)
	return &writer{Writer: w, ctx: ctx, fs: s, path: path}, nil
}

// Write implements fileio.Writer.
func (w *writer) Write(p []byte) (n int, err error) {
	err = w.fs.do(w.ctx, Write, w.path, func() error {
		n, err = w.Writer.Write(p)
		return err
	}, func() error {
		n, err = w.Writer.Write(p[:len(p)/2])
		return err
	})
	return n, err
}

// Close implements fileio.Writer. Whatever goes wrong, the base is closed.
func (w *writer) Close() error {
	closeBase := func() error {
		if !w.closed.Swap(true) {
			w.fs.handles.Add(-1)
		}
		return w.Writer.Close()
	}
	err := w.fs.do(w.ctx, Close, w.path, closeBase, nothing)
	if err != nil && !w.closed.Load() {
		return errors.Join(err, closeBase())
	}
	return err
}

// Put implements fileio.FileIO.
func (s *FS) Put(ctx context.Context, path string, data []byte, mode fileio.Mode) error {
	return s.do(ctx, Put, path,
		func() error { return s.base.Put(ctx, path, data, mode) },
		func() error { return s.base.Put(ctx, path, data[:len(data)/2], mode) })
}

// List implements fileio.FileIO.
func (s *FS) List(ctx context.Context, dir string) (infos []fileio.Info, err error) {
	err = s.do(ctx, List, dir, func() (err error) {
		infos, err = s.base.List(ctx, dir)
		return err
	}, nothing)
	return infos, err
}

// Remove implements fileio.FileIO.
func (s *FS) Remove(ctx context.Context, path string) error {
	return s.do(ctx, Remove, path, func() error { return s.base.Remove(ctx, path) }, nothing)
}
