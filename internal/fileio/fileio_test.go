package fileio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"tablectl/internal/fileio"
	"tablectl/internal/fileio/faultio"
)

// stores are what the contract of FileIO is tested with, and a folder of each.
func stores(t *testing.T, test func(t *testing.T, store fileio.FileIO, dir string)) {
	t.Helper()
	t.Run("local", func(t *testing.T) { test(t, fileio.Local{}, t.TempDir()) })
	t.Run("memory", func(t *testing.T) { test(t, faultio.NewMemory(nil), "/dir") })
	t.Run("wrapped", func(t *testing.T) { test(t, faultio.New(fileio.Local{}, nil), t.TempDir()) })
}

func put(t *testing.T, store fileio.FileIO, path, content string, mode fileio.Mode) error {
	t.Helper()
	return store.Put(t.Context(), path, []byte(content), mode)
}

func read(t *testing.T, store fileio.FileIO, path string) string {
	t.Helper()
	data, err := fileio.ReadFile(t.Context(), store, path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func names(t *testing.T, store fileio.FileIO, dir string) []string {
	t.Helper()
	infos, err := store.List(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, i := range infos {
		all = append(all, fmt.Sprintf("%s:%d:%v", i.Name, i.Size, i.Dir))
	}
	return all
}

func TestPut(t *testing.T) {
	stores(t, func(t *testing.T, store fileio.FileIO, dir string) {
		p := dir + "/a/b/file"
		if err := put(t, store, p, "one", fileio.IfAbsent); err != nil {
			t.Fatal(err)
		}
		if err := put(t, store, p, "two", fileio.IfAbsent); !errors.Is(err, fs.ErrExist) || read(t, store, p) != "one" {
			t.Errorf("got %v, the file holds %q", err, read(t, store, p))
		}
		if err := put(t, store, p, "three", fileio.Replace); err != nil || read(t, store, p) != "three" {
			t.Errorf("got %v, the file holds %q", err, read(t, store, p))
		}
		if err := put(t, store, dir+"/a/b/new", "", fileio.Replace); err != nil || read(t, store, dir+"/a/b/new") != "" {
			t.Errorf("got %v", err)
		}
		if got := names(t, store, dir+"/a/b"); !slices.Equal(got, []string{"file:5:false", "new:0:false"}) {
			t.Errorf("the folder holds %v", got)
		}
	})
}

// TestPutRace puts one file from many goroutines.
func TestPutRace(t *testing.T) {
	stores(t, func(t *testing.T, store fileio.FileIO, dir string) {
		const writers = 16
		for round := range 5 {
			p := fmt.Sprintf("%s/file-%d", dir, round)
			contents := make([]string, writers)
			errs := make([]error, writers)
			var group sync.WaitGroup
			for w := range writers {
				contents[w] = strings.Repeat(fmt.Sprintf("%02d", w), 5000+w)
				group.Go(func() { errs[w] = put(t, store, p, contents[w], fileio.IfAbsent) })
			}
			group.Wait()
			winner := -1
			for w, err := range errs {
				switch {
				case err == nil && winner < 0:
					winner = w
				case err == nil:
					t.Fatalf("%d and %d have won", winner, w)
				case !errors.Is(err, fs.ErrExist):
					t.Errorf("%d: %v", w, err)
				}
			}
			if winner < 0 || read(t, store, p) != contents[winner] {
				t.Fatalf("%d has won, but the file is another", winner)
			}
		}
		if got := names(t, store, dir); len(got) != 5 {
			t.Errorf("the folder holds %v", got)
		}
	})
}

// TestReplaceRace reads while others replace: every content is whole.
func TestReplaceRace(t *testing.T) {
	stores(t, func(t *testing.T, store fileio.FileIO, dir string) {
		p := dir + "/file"
		content := func(w int) string { return strings.Repeat(string(rune('a'+w)), 1000*(w+1)) }
		if err := put(t, store, p, content(0), fileio.Replace); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for w := range 4 {
			group.Go(func() {
				for range 10 {
					if err := put(t, store, p, content(w), fileio.Replace); err != nil {
						t.Error(err)
					}
				}
			})
			group.Go(func() {
				for range 50 {
					data, err := fileio.ReadFile(t.Context(), store, p, 1<<20)
					if err != nil || len(data) == 0 || string(data) != content(int(data[0]-'a')) {
						t.Errorf("read %d bytes: %v", len(data), err)
					}
				}
			})
		}
		group.Wait()
		if got := names(t, store, dir); len(got) != 1 {
			t.Errorf("the folder holds %v", got)
		}
	})
}

func TestCreate(t *testing.T) {
	stores(t, func(t *testing.T, store fileio.FileIO, dir string) {
		p := dir + "/a/b/file"
		w, err := store.Create(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Create(t.Context(), p); !errors.Is(err, fs.ErrExist) {
			t.Errorf("created again: %v", err)
		}
		if err := put(t, store, p, "x", fileio.IfAbsent); !errors.Is(err, fs.ErrExist) {
			t.Errorf("put on it: %v", err)
		}
		var want bytes.Buffer
		for i := range 1000 {
			part := bytes.Repeat([]byte{byte(i)}, i)
			want.Write(part)
			if n, err := w.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, store, p); got != want.String() {
			t.Errorf("read %d bytes, want %d", len(got), want.Len())
		}
		if err := w.Close(); err == nil {
			t.Error("closed twice")
		}
		if _, err := store.Create(t.Context(), p); !errors.Is(err, fs.ErrExist) {
			t.Errorf("created again: %v", err)
		}
	})
}

// TestCreateRace creates one file from many goroutines.
func TestCreateRace(t *testing.T) {
	stores(t, func(t *testing.T, store fileio.FileIO, dir string) {
		var group sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			group.Go(func() {
				w, err := store.Create(t.Context(), dir+"/file")
				if errs[i] = err; err == nil {
					errs[i] = w.Close()
				}
			})
		}
		group.Wait()
		errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, fs.ErrExist) })
		if len(errs) != 1 || errs[0] != nil {
			t.Errorf("got %v", errs)
		}
	})
}

func TestOpen(t *testing.T) {
	stores(t, func(t *testing.T, store fileio.FileIO, dir string) {
		if _, err := store.Open(t.Context(), dir+"/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		if err := put(t, store, dir+"/file", "0123456789", fileio.IfAbsent); err != nil {
			t.Fatal(err)
		}
		f, err := store.Open(t.Context(), dir+"/file")
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 4)
		if n, err := f.ReadAt(buf, 3); n != 4 || err != nil || string(buf) != "3456" {
			t.Errorf("read %d, %v, %q", n, err, buf)
		}
		if n, err := f.ReadAt(buf, 8); n != 2 || !errors.Is(err, io.EOF) {
			t.Errorf("read %d, %v", n, err)
		}
		// An open file stays what it was.
		if err := put(t, store, dir+"/file", "x", fileio.Replace); err != nil || f.Size() != 10 {
			t.Errorf("%d bytes, %v", f.Size(), err)
		}
		if err := store.Remove(t.Context(), dir+"/file"); err != nil {
			t.Error(err)
		}
		if n, err := f.ReadAt(buf, 0); n != 4 || err != nil || string(buf) != "0123" {
			t.Errorf("read %d, %v, %q", n, err, buf)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestListAndRemove(t *testing.T) {
	stores(t, func(t *testing.T, store fileio.FileIO, dir string) {
		if got := names(t, store, dir+"/none"); got != nil {
			t.Errorf("a missing folder holds %v", got)
		}
		for _, p := range []string{"/c", "/b/x", "/a", "/.hidden"} {
			if err := put(t, store, dir+p, p, fileio.IfAbsent); err != nil {
				t.Fatal(err)
			}
		}
		infos, err := store.List(t.Context(), dir)
		if err != nil || len(infos) != 4 || !infos[2].Dir {
			t.Fatalf("got %v, %v", infos, err)
		}
		var got []string
		for _, i := range infos {
			got = append(got, i.Name)
		}
		if !slices.Equal(got, []string{".hidden", "a", "b", "c"}) || infos[1].Size != 2 {
			t.Errorf("got %v", infos)
		}
		for range 2 { // a missing file is not an error
			if err := store.Remove(t.Context(), dir+"/b/x"); err != nil {
				t.Error(err)
			}
		}
		if ok, err := fileio.Exists(t.Context(), store, dir+"/b/x"); ok || err != nil {
			t.Errorf("is there: %v, %v", ok, err)
		}
		if ok, err := fileio.Exists(t.Context(), store, dir+"/a"); !ok || err != nil {
			t.Errorf("is there: %v, %v", ok, err)
		}
	})
}

// TestCancelled does nothing in a context that is done, and says so.
func TestCancelled(t *testing.T) {
	stores(t, func(t *testing.T, store fileio.FileIO, dir string) {
		if err := put(t, store, dir+"/file", "x", fileio.IfAbsent); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, openErr := store.Open(ctx, dir+"/file")
		_, createErr := store.Create(ctx, dir+"/new")
		_, listErr := store.List(ctx, dir)
		putErr := store.Put(ctx, dir+"/other", nil, fileio.Replace)
		for i, err := range []error{openErr, createErr, listErr, putErr, store.Remove(ctx, dir+"/file")} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if !errors.Is(putErr, fileio.ErrNotWritten) {
			t.Errorf("put: %v", putErr)
		}
		if got := names(t, store, dir); !slices.Equal(got, []string{"file:1:false"}) {
			t.Errorf("the folder holds %v", got)
		}
	})
}

func TestReadFileLimit(t *testing.T) {
	stores(t, func(t *testing.T, store fileio.FileIO, dir string) {
		if err := put(t, store, dir+"/file", "12345", fileio.IfAbsent); err != nil {
			t.Fatal(err)
		}
		if _, err := fileio.ReadFile(t.Context(), store, dir+"/file", 4); !errors.Is(err, fileio.ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		if data, err := fileio.ReadFile(t.Context(), store, dir+"/file", 5); err != nil || string(data) != "12345" {
			t.Errorf("got %q, %v", data, err)
		}
		broken := faultio.New(store, faultio.Nth(1, faultio.Of(faultio.Read), faultio.Partial))
		if _, err := fileio.ReadFile(t.Context(), broken, dir+"/file", 5); !errors.Is(err, faultio.ErrInjected) || broken.Handles() != 0 {
			t.Errorf("got %v, %d files are open", err, broken.Handles())
		}
	})
}
