package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tablectl/internal/lock"
	"tablectl/snapshot"
	"tablectl/table"
)

func TestExitCode(t *testing.T) {
	pathError := func(err error) error { return &fs.PathError{Op: "write", Path: "/wh/t/x", Err: err} }
	for _, c := range []struct {
		err  error
		code int
		kind string
	}{
		{nil, 0, ""},
		{errors.New("anything"), 1, "failed"},
		{pathError(fs.ErrNotExist), 1, "failed"},
		{pathError(syscall.EISDIR), 1, "failed"},
		{usageError(errors.New("--x")), 2, "usage"},
		{table.ErrInvalid, 2, "usage"},
		{errors.New(`unknown command "x" for "tablectl"`), 2, "usage"},
		{table.ErrUnsupported, 4, "unsupported"},
		{snapshot.ErrConflict, 5, "conflict"},
		{snapshot.ErrCommitUnknown, 6, "unknown"},
		{pathError(fs.ErrPermission), 8, "storage"},
		{pathError(syscall.EACCES), 8, "storage"},
		{pathError(syscall.EIO), 8, "storage"},
		{pathError(syscall.ENOSPC), 8, "storage"},
		{pathError(syscall.EROFS), 8, "storage"},
		{pathError(syscall.ESTALE), 8, "storage"},
		{pathError(syscall.EDQUOT), 8, "storage"},
		{context.DeadlineExceeded, 8, "storage"},
		{table.ErrNotFound, 10, "not_found"},
		{&lock.HeldError{}, 11, "locked"},
		{context.Canceled, 130, "interrupted"},
		{&signalError{syscall.SIGINT}, 130, "interrupted"},
		{&signalError{syscall.SIGTERM}, 143, "interrupted"},
		{&signalError{syscall.SIGHUP}, 129, "interrupted"},

		// What may have been published must not look like anything else; a signal comes
		// before what it made fail.
		{errors.Join(snapshot.ErrCommitUnknown, &signalError{syscall.SIGTERM}), 6, "unknown"},
		{errors.Join(pathError(syscall.EIO), snapshot.ErrCommitUnknown), 6, "unknown"},
		{errors.Join(snapshot.ErrConflict, snapshot.ErrCommitUnknown), 6, "unknown"},
		{errors.Join(&signalError{syscall.SIGTERM}, context.Canceled), 143, "interrupted"},
		{errors.Join(context.Canceled, &signalError{syscall.SIGTERM}), 143, "interrupted"},
		{errors.Join(&signalError{syscall.SIGINT}, pathError(syscall.EIO)), 130, "interrupted"},
		{errors.Join(&lock.HeldError{}, &signalError{syscall.SIGTERM}, context.Canceled), 143, "interrupted"},
		{fmt.Errorf("%w: %w", table.ErrUnsupported, table.ErrInvalid), 4, "unsupported"},
		{errors.Join(snapshot.ErrConflict, &snapshot.LeftoverError{Path: "/x", Err: pathError(fs.ErrPermission)}), 5, "conflict"},
	} {
		forms := []error{c.err}
		if c.err != nil && c.code != 2 {
			forms = append(forms, fmt.Errorf("compact partition (p=a): %w", c.err), errors.Join(c.err, nil), fmt.Errorf("a: %w", fmt.Errorf("b: %w", c.err)))
		}
		for _, err := range forms {
			if code := ExitCode(err); code != c.code {
				t.Errorf("%v: exit code %d, want %d", err, code, c.code)
			}
			if j := newErrorJSON(err); err != nil && (j.Kind != c.kind || j.Message != err.Error()) {
				t.Errorf("%v: the document says %+v, want kind %s", err, *j, c.kind)
			} else if err == nil && j != nil {
				t.Errorf("no error is %+v", *j)
			}
		}
	}
}

// TestOutcomes compares the codes with the contract, and makes sure that each is
// explained once.
func TestOutcomes(t *testing.T) {
	want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 129, 130, 143}
	var got []int
	for _, o := range outcomes {
		got = append(got, o.code)
		if o.meaning == "" || (o.kind == "") != (o.code == 0) {
			t.Errorf("the code %d lacks a meaning or a kind", o.code)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the codes %v, want %v", got, want)
	}
	for kind := range hints {
		if !slices.ContainsFunc(outcomes, func(o outcome) bool { return o.kind == kind }) {
			t.Errorf("the hint for %q is for nothing", kind)
		}
	}
	help := exitCodesTopic().Long
	for _, o := range outcomes {
		if n := strings.Count(help, pad(o.code)+"  "+o.meaning+"\n"); n != 1 {
			t.Errorf("the help has the code %d %d times", o.code, n)
		}
	}
}

func TestCommitUsers(t *testing.T) {
	for user, ok := range map[string]bool{
		"a": true, "a b": true, "a.b": true, "..a": true, "...": true, "ü": true, "a\u00a0b": true, "-": true, strings.Repeat("x", 200): true,
		"": false, ".": false, "..": false, " a": false, "a ": false, "\ta": false, "a\n": false, "a\u00a0": false, "a/b": false, `a\b`: false,
		"a\x00b": false, "a\x1fb": false, "a\x7fb": false, "a\u0085b": false, "/": false, "\u2003": false,
		"ab\xff": false, "a\u202eb": false, strings.Repeat("x", 201): false,
	} {
		if err := checkCommitUser(user); (err == nil) != ok {
			t.Errorf("%q: got %v", user, err)
		} else if err != nil && strings.ContainsAny(err.Error(), "\n\t\x00") {
			t.Errorf("%q: the message is not plain: %q", user, err)
		}
	}
}

func TestMemoryBound(t *testing.T) {
	for text, want := range map[string]int64{"64mb": 64 << 20, "1 gb": 1 << 30, "67108864": 64 << 20, "8 tb": 8 << 40} {
		if got, err := parseMemory(text); got != want || err != nil {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "67108863", "1k", "x", "-1gb", " ", ""} {
		if got, err := parseMemory(text); err == nil || !strings.HasPrefix(err.Error(), "--memory: ") {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	if got := defaultMemory(); got < minMemory || got > defaultMemoryMax {
		t.Errorf("the default is %d", got)
	}
}
