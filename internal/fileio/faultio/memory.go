package faultio

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tablectl/internal/fileio"
)

// Memory is a store in memory. Folders are there as long as they hold a file.
type Memory struct {
	mu    sync.Mutex
	files map[string][]byte
}

// NewMemory returns a store with these files, by path.
func NewMemory(files map[string]string) *Memory {
	m := &Memory{files: map[string][]byte{}}
	for p, content := range files {
		m.files[p] = []byte(content)
	}
	return m
}

// ReadTree reads all files of a folder of this machine, hidden ones included,
// by their path behind the prefix.
func ReadTree(dir, prefix string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		files[path.Join(prefix, filepath.ToSlash(rel))] = string(data)
		return err
	})
	return files, err
}

// WriteTree writes files to a folder of this machine by their path behind the
// prefix.
func WriteTree(dir, prefix string, files map[string]string) error {
	for p, content := range files {
		p = filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(p, prefix)))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(content), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// Files returns what the store holds, by path.
func (m *Memory) Files() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	files := make(map[string]string, len(m.files))
	for p, data := range m.files {
		files[p] = string(data)
	}
	return files
}

// Set writes a file as another writer would who asks nobody.
func (m *Memory) Set(path, content string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[path] = []byte(content)
}

// SetAll writes several files, as Set does.
func (m *Memory) SetAll(files map[string]string) {
	for p, content := range files {
		m.Set(p, content)
	}
}

// Open implements fileio.FileIO.
func (m *Memory) Open(ctx context.Context, path string) (fileio.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return memoryFile{bytes.NewReader(data)}, nil
}

type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error { return nil }

// Create implements fileio.FileIO. What was written is there at once.
func (m *Memory) Create(ctx context.Context, path string) (fileio.Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[path]; ok {
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	m.files[path] = nil
	return &memoryWriter{memory: m, path: path}, nil
}

type memoryWriter struct {
	memory *Memory
	path   string
	data   []byte
	closed bool
}

func (w *memoryWriter) Write(p []byte) (int, error) {
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	if w.closed {
		return 0, fs.ErrClosed
	}
	w.data = append(w.data, p...)
	if _, ok := w.memory.files[w.path]; ok { // a removed file stays removed
		w.memory.files[w.path] = w.data
	}
	return len(p), nil
}

func (w *memoryWriter) Close() error {
	if w.closed {
		return fs.ErrClosed
	}
	w.closed = true
	return nil
}

// Put implements fileio.FileIO.
func (m *Memory) Put(ctx context.Context, path string, data []byte, mode fileio.Mode) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", fileio.ErrNotWritten, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[path]; ok && mode == fileio.IfAbsent {
		return &fs.PathError{Op: "put", Path: path, Err: fs.ErrExist}
	}
	m.files[path] = slices.Clone(data)
	return nil
}

// List implements fileio.FileIO.
func (m *Memory) List(ctx context.Context, dir string) ([]fileio.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]fileio.Info{}
	for p, data := range m.files {
		rest, ok := strings.CutPrefix(p, dir+"/")
		if !ok {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		info := fileio.Info{Name: name, Dir: deeper}
		if !deeper {
			info.Size = int64(len(data))
		}
		found[name] = info
	}
	infos := make([]fileio.Info, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		infos = append(infos, found[name])
	}
	return infos, nil
}

// Remove implements fileio.FileIO.
func (m *Memory) Remove(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, path)
	return nil
}
