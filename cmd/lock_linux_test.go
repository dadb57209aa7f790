package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// beside is another run of the program on the table that p is at work on.
func (p *process) beside(args ...string) *process {
	p.t.Helper()
	other := &process{t: p.t, location: p.location, before: p.files(), out: &bytes.Buffer{}}
	other.cmd = exec.CommandContext(p.t.Context(), p.cmd.Path, append([]string{"compact", p.location}, args...)...)
	other.cmd.Env, other.cmd.Stdout = p.cmd.Env, other.out
	return other
}

// startWaiting starts a run that waits for p, and returns it when it has said so.
func (p *process) startWaiting(args ...string) *process {
	p.t.Helper()
	r, w := smallPipe(p.t)
	other := p.beside(append(args, "--on-locked", "wait")...)
	other.cmd.Stderr, other.pipe = w, r
	if err := other.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	w.Close()
	said := make([]byte, pipeSize)
	n, err := r.Read(said)
	if want := "level=WARN msg=\"waiting for the lock\" reason=\"" + p.location + " is locked by another run: process " + itoa(p.cmd.Process.Pid) + " of "; err != nil || !strings.Contains(string(said[:n]), want) {
		p.t.Fatalf("it says %q, %v, want %s", said[:n], err, want)
	}
	return other
}

// TestOverlap runs the program twice at once.
func TestOverlap(t *testing.T) {
	program := build(t)

	t.Run("the second fails or skips", func(t *testing.T) {
		t.Parallel()
		p := startBlocked(t, program)
		for policy, code := range map[string]int{"fail": 11, "skip": 0} {
			began := time.Now()
			other := p.beside("-o", "json", "--on-locked", policy)
			_ = other.cmd.Run()
			other.expect(code, other.before)
			var doc struct {
				LockedBy struct {
					PID        int
					Host, User string
					Since      time.Time
				} `json:"locked_by"`
			}
			host, _ := os.Hostname()
			if err := json.Unmarshal(other.out.Bytes(), &doc); err != nil {
				t.Fatal(err)
			}
			if by := doc.LockedBy; by.PID != p.cmd.Process.Pid || by.Host != host || by.User == "" || began.Sub(by.Since).Abs() > time.Minute {
				t.Errorf("%s: it is locked by %+v", policy, by)
			}
		}
		p.signal(syscall.SIGTERM)
		p.wait()
		p.expect(143, p.before)
		if data, err := filepath.Glob(filepath.Join(p.location, "..", "..", "locks", "*.lock")); err != nil || len(data) != 1 {
			t.Errorf("the locks are %v, %v", data, err)
		}
	})

	t.Run("the second waits until the first is over", func(t *testing.T) {
		t.Parallel()
		p := startBlocked(t, program)
		other := p.startWaiting("-o", "json")
		p.wait()
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the first ended with %d", code)
		}
		other.wait()
		var doc struct {
			Status string
			Before int64 `json:"snapshot_before"`
		}
		if err := json.Unmarshal(other.out.Bytes(), &doc); err != nil || doc.Status == "failed" || doc.Before != 11 {
			t.Errorf("the second says %s, %v", other.out, err)
		}
	})

	t.Run("the first is killed", func(t *testing.T) {
		t.Parallel()
		p := startBlocked(t, program)
		other := p.startWaiting()
		p.signal(syscall.SIGKILL)
		p.wait()
		if log := other.wait(); other.cmd.ProcessState.ExitCode() != 0 || !strings.HasPrefix(other.out.String(), "db.t: 200 files → ") {
			t.Errorf("the second ended with %v: %s%s", other.cmd.ProcessState, other.out, log)
		}
	})

	t.Run("a signal while it waits", func(t *testing.T) {
		t.Parallel()
		p := startBlocked(t, program)
		other := p.startWaiting()
		other.signal(syscall.SIGTERM)
		log := other.wait()
		other.expect(143, other.before)
		if !strings.HasPrefix(log, "Error: interrupted by SIGTERM: wait for the lock: "+p.location+" is locked by another run: ") || other.out.Len() > 0 {
			t.Errorf("it says %q, and as its result %q", log, other.out)
		}
		if third := p.beside(); third.cmd.Run() == nil || third.cmd.ProcessState.ExitCode() != 11 {
			t.Errorf("a third run ends with %v", third.cmd.ProcessState)
		}
	})

	t.Run("waiting quietly", func(t *testing.T) {
		t.Parallel()
		p := startBlocked(t, program)
		other := p.beside("--on-locked", "wait", "-q")
		var log bytes.Buffer
		other.cmd.Stderr = &log
		if err := other.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * lockPoll)
		if _, err := os.Stat(p.snapshot("snapshot-11")); err == nil {
			t.Error("it did not wait")
		}
		p.signal(syscall.SIGKILL)
		p.wait()
		_ = other.cmd.Wait()
		if log.Len() > 0 || other.out.Len() > 0 || other.cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("%v; it says %q, and as its result %q", other.cmd.ProcessState, &log, other.out)
		}
	})
}
