// Package failpoint kills or stops the real process at a chosen operation on its
// store. Only a build for tests has it, see cmd/store_failpoints.go.
//
// A list of failpoints is text, separated by semicolons:
//
//	kill before put snapshot/snapshot-* 1
//	pause after create */bucket-*/* 2 /tmp/go-on
//
// that is, an action, a place, a kind of operation, a pattern of paths, which of the
// matching operations it is, and for a pause a file.
//
//   - kill ends the process as kill -9 does. pause writes FILE.reached and then waits
//     until FILE is there, or the operation's context is done.
//   - before and after say themselves. half is in the middle of an operation: half of
//     a write's bytes are in the file, or half of a put's in a hidden file. named is at
//     the end of a put, when the hidden file has got its name but is there still.
//   - The kind is open, read, create, write, close, put, list or remove; change is any
//     that changes the store, any is any. A place that a kind does not have never comes.
//   - The pattern is matched by path.Match against as many segments of the path, from
//     its end, as it has itself: snapshot/snapshot-* is a snapshot of any table. A
//     single * is any path.
//   - N is the N-th matching operation, every-N each N-th.
package failpoint

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// place is where in an operation something happens.
type place string

const (
	before place = "before"
	half   place = "half"
	named  place = "named"
	after  place = "after"
)

var (
	kinds    = []string{"open", "read", "create", "write", "close", "put", "list", "remove"}
	changing = []string{"create", "write", "close", "put", "remove"}
)

// point is one failpoint.
type point struct {
	file    string // of a pause; "" kills
	place   place
	kinds   []string
	pattern string
	n       int64
	every   bool
	seen    atomic.Int64
}

// parse reads a list of failpoints.
func parse(text string) ([]*point, error) {
	var points []*point
	for one := range strings.SplitSeq(text, ";") {
		words := strings.Fields(one)
		if len(words) == 0 {
			continue
		}
		p, err := parseOne(words)
		if err != nil {
			return nil, fmt.Errorf("failpoint %q: %w", strings.TrimSpace(one), err)
		}
		points = append(points, p)
	}
	return points, nil
}

func parseOne(words []string) (*point, error) {
	switch {
	case words[0] != "kill" && words[0] != "pause":
		return nil, fmt.Errorf("unknown action %q, want kill or pause", words[0])
	case words[0] == "kill" && len(words) != 5:
		return nil, fmt.Errorf("%d words, want kill PLACE KIND PATTERN N", len(words))
	case words[0] == "pause" && len(words) != 6:
		return nil, fmt.Errorf("%d words, want pause PLACE KIND PATTERN N FILE", len(words))
	}
	p := &point{place: place(words[1]), kinds: []string{words[2]}, pattern: words[3]}
	if !slices.Contains([]place{before, half, named, after}, p.place) {
		return nil, fmt.Errorf("unknown place %q, want before, half, named or after", words[1])
	}
	switch kind := words[2]; {
	case kind == "any":
		p.kinds = kinds
	case kind == "change":
		p.kinds = changing
	case !slices.Contains(kinds, kind):
		return nil, fmt.Errorf("unknown kind %q, want one of %s, change or any", kind, strings.Join(kinds, ", "))
	}
	if _, err := path.Match(p.pattern, ""); err != nil {
		return nil, fmt.Errorf("pattern %q: %w", p.pattern, err)
	}
	digits, every := strings.CutPrefix(words[4], "every-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("unknown number %q, want N or every-N from 1", words[4])
	}
	p.n, p.every = n, every
	if len(words) == 6 {
		p.file = words[5]
	}
	return p, nil
}

// matches reports whether this is the operation, counting those that could be.
func (p *point) matches(at place, kind, file string) bool {
	if p.place != at || !slices.Contains(p.kinds, kind) {
		return false
	}
	segments := strings.Split(file, "/")
	tail := segments[max(0, len(segments)-1-strings.Count(p.pattern, "/")):]
	if ok, _ := path.Match(p.pattern, strings.Join(tail, "/")); !ok {
		return false
	}
	n := p.seen.Add(1)
	return n == p.n || p.every && n%p.n == 0
}

// happen does what a failpoint is for. Killed, it never returns.
func (p *point) happen(ctx context.Context) error {
	if p.file == "" {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			return fmt.Errorf("failpoint: kill this process: %w", err)
		}
		select {} // until the signal is there
	}
	if err := os.WriteFile(p.file+".reached", nil, 0o600); err != nil {
		return fmt.Errorf("failpoint: %w", err)
	}
	for {
		if _, err := os.Stat(p.file); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollPause):
		}
	}
}

const pollPause = 5 * time.Millisecond
