package snapshot

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tablectl/internal/fileio/faultio"
)

const (
	third = "/snapshot/snapshot-3"          // what the commits of this file publish
	limit = 10*time.Second + publishPause/2 // for an unclear publish
)

// publishing is a commit on a table at snapshot 2 while something happens to
// the put of snapshot 3.
type publishing struct {
	files  map[string]string // before
	other  map[string]string // after another writer's commit
	bucket Bucket
	store  *faultio.Memory
	cancel func()
}

func newPublishing(t *testing.T) *publishing {
	p := &publishing{files: tableFiles(t, "append-partitioned", 2)}
	store := faultio.NewMemory(p.files)
	tbl := load(t, store)
	p.bucket = firstLive(t, tbl, latest(t, tbl))
	commitAll(t, tbl, message(p.bucket, nil, "other"))
	p.other = store.Files()
	return p
}

// run commits and returns how long it took.
func (p *publishing) run(t *testing.T, hook faultio.Hook) (*Committed, time.Duration, error) {
	p.store = faultio.NewMemory(p.files)
	tbl := load(t, p.store)
	base := latest(t, tbl)
	tbl.IO = faultio.New(p.store, hook)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p.cancel = cancel
	o := options("me")
	o.PublishTimeout = limit
	started := time.Now()
	done, err := Commit(ctx, tbl, base, []CommitMessage{message(p.bucket, p.bucket.Files, "new")}, o)
	return done, time.Since(started), err
}

// otherWins lets the other writer's files appear before our n-th operation of a
// kind on the snapshot file, with the first bytes of its snapshot.
func (p *publishing) otherWins(n int, kind faultio.Kind, bytes int) faultio.Hook {
	return faultio.Call(n, faultio.On(kind, third), func(faultio.Op) faultio.Fault {
		for path, content := range p.other {
			if strings.HasSuffix(path, third) {
				content = content[:min(bytes, len(content))]
			}
			p.store.Set(path, content)
		}
		return faultio.None
	})
}

const all = 1 << 20

// TestPublish lets one thing happen to the put of the snapshot. Before it, the
// snapshot file is opened once to see that it is not there.
func TestPublish(t *testing.T) {
	put, open := faultio.On(faultio.Put, third), faultio.On(faultio.Open, third)
	p := newPublishing(t)
	for _, c := range []struct {
		name     string
		hook     faultio.Hook
		want     error // nil is success
		attempts int
		took     time.Duration // at least; 0 is exactly
	}{
		{"untouched", nil, nil, 1, replacePause},
		{"lost reply", faultio.Nth(1, put, faultio.LostReply), nil, 1, replacePause},
		{"exists, and is ours", faultio.Nth(1, put, faultio.Exists), nil, 1, replacePause},
		{"timeout", faultio.Nth(1, put, faultio.Timeout), nil, 1, replacePause},
		{"fails, then works", faultio.Nth(1, put, faultio.Fail), nil, 1, publishPause + replacePause},
		{"fails twice, then works", faultio.Chain(faultio.Nth(1, put, faultio.Fail), faultio.Nth(2, put, faultio.Fail)), nil, 1, 2*publishPause + replacePause},
		{"fails, then exists", faultio.Chain(faultio.Nth(1, put, faultio.Fail), faultio.Nth(2, put, faultio.Exists)), nil, 1, publishPause + replacePause},
		{"certainly not written", faultio.Nth(1, put, faultio.NoSpace), syscall.ENOSPC, 0, 0},
		{"cannot be read back", faultio.From(2, open, faultio.Fail), ErrCommitUnknown, 0, limit},
		{"cannot be read back at first", faultio.Chain(faultio.Nth(2, open, faultio.Fail), faultio.Nth(3, open, faultio.Fail)), nil, 1, 2*publishPause + replacePause},
		{"lost reply, read back later", faultio.Chain(faultio.Nth(1, put, faultio.LostReply), faultio.Nth(2, open, faultio.Fail)), nil, 1, publishPause + replacePause},
		{"lost reply, read back in part", faultio.Chain(faultio.Nth(1, put, faultio.LostReply), faultio.Nth(1, faultio.On(faultio.Read, third), faultio.Partial)), nil, 1, publishPause + replacePause},
		{"cancelled with a lost reply", func(op faultio.Op) faultio.Fault {
			if !put(op) {
				return faultio.None
			}
			p.cancel()
			return faultio.LostReply
		}, nil, 1, replacePause},
		{"other writer wins", p.otherWins(1, faultio.Put, all), nil, 2, replacePause},
		{"other writer wins with a lost reply", faultio.Chain(p.otherWins(1, faultio.Put, all), faultio.Nth(1, put, faultio.LostReply)), nil, 2, replacePause},
		{"fails, then other writer wins", faultio.Chain(faultio.Nth(1, put, faultio.Fail), p.otherWins(2, faultio.Put, all)), nil, 2, publishPause + replacePause},
		{"other writer's part first", faultio.Chain(p.otherWins(1, faultio.Put, 40), p.otherWins(3, faultio.Put, all)), nil, 2, 2*publishPause + replacePause},
		{"other writer's part only", p.otherWins(1, faultio.Put, 40), ErrCommitUnknown, 0, limit},
		{"other writer's empty file only", p.otherWins(1, faultio.Put, 0), ErrCommitUnknown, 0, limit},
		{"our part only", faultio.Nth(1, put, faultio.Partial), ErrCommitUnknown, 0, limit},
		{"fails for ever", faultio.From(1, put, faultio.Fail), ErrCommitUnknown, 0, limit},
		{"hangs", faultio.From(1, put, faultio.Hang), ErrCommitUnknown, 0, limit},
		{"fails, then certainly not written", faultio.Chain(faultio.Nth(1, put, faultio.Fail), faultio.From(1, put, faultio.NoSpace)), ErrCommitUnknown, 0, limit},
		{"lost reply, never read back", faultio.Chain(faultio.Nth(1, put, faultio.LostReply), faultio.From(2, open, faultio.Fail)), ErrCommitUnknown, 0, limit},
		{"exists, never read back", faultio.Chain(faultio.Nth(1, put, faultio.Exists), faultio.From(2, open, faultio.Fail)), ErrCommitUnknown, 0, limit},
		{"exists, never read back, then certainly not written", faultio.Chain(faultio.Nth(1, put, faultio.Exists), faultio.From(1, put, faultio.NoSpace),
			faultio.From(2, open, faultio.Fail)), ErrCommitUnknown, 0, limit},
		{"fails, and the table went on", faultio.Call(1, put, func(faultio.Op) faultio.Fault {
			p.store.Set(location+"/snapshot/snapshot-4", "{}")
			return faultio.Fail
		}), ErrCommitUnknown, 0, publishPause},
		{"replaced by a careless writer", p.otherWins(2, faultio.Open, all), ErrCommitUnknown, 0, 0},
		{"replaced after it was read back", p.otherWins(3, faultio.Open, all), ErrCommitUnknown, 0, replacePause},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done, took, err := p.run(t, c.hook)
				if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
					t.Fatalf("got %v, want %v", err, c.want)
				}
				if took < c.took || took > c.took+c.took/2 && c.took > 0 || c.took == 0 && took > 0 {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				switch {
				case c.want == nil:
					p.checkPublished(t, done, c.attempts)
				case errors.Is(err, ErrCommitUnknown):
					p.checkNothingRemoved(t)
				case !maps.Equal(p.store.Files(), p.files):
					t.Error("the table was changed")
				}
			})
		})
	}
}

// TestUnknownSaysWhy pins how the outcomes are worded by which operators, and the
// race test of interop, tell that Java renamed over a snapshot.
func TestUnknownSaysWhy(t *testing.T) {
	p := newPublishing(t)
	for says, hook := range map[string]faultio.Hook{
		"snapshot 3 was published, but then replaced by another writer: ":                 p.otherWins(2, faultio.Open, all),
		"snapshot 3 was published, but others rolled back snapshot 2, which it follows: ": first(1, faultio.On(faultio.Put, third), func() { rollBackUnseen(t, p.store) }),
	} {
		synctest.Test(t, func(t *testing.T) {
			if _, _, err := p.run(t, hook); err == nil || !strings.HasPrefix(err.Error(), says) {
				t.Errorf("got %v, want %s…", err, says)
			}
		})
	}
}

func (p *publishing) checkPublished(t *testing.T, done *Committed, attempts int) {
	t.Helper()
	tbl := load(t, p.store)
	s := latest(t, tbl)
	if s.ID != 2+int64(attempts) || s.CommitUser != "me" || done.Snapshot.ID != s.ID || done.Attempts != attempts || done.Warnings != nil {
		t.Errorf("snapshot %d of %s; %+v", s.ID, s.CommitUser, done)
	}
	want := liveNames(t, tbl, must(Read(t.Context(), tbl, 2)))
	want = slices.DeleteFunc(want, func(name string) bool {
		return slices.ContainsFunc(p.bucket.Files, func(e *ManifestEntry) bool { return e.File.FileName == name })
	})
	want = append(want, "new")
	if attempts == 2 {
		want = append(want, "other")
	}
	slices.Sort(want)
	if got := liveNames(t, tbl, s); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// What later snapshots of the fixture refer to lies around anyway.
	for _, name := range orphans(t, tbl) {
		if _, ok := p.files[location+"/manifest/"+name]; !ok {
			t.Errorf("%s is left behind", name)
		}
	}
}

// checkNothingRemoved finds every metadata file that was written, or could be
// in use.
func (p *publishing) checkNothingRemoved(t *testing.T) {
	t.Helper()
	files := p.store.Files()
	for path := range p.files {
		if _, ok := files[path]; !ok {
			t.Errorf("%s was removed", path)
		}
	}
	mine := 0
	for path := range files {
		if _, ok := p.files[path]; !ok && strings.Contains(path, "/manifest/") && p.other[path] == "" {
			mine++
		}
	}
	if mine != 3 {
		t.Errorf("%d manifests and lists are there, want 3", mine)
	}
}

// TestHintFails publishes, but cannot write the hint.
func TestHintFails(t *testing.T) {
	p := newPublishing(t)
	synctest.Test(t, func(t *testing.T) {
		for _, fault := range []faultio.Fault{faultio.Fail, faultio.NoSpace, faultio.Hang, faultio.Partial} {
			done, _, err := p.run(t, faultio.Nth(1, faultio.On(faultio.Put, "/LATEST"), fault))
			if err != nil || len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "LATEST") {
				t.Fatalf("fault %v: %v, %+v", fault, err, done)
			}
			done.Warnings = nil
			p.checkPublished(t, done, 1)
		}
	})
}

// TestCancelBeforePublish stops at every operation before the put, and not
// after it.
func TestCancelBeforePublish(t *testing.T) {
	p := newPublishing(t)
	for n := 1; ; n++ {
		var cancelled, putting atomic.Bool // manifests are read at the same time
		done, _, err := p.run(t, func(op faultio.Op) faultio.Fault {
			if op.Kind == faultio.Put {
				putting.Store(true)
			}
			if op.N == n {
				cancelled.Store(true)
				p.cancel()
			}
			return faultio.None
		})
		switch {
		case err == nil:
			p.checkPublished(t, done, 1)
		case !errors.Is(err, context.Canceled) || errors.Is(err, ErrCommitUnknown) || putting.Load():
			t.Errorf("operation %d: %v", n, err)
		case !maps.Equal(p.store.Files(), p.files):
			t.Errorf("operation %d: the table was changed", n)
		}
		if !cancelled.Load() {
			return
		}
	}
}
