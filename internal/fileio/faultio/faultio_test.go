package faultio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tablectl/internal/fileio"
)

// script does each kind of operation once and returns their errors.
func script(ctx context.Context, s fileio.FileIO) map[Kind]error {
	errs := map[Kind]error{}
	errs[Put] = s.Put(ctx, "/d/put", []byte("1234"), fileio.IfAbsent)
	var w fileio.Writer
	if w, errs[Create] = s.Create(ctx, "/d/created"); w != nil {
		_, errs[Write] = w.Write([]byte("abcd"))
		errs[Close] = w.Close()
	}
	var f fileio.File
	if f, errs[Open] = s.Open(ctx, "/d/old"); f != nil {
		_, errs[Read] = f.ReadAt(make([]byte, 2), 0)
		f.Close()
	}
	_, errs[List] = s.List(ctx, "/d")
	errs[Remove] = s.Remove(ctx, "/d/old")
	return errs
}

var kinds = []Kind{Put, Create, Write, Close, Open, Read, List, Remove}

// TestFaults injects every fault into every kind of operation.
func TestFaults(t *testing.T) {
	before := map[string]string{"/d/old": "old"}
	after := map[string]string{"/d/put": "1234", "/d/created": "abcd"}
	for fault := None; fault <= Timeout; fault++ {
		for _, kind := range kinds {
			t.Run(fmt.Sprint(fault, kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					memory := NewMemory(before)
					s := New(memory, Nth(1, Of(kind), fault))
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					started := time.Now()
					errs := script(ctx, s)
					err := errs[kind]
					if (err != nil) != (fault != None) || (fault != None && !errors.Is(err, ErrInjected)) {
						t.Fatalf("got %v", err)
					}
					if hangs := fault == Hang || fault == LateHang; hangs != (time.Since(started) == time.Second) || hangs && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("took %v: %v", time.Since(started), err)
					}
					if s.Handles() != 0 || len(s.Hits()) != min(1, int(fault)) {
						t.Errorf("%d open, hits %v", s.Handles(), s.Hits())
					}
					for _, c := range []struct {
						err  error
						want bool
					}{
						{fs.ErrExist, fault == Exists}, {syscall.ENOSPC, fault == NoSpace}, {fileio.ErrNotWritten, fault == NoSpace && kind == Put},
					} {
						if errors.Is(err, c.err) != c.want {
							t.Errorf("%v: is %v: %v", err, c.err, !c.want)
						}
					}
					if fault == Hang || fault == LateHang {
						return // what comes after it is in a context that is done
					}
					want := maps.Clone(after)
					none := fault == Fail || fault == Partial || fault == NoSpace
					switch {
					case kind == Put && none:
						delete(want, "/d/put")
						if fault == Partial {
							want["/d/put"] = "12"
						}
					case kind == Create && fault != None:
						want["/d/created"] = ""
						if none {
							delete(want, "/d/created")
						}
					case kind == Write && none:
						want["/d/created"] = map[Fault]string{Fail: "", Partial: "ab", NoSpace: "ab"}[fault]
					case kind == Remove && none:
						want["/d/old"] = "old"
					}
					if got := memory.Files(); !maps.Equal(got, want) {
						t.Errorf("the store holds %v, want %v", got, want)
					}
				})
			})
		}
	}
}

func TestCounting(t *testing.T) {
	var seen []Op
	s := New(NewMemory(map[string]string{"/d/old": "old"}), func(op Op) Fault { seen = append(seen, op); return None })
	for kind, err := range script(t.Context(), s) {
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for i, op := range seen {
		if op.N != i+1 || op.Kind != kinds[i] {
			t.Errorf("operation %d is %+v", i, op)
		}
	}
	if s.Ops() != len(kinds) || len(seen) != len(kinds) || len(s.Hits()) != 0 {
		t.Errorf("%d operations, hits %v", s.Ops(), s.Hits())
	}
	w, err1 := s.Create(t.Context(), "/d/x")
	f, err2 := s.Open(t.Context(), "/d/put")
	if err1 != nil || err2 != nil || s.Handles() != 2 {
		t.Fatal(err1, err2, s.Handles())
	}
	if err := errors.Join(w.Close(), f.Close(), f.Close()); err != nil || s.Handles() != 0 {
		t.Error(err, s.Handles())
	}
}

func TestHooks(t *testing.T) {
	faults := func(h Hook) (got []Fault) {
		for n, kind := range []Kind{Open, Put, Put, Open, Put} {
			got = append(got, h(Op{N: n + 1, Kind: kind, Path: "/d/file"}))
		}
		return got
	}
	var calls atomic.Int64
	for want, h := range map[string]Hook{
		"[0 0 1 0 0]": Nth(2, On(Put, "/file"), Fail),
		"[0 0 0 0 0]": Nth(1, On(Put, "/other"), Fail),
		"[0 0 5 5 5]": From(3, Any, NoSpace),
		"[0 1 4 0 0]": Chain(Nth(1, Changing, Fail), From(9, Any, Fail), Nth(3, Any, Partial)),
		"[0 0 0 2 0]": Call(2, Of(Open, List), func(Op) Fault { calls.Add(1); return LostReply }),
	} {
		if got := fmt.Sprint(faults(h)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("called %d times", calls.Load())
	}
}

func TestTrees(t *testing.T) {
	files := map[string]string{"/t/a": "1", "/t/b/c": "", "/t/.hidden": "2"}
	dir := t.TempDir()
	if err := WriteTree(dir, "/t", files); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadTree(dir, "/t"); err != nil || !maps.Equal(got, files) {
		t.Errorf("read %v, %v", got, err)
	}
	m := NewMemory(files)
	w, err := m.Create(t.Context(), "/t/new")
	if err != nil {
		t.Fatal(err)
	}
	m.Set("/t/a", "3")
	if err := m.Remove(t.Context(), "/t/new"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	files["/t/a"] = "3"
	if got := m.Files(); !maps.Equal(got, files) {
		t.Errorf("holds %v", got)
	}
}
