package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var me = Holder{PID: 17, User: "etl", Host: "node1", Since: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)}

const name = "/wh/db.db/t"

func acquire(t *testing.T, d Dir) *Lock {
	t.Helper()
	l, err := d.Acquire(name, me)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOneHolder(t *testing.T) {
	d := Dir{Path: filepath.Join(t.TempDir(), "a", "b")}
	l := acquire(t, d)
	_, err := d.Acquire(name, Holder{PID: 18})
	var held *HeldError
	if !errors.As(err, &held) || held.By == nil || *held.By != me {
		t.Fatalf("got %v", err)
	}
	if got, want := err.Error(), "/wh/db.db/t is locked by another run: process 17 of etl on node1 since 2026-12-01T10:00:00Z"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	other, err := d.Acquire(name+"$branch_b", me)
	if err != nil {
		t.Fatalf("another name: %v", err)
	}
	other.Release()
	l.Release()
	if data, err := os.ReadFile(d.file(name)); err != nil || len(data) > 0 {
		t.Errorf("afterwards the file holds %q, %v", data, err)
	}

	// What a process that was killed has left behind does not mix with ours.
	if err := os.WriteFile(d.file(name), []byte(strings.Repeat("x", 999)), 0o666); err != nil {
		t.Fatal(err)
	}
	defer acquire(t, d).Release()
	if _, err := d.Acquire(name, me); !errors.As(err, &held) || held.By == nil || *held.By != me {
		t.Errorf("got %v", err)
	}
}

// TestNeverTwo lets many take the lock at once, also while there is no file yet.
func TestNeverTwo(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	var holders, got atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				l, err := d.Acquire(name, me)
				var held *HeldError
				if errors.As(err, &held) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) > 1 {
					t.Error("two have the lock")
				}
				got.Add(1)
				holders.Add(-1)
				l.Release()
			}
		})
	}
	wg.Wait()
	if got.Load() == 0 {
		t.Error("nobody got the lock")
	}
}

// TestNoNameNoLock: others may remove the file after it was opened and before it
// is locked.
func TestNoNameNoLock(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	for what, replace := range map[string]func() error{
		"removed": func() error { return os.Remove(d.file(name)) },
		"replaced": func() error {
			return errors.Join(os.Remove(d.file(name)), os.WriteFile(d.file(name), nil, 0o666))
		},
	} {
		acquire(t, d).Release()
		root, err := d.open()
		if err != nil {
			t.Fatal(err)
		}
		f, err := openFile(root, fileName(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		if err := lockNamed(root, f, name); !errors.Is(err, errReplaced) {
			t.Errorf("%s: got %v", what, err)
		}
		root.Close()
		f.Close()
		acquire(t, d).Release()
	}
}

// TestNowhere: a folder that cannot be made or used is an error, and none that
// says that others have the lock.
func TestNowhere(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, d := range []Dir{
		{Path: file},
		{Path: filepath.Join(file, "locks")},
		{Path: file, Shared: true},
		{Path: filepath.Join(dir, "none", "locks"), Shared: true},
	} {
		_, err := d.Acquire(name, me)
		var held *HeldError
		if err == nil || errors.As(err, &held) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%+v: got %v", d, err)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

// TestWhatOthersWrote: what a lock file holds is only shown, and only if it is
// what a holder writes.
func TestWhatOthersWrote(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	defer acquire(t, d).Release()
	for content, want := range map[string]string{
		"":            "another run",
		"garbage":     "another run",
		`{"pid":5}`:   "another run",
		`{"pid":"x"}`: "another run",
		`{"pid":-1,"since":"2026-12-01T10:00:00Z"}`: "another run",
		`{"pid":5,"since":"never"}`:                 "another run",
		`{"pid":5,"user":"a\u001b[2Jb\n","host":"\u202e","since":"2026-12-01T10:00:00+01:00"}`:         "another run: process 5 of a[2Jb on unknown since 2026-12-01T09:00:00Z",
		`{"pid":5,"user":"` + strings.Repeat("ü", 99) + `","host":"h","since":"2026-12-01T10:00:00Z"}`: "another run: process 5 of " + strings.Repeat("ü", 64) + " on h since 2026-12-01T10:00:00Z",
		`{"pid":5,"user":"` + strings.Repeat("u", maxRecord) + `","since":"2026-12-01T10:00:00Z"}`:     "another run",
	} {
		if err := os.WriteFile(d.file(name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Acquire(name, me); err == nil || err.Error() != name+" is locked by "+want {
			t.Errorf("%.100s: got %v", content, err)
		}
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}
