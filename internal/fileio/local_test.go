//go:build unix

package fileio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOpenRegular refuses what is not a file, without waiting for it.
func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"to-dir": dir, "to-fifo": fifo, "to-nothing": filepath.Join(dir, "none"), "to-null": os.DevNull} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "fifo", "to-dir", "to-fifo", "to-null"} {
		done := make(chan error, 1)
		go func() {
			f, err := Local{}.Open(t.Context(), filepath.Join(dir, name))
			if err == nil {
				err = errors.Join(errors.New("opened"), f.Close())
			} else if strings.Contains(err.Error(), "not a regular file") {
				err = nil
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%q: %v", name, err)
			}
		case <-time.After(2 * time.Second):
			t.Errorf("%q: opening hangs", name)
			w, err := os.OpenFile(fifo, os.O_RDWR, 0) // lets it go on
			if err != nil {
				t.Fatal(err)
			}
			<-done
			w.Close()
		}
	}
	if _, err := (Local{}).Open(t.Context(), filepath.Join(dir, "to-nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestOpenLink follows links to files: tables may be put together with them.
func TestOpenLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, []byte("abc"), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	f, err := Local{}.Open(t.Context(), link)
	if err != nil || f.Size() != 3 {
		t.Fatal(err)
	}
	f.Close()
}

// TestPutOnOthers does not write through what is in the place of the file.
func TestPutOnOthers(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	link, dangling, sub := filepath.Join(dir, "link"), filepath.Join(dir, "dangling"), filepath.Join(dir, "sub")
	if err := errors.Join(os.WriteFile(target, []byte("abc"), 0o600), os.Symlink(target, link),
		os.Symlink(filepath.Join(dir, "none"), dangling), os.MkdirAll(filepath.Join(sub, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{link, dangling, sub} {
		if err := (Local{}).Put(t.Context(), p, []byte("new"), IfAbsent); !errors.Is(err, fs.ErrExist) {
			t.Errorf("put %s: %v", p, err)
		}
		if w, err := (Local{}).Create(t.Context(), p); !errors.Is(err, fs.ErrExist) {
			t.Errorf("create %s: %v, %v", p, w, err)
		}
	}
	if err := (Local{}).Put(t.Context(), sub, []byte("new"), Replace); err == nil {
		t.Error("replaced a folder")
	}
	if err := (Local{}).Put(t.Context(), link, []byte("new"), Replace); err != nil {
		t.Error(err)
	}
	content, err := os.ReadFile(target)
	if err != nil || string(content) != "abc" {
		t.Errorf("the target of the link holds %q, %v", content, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written through a link: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

// TestPutFailures leaves no hidden file and says when nothing was written.
func TestPutFailures(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, strings.Repeat("x", 250)) // its hidden file's name is too long
	for _, p := range []string{filepath.Join(file, "below"), long} {
		for _, mode := range []Mode{IfAbsent, Replace} {
			if err := (Local{}).Put(t.Context(), p, []byte("x"), mode); !errors.Is(err, ErrNotWritten) {
				t.Errorf("%s: %v", p, err)
			}
		}
	}
	if _, err := (Local{}).Create(t.Context(), filepath.Join(file, "below")); err == nil {
		t.Error("created below a file")
	}
	if infos, err := (Local{}).List(t.Context(), file); err != nil || len(infos) > 0 {
		t.Errorf("a file holds %v, %v", infos, err)
	}
	if err := (Local{}).Remove(t.Context(), filepath.Join(file, "below")); err == nil {
		t.Error("removed below a file")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

// TestRenameNoReplace is for file systems without hard links.
func TestRenameNoReplace(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := errors.Join(os.WriteFile(a, []byte("a"), 0o600), os.WriteFile(b, []byte("b"), 0o600)); err != nil {
		t.Fatal(err)
	}
	err := renameNoReplace(a, b)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		if runtime.GOOS == "linux" {
			t.Fatalf("set TMPDIR to a file system that can rename without replacing: %v", err)
		}
		t.Skip("not to be had here:", err)
	}
	if content, _ := os.ReadFile(b); !errors.Is(err, fs.ErrExist) || string(content) != "b" {
		t.Errorf("got %v, the file holds %q", err, content)
	}
	if err := renameNoReplace(a, filepath.Join(dir, "c")); err != nil {
		t.Error(err)
	}
	for err, want := range map[error]bool{
		&os.LinkError{Err: syscall.EPERM}: true, &os.LinkError{Err: syscall.ENOSYS}: true, &os.LinkError{Err: syscall.ENOTSUP}: true,
		&os.LinkError{Err: syscall.EEXIST}: false, &os.LinkError{Err: syscall.ENOSPC}: false,
	} {
		if noLinks(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

// TestSyncedWriter reports what only Close can know.
func TestSyncedWriter(t *testing.T) {
	w, err := Local{}.Create(t.Context(), filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("buffered")); err != nil {
		t.Fatal(err)
	}
	w.(*localWriter).f.Close()
	if err := w.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
