package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pipeSize is how much fits into the pipes of these tests, in bytes. A run of a
// hundred tasks logs three times as much and then stands still.
const pipeSize = 4096

var hundredTasks = []string{"-v", "--table-option", "compaction.force-rewrite-all-files=true", "--table-option", "target-file-size=1b"}

// process is the real program at work on a copy of a table of two hundred files.
type process struct {
	t        *testing.T
	location string
	before   map[string]string
	cmd      *exec.Cmd
	out      *bytes.Buffer // standard output, unless it is a pipe
	pipe     *os.File      // what the program cannot go on without
}

// smallPipe is a pipe of pipeSize.
func smallPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if n, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, pipeSize); err != nil || n != pipeSize {
		t.Fatalf("the pipe has %d bytes: %v", n, err)
	}
	return r, w
}

func start(t *testing.T, program string, change func(cmd *exec.Cmd) *os.File, args ...string) *process {
	t.Helper()
	p := &process{t: t, location: filepath.Join(t.TempDir(), "db.db", "t"), out: &bytes.Buffer{}}
	if err := os.CopyFS(p.location, os.DirFS(filepath.Join(tables, "many-files", "wh.db", "t"))); err != nil {
		t.Fatal(err)
	}
	p.before = p.files()
	p.cmd = exec.CommandContext(t.Context(), program, append([]string{"compact", p.location}, args...)...)
	p.cmd.Env = append(os.Environ(), "TABLECTL_LOCK_DIR="+filepath.Join(p.location, "..", "..", "locks"))
	p.cmd.Stdout = p.out
	p.pipe = change(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// startBlocked starts a run that stands still in the middle of its tasks, with
// files written and nothing published.
func startBlocked(t *testing.T, program string, args ...string) *process {
	t.Helper()
	r, w := smallPipe(t)
	p := start(t, program, func(cmd *exec.Cmd) *os.File { cmd.Stderr = w; return r }, append(args, hundredTasks...)...)
	w.Close()
	p.until("the log is full", func() bool {
		n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		return err == nil && n > pipeSize-250
	})
	p.until("all of it stands still", func() bool {
		n := len(p.files())
		time.Sleep(100 * time.Millisecond)
		return n > len(p.before) && len(p.files()) == n
	})
	if _, err := os.Stat(p.snapshot("snapshot-11")); err == nil {
		t.Fatal("the run has published a snapshot already")
	}
	return p
}

func (p *process) until(what string, done func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited too long until %s", what)
		}
	}
}

func (p *process) snapshot(name string) string { return filepath.Join(p.location, "snapshot", name) }

// files is what the table's folder holds, by path.
func (p *process) files() map[string]string {
	files := map[string]string{}
	_ = filepath.WalkDir(p.location, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := os.ReadFile(path) // one that is gone by now is no matter while the run goes on
			files[path] = string(data)
		}
		return nil
	})
	return files
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait lets the program go on to its end and returns what came through the pipe.
func (p *process) wait() string {
	p.t.Helper()
	text, err := io.ReadAll(p.pipe)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		p.t.Fatal(err)
	}
	return string(text)
}

func (p *process) expect(code int, before map[string]string) {
	p.t.Helper()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d (%v), want %d", got, p.cmd.ProcessState, code)
	}
	after := p.files()
	for path, content := range after {
		if old, ok := before[path]; !ok {
			p.t.Errorf("%s was left behind", path)
		} else if old != content {
			p.t.Errorf("%s was changed", path)
		}
	}
	if len(after) < len(before) {
		p.t.Errorf("%d files are gone", len(before)-len(after))
	}
}

// build builds the program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tablectl")
	if out, err := exec.Command("go", "build", "-o", program, "tablectl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// TestProcess runs the program as others do, and interferes.
func TestProcess(t *testing.T) {
	program := build(t)

	for _, c := range []struct {
		name   string
		signal syscall.Signal
		code   int
		text   string
	}{
		{"SIGTERM", syscall.SIGTERM, 143, "interrupted by SIGTERM"},
		{"SIGINT", syscall.SIGINT, 130, "interrupted by SIGINT"},
		{"SIGHUP", syscall.SIGHUP, 129, "interrupted by SIGHUP"},
	} {
		t.Run(c.name+" before it publishes", func(t *testing.T) {
			t.Parallel()
			p := startBlocked(t, program, "--parallelism", "2")
			p.signal(c.signal)
			log := p.wait()
			p.expect(c.code, p.before)
			if p.out.Len() > 0 {
				t.Errorf("standard output holds %q", p.out)
			}
			if lines := strings.Split(strings.TrimSpace(log), "\n"); !strings.HasPrefix(lines[len(lines)-1], "Error: "+c.text) {
				t.Errorf("standard error ends with %q", lines[len(lines)-1])
			}
			if strings.Contains(log, "msg=publishing") {
				t.Error("it went on to publish")
			}
		})
	}

	t.Run("SIGTERM, as JSON", func(t *testing.T) {
		t.Parallel()
		p := startBlocked(t, program, "-o", "json")
		p.signal(syscall.SIGTERM)
		p.wait()
		p.expect(143, p.before)
		var doc struct {
			Status string
			Error  struct{ Kind, Message string }
		}
		if err := json.Unmarshal(p.out.Bytes(), &doc); err != nil || doc.Status != "failed" || doc.Error.Kind != "interrupted" {
			t.Errorf("the document is %s, %v", p.out, err)
		}
	})

	t.Run("a second signal ends it at once", func(t *testing.T) {
		t.Parallel()
		p := startBlocked(t, program)
		done := make(chan error, 1)
		go func() { done <- p.cmd.Wait() }()
		for ended := false; !ended; {
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails once it has ended
			select {
			case <-done:
				ended = true
			case <-time.After(50 * time.Millisecond):
			}
		}
		if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
			t.Errorf("it ended with %v", p.cmd.ProcessState)
		}
		if _, err := os.Stat(p.snapshot("snapshot-11")); err == nil {
			t.Error("it has published a snapshot")
		}
	})

	t.Run("SIGTERM after it has published", func(t *testing.T) {
		t.Parallel()
		r, w := smallPipe(t)
		if _, err := w.Write(bytes.Repeat([]byte("."), pipeSize)); err != nil {
			t.Fatal(err)
		}
		p := start(t, program, func(cmd *exec.Cmd) *os.File { cmd.Stdout = w; return r })
		w.Close()
		p.until("the snapshot is published", func() bool { _, err := os.Stat(p.snapshot("snapshot-11")); return err == nil })
		p.signal(syscall.SIGTERM)
		if out := strings.TrimLeft(p.wait(), "."); !strings.HasPrefix(out, "db.t: 200 files → ") {
			t.Errorf("standard output holds %q", out)
		}
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit code %d (%v), want 0", code, p.cmd.ProcessState)
		}
		if hint, err := os.ReadFile(p.snapshot("LATEST")); err != nil || string(hint) != "11" {
			t.Errorf("the hint is %q, %v", hint, err)
		}
	})

	t.Run("nowhere to write the result to", func(t *testing.T) {
		t.Parallel()
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		var log bytes.Buffer
		p := start(t, program, func(cmd *exec.Cmd) *os.File { cmd.Stdout, cmd.Stderr = full, &log; return nil })
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(p.snapshot("snapshot-11")); err != nil || !strings.Contains(log.String(), "status committed") {
			t.Errorf("%v; standard error holds %q", err, &log)
		}
	})

	t.Run("nobody reads the log any more", func(t *testing.T) {
		t.Parallel()
		r, w := smallPipe(t)
		r.Close()
		p := start(t, program, func(cmd *exec.Cmd) *os.File { cmd.Stderr = w; return nil }, hundredTasks...)
		w.Close()
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(p.snapshot("snapshot-11")); err != nil {
			t.Error(err)
		}
	})

	t.Run("another run is faster", func(t *testing.T) {
		t.Parallel()
		p := startBlocked(t, program, "-o", "json")
		unfinished := p.files()
		other := exec.Command(program, "compact", p.location, "--lock", "none")
		if out, err := other.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		after := p.files()
		for path := range unfinished {
			if _, ok := p.before[path]; !ok {
				delete(after, path) // of the run that loses
			}
		}
		p.wait()
		p.expect(5, after)
		var doc struct {
			Status string
			Error  struct{ Kind, Message, Hint string }
		}
		if err := json.Unmarshal(p.out.Bytes(), &doc); err != nil || doc.Status != "failed" || doc.Error.Kind != "conflict" || doc.Error.Hint == "" {
			t.Errorf("the document is %s, %v", p.out, err)
		}
		if !slices.Contains(strings.Fields(doc.Error.Message), "conflict") {
			t.Errorf("the message is %q", doc.Error.Message)
		}
	})
}
