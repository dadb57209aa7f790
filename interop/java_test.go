//go:build interop || bench

package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A javaStep is one command of the Java peer, see java/README.md.
type javaStep []string

// step is a command on a table.
func step(command string, tbl table, args ...string) javaStep {
	s := javaStep{command, "--table", tbl.path}
	if tbl.branch != "" {
		s = append(s, "--branch", tbl.branch)
	}
	return append(s, args...)
}

// String is the step as a line of a batch. The peer splits words as a shell does, but knows no backslash.
func (s javaStep) String() string {
	words := make([]string, len(s))
	for i, w := range s {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
	}
	return strings.Join(words, " ")
}

// A javaPeer is a Java peer that takes steps as long as it runs: starting one takes seconds, a step
// milliseconds.
type javaPeer struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

// A javaPool has as many peers as are needed at once, and keeps them.
type javaPool struct {
	mu   sync.Mutex
	idle []*javaPeer
}

// sharedJava serves all tests but those that need a concurrent process of their own.
var sharedJava javaPool

// run has an idle peer run the steps.
func (p *javaPool) run(steps ...javaStep) ([]error, error) {
	p.mu.Lock()
	peer := &javaPeer{}
	if n := len(p.idle); n > 0 {
		peer, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	failures, err := peer.run(steps...)
	p.mu.Lock()
	p.idle = append(p.idle, peer)
	p.mu.Unlock()
	return failures, err
}

// stop ends the peers. None may be in use.
func (p *javaPool) stop() {
	for _, peer := range p.idle {
		peer.stop()
	}
	p.idle = nil
}

// start starts the peer unless it runs.
func (p *javaPeer) start() error {
	if p.cmd != nil {
		return nil
	}
	cmd := exec.Command(filepath.Join("java", "peer.sh"), "batch", "-")
	cmd.Env = append(os.Environ(), "JAVA_OPTS=-Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1")
	cmd.Stderr = &p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.in, p.out = cmd, in, bufio.NewReader(out)
	return nil
}

// stop ends the peer if it runs.
func (p *javaPeer) stop() {
	if p.cmd == nil {
		return
	}
	p.in.Close()
	_ = p.cmd.Wait() // how it ended no longer matters
	p.cmd = nil
}

// run runs the steps in order and returns, for each, why it failed or nil. A failed step does not keep the
// next from being run. The second error means that the peer itself is of no use.
func (p *javaPeer) run(steps ...javaStep) ([]error, error) {
	if err := p.start(); err != nil {
		return nil, fmt.Errorf("starting the Java peer (was setup.sh run?): %w", err)
	}
	const done = "step is done"
	var script strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&script, "try %s\n%s\n", s, javaStep{"say", "--text", done})
	}
	// The peer prints while it reads, so the steps must not be waited for before reading.
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(p.in, script.String())
		written <- err
	}()
	failures := make([]error, len(steps))
	for i := range steps {
		for {
			line, err := p.out.ReadString('\n')
			if err != nil {
				<-written
				p.stop()
				return nil, fmt.Errorf("the Java peer ended at %v: %w\n%s", steps[i], err, &p.stderr)
			}
			line = strings.TrimSuffix(line, "\n")
			if line == done {
				break
			}
			failures[i] = errors.Join(failures[i], errors.New(line))
		}
	}
	return failures, <-written
}

// java runs steps that must not fail.
func java(t *testing.T, steps ...javaStep) {
	t.Helper()
	failures, err := sharedJava.run(steps...)
	if err := errors.Join(append(failures, err)...); err != nil {
		t.Fatal(err)
	}
}

// A tableSpec is a new table as the Java peer's create takes it.
type tableSpec struct {
	Fields        []field           `json:"fields"`
	PartitionKeys []string          `json:"partitionKeys,omitempty"`
	PrimaryKeys   []string          `json:"primaryKeys,omitempty"`
	Options       map[string]string `json:"options"`
}

type field struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// createTable makes an empty table. Its writers do not compact or expire on their own.
func createTable(t *testing.T, spec tableSpec) table {
	t.Helper()
	tbl := table{path: filepath.Join(t.TempDir(), "wh.db", "t")}
	java(t, createStep(t, tbl, spec))
	return tbl
}

// createStep is the step that makes an empty table.
func createStep(t *testing.T, tbl table, spec tableSpec) javaStep {
	t.Helper()
	options := map[string]string{"write-only": "true"}
	for k, v := range spec.Options {
		options[k] = v
	}
	spec.Options = options
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatalf("encoding a table spec: %v", err)
	}
	file := filepath.Join(t.TempDir(), "spec.json")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return step("create", tbl, "--spec", file)
}

// writeStep is the step that writes rows, JSON objects, in one commit.
func writeStep(t *testing.T, tbl table, rows []string) javaStep {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "rows-*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(strings.Join(rows, "\n") + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatalf("writing rows: %v", err)
	}
	return step("write", tbl, "--rows", f.Name())
}

// write commits each batch of rows on its own.
func write(t *testing.T, tbl table, batches ...[]string) {
	t.Helper()
	var steps []javaStep
	for _, rows := range batches {
		steps = append(steps, writeStep(t, tbl, rows))
	}
	java(t, steps...)
}

// alter commits one new schema; changes is a JSON array, see java/README.md.
func alter(t *testing.T, tbl table, changes string) {
	t.Helper()
	java(t, step("alter", tbl, "--changes", changes))
}

// dump is what Java reads from a table.
func dump(t *testing.T, tbl table, args ...string) []string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "rows.jsonl")
	java(t, step("dump", tbl, append(args, "--out", out)...))
	return readRows(t, out)
}
