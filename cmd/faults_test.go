package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tablectl/internal/faulttest"
	"tablectl/internal/fileio/faultio"
	"tablectl/snapshot"
)

// patience is how long somebody waits for a command before sending SIGTERM. In a
// bubble of synctest it costs no time.
const patience = time.Hour

// commandRun is one compact command, with what it told.
type commandRun struct {
	*faulttest.Run
	world  *faulttest.World
	args   []string       // of the command, beside what it always has
	signal syscall.Signal // that was sent, if any
	code   int
	stdout bytes.Buffer
	stderr bytes.Buffer
	result compactResult
}

// start runs the command on the store of a run.
func (c *commandRun) start(ctx context.Context, n int) {
	ctx, cancel := context.WithCancelCause(ctx)
	var once sync.Once
	send := func(s syscall.Signal) {
		once.Do(func() {
			c.signal = s
			cancel(&signalError{s})
		})
	}
	c.Cancel = func() { send([]syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}[n%3]) }
	defer time.AfterFunc(patience, func() { send(syscall.SIGTERM) }).Stop()
	args := []string{"compact", faulttest.Location, "-o", "json", "--lock", "none", "--parallelism", "1", "--memory", "1gb"}
	args = append(args, c.args...)
	for _, k := range slices.Sorted(maps.Keys(faulttest.Overrides)) {
		args = append(args, "--table-option", k+"="+faulttest.Overrides[k])
	}
	c.code = run(ctx, c.FS, args, &c.stdout, &c.stderr)
}

// judge says what is wrong with what the command left or told, or nil.
func (c *commandRun) judge(t *testing.T) error {
	d := json.NewDecoder(bytes.NewReader(c.stdout.Bytes()))
	if err := d.Decode(&c.result); err != nil || d.More() {
		return fmt.Errorf("standard output is not one document: %w: %s", err, &c.stdout)
	}
	r := c.result
	e := faulttest.Ending{Status: faulttest.Status(r.Status)}
	for _, w := range r.Warnings {
		if p, ok := faulttest.LeftBehind(w); ok {
			e.Leftovers = append(e.Leftovers, p)
		}
		if !strings.Contains(c.stderr.String(), w) {
			return fmt.Errorf("the log does not warn: %s", w)
		}
	}
	err := c.world.Judge(t, c.Run, e)
	if err == nil {
		switch r.Status {
		case statusCommitted:
			err = c.judgeCommitted(t)
		case statusUnknown:
			err = c.judgeError(outcomeUnknown.code)
		case statusFailed:
			err = c.judgeError(c.expected()...)
		default:
			err = fmt.Errorf("status %q", r.Status)
		}
	}
	if err != nil {
		return fmt.Errorf("%w; status %s, exit code %d, error %v, warnings %q", err, r.Status, c.code, r.Error, r.Warnings)
	}
	return nil
}

// judgeCommitted compares the result with the snapshot.
func (c *commandRun) judgeCommitted(t *testing.T) error {
	r := c.result
	if c.code != 0 || r.Error != nil || len(r.Lost) > 0 {
		return errors.New("committed, but not with exit code 0, or with an error")
	}
	id := c.world.ID
	if r.SnapshotBefore == nil || r.SnapshotAfter == nil || *r.SnapshotBefore != id || *r.SnapshotAfter != id+1 {
		return errors.New("the ids of the snapshots are wrong")
	}
	tbl := c.world.Table(t, c.Store)
	var live [2]map[string][]string
	for i, at := range []int64{id, id + 1} {
		s, err := snapshot.Read(t.Context(), tbl, at)
		if err != nil {
			return err
		}
		if live[i], err = faulttest.Live(t.Context(), tbl, s); err != nil {
			return err
		}
		if at > id && (r.CommitUser == nil || *r.CommitUser != s.CommitUser) {
			return fmt.Errorf("the user is %s", s.CommitUser)
		}
	}
	kept := maps.Clone(live[0])
	maps.DeleteFunc(kept, func(name string, _ []string) bool { return live[1][name] == nil })
	if r.Tasks == 0 || r.FilesRemoved != len(live[0])-len(kept) || r.FilesAdded != len(live[1])-len(kept) {
		return fmt.Errorf("of %d files %d are live yet, and %d in all", len(live[0]), len(kept), len(live[1]))
	}
	return nil
}

// expected are the exit codes that tell truly why a run failed.
func (c *commandRun) expected() []int {
	var codes []int
	if c.signal != 0 {
		codes = append(codes, ExitCode(&signalError{c.signal}))
	}
	for _, h := range c.FS.Hits() {
		switch {
		case h.Kind == faultio.Remove: // never why a run fails
		case h.Fault == faultio.Exists:
			codes = append(codes, outcomeFailed.code)
		default: // where one hangs and nobody sends a signal, the time is up
			codes = append(codes, outcomeStorage.code)
		}
	}
	return codes
}

// judgeError compares exit code and error with each other and with what is expected.
func (c *commandRun) judgeError(want ...int) error {
	e := c.result.Error
	if e == nil || e.Message == "" {
		return errors.New("there is no error")
	}
	if !slices.Contains(want, c.code) {
		return fmt.Errorf("the exit code should be one of %v", want)
	}
	i := slices.IndexFunc(outcomes, func(o outcome) bool { return o.code == c.code })
	if e.Kind != outcomes[i].kind || e.Hint != hints[e.Kind] {
		return fmt.Errorf("an error of kind %s and the hint %q", e.Kind, e.Hint)
	}
	if known := c.result.CommitUser != nil; known != (c.result.Status == statusUnknown) || c.result.SnapshotAfter != nil {
		return errors.New("a user or a snapshot is named that is not there, or not the user that may be")
	}
	return nil
}

// faultLoop runs the command again and again, each time with something else going
// wrong, and judges each run.
func faultLoop(t *testing.T, w *faulttest.World, args []string, p faulttest.Plan) {
	n := 0
	w.Loop(t, p, func(inside *testing.T, r *faulttest.Run) (func() error, error) {
		n++
		c := &commandRun{Run: r, world: w, args: args}
		c.start(inside.Context(), n)
		var err error
		if c.code != 0 {
			err = fmt.Errorf("exit code %d", c.code)
		}
		return func() error { return c.judge(t) }, err
	})
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestFaults lets each operation of the command fail in every way.
func TestFaults(t *testing.T) {
	all := slices.Sorted(maps.Keys(faulttest.Plans))
	some := []string{"broken store", "cancel", "cancel and removal fails", "cancel with a lost reply", "error", "exists", "lost reply"}
	verifying := []string{"cancel", "error", "hang"}
	if raceDetector() { // it takes its time, and looks at goroutines only
		all = []string{"cancel", "late hang", "lost reply"}
		some, verifying = all, all
	}
	for _, c := range []struct {
		table string
		at    int64 // a snapshot, for append tables
		plans []string
		args  []string
	}{
		{"append-file-index", 2, all, nil},
		{"append-bucketed", 3, some, nil},
		{"pk-upgrade", 0, all, nil}, // lifts files to a higher level, and merges others
		{"pk-partial-update", 0, some, nil},
		{"append-file-index", 2, verifying, []string{"--verify"}},
		{"pk-partial-update", 0, verifying, []string{"--verify"}},
	} {
		t.Run(strings.Join(append([]string{c.table}, c.args...), " "), func(t *testing.T) {
			w := faulttest.Open(t, c.table, c.at)
			// What libraries share is made outside of any bubble.
			warm := &commandRun{Run: w.Start(func(*faulttest.Run) faultio.Hook { return faultio.Chain() }), world: w, args: c.args}
			warm.start(t.Context(), 0)
			if err := warm.judge(t); err != nil {
				t.Fatal(err)
			}
			t.Parallel()
			for _, name := range c.plans {
				t.Run(name, func(t *testing.T) { faultLoop(t, w, c.args, faulttest.Plans[name]) })
			}
		})
	}
}
