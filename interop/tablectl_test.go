//go:build interop || bench

package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The exit codes of tablectl that these tests expect.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartly      = 3
	exitUnsupported = 4
	exitLostRace    = 5
	exitUnknown     = 6
)

// commitUser is what the tests pass as --commit-user; commits then carry compactUserPrefix.
const (
	commitUser        = "it"
	compactUserPrefix = commitUser + "-compact-"
)

// A compactResult is the JSON document of tablectl compact, as far as the tests look at it.
type compactResult struct {
	Kind           string         `json:"kind"`
	Status         string         `json:"status"`
	FilesRemoved   int            `json:"files_removed"`
	FilesAdded     int            `json:"files_added"`
	RowsWritten    int64          `json:"rows_written"`
	SnapshotBefore *int64         `json:"snapshot_before"`
	SnapshotAfter  *int64         `json:"snapshot_after"`
	CommitUser     string         `json:"commit_user"`
	Skipped        map[string]int `json:"skipped"`
	Lost           []struct {
		Partition map[string]string `json:"partition"`
		Bucket    int               `json:"bucket"`
		Message   string            `json:"message"`
	} `json:"lost"`
	Error *struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"error"`
}

// An outcome is how one run of tablectl compact ended.
type outcome struct {
	code   int
	result compactResult
	stderr string
}

func (o outcome) String() string {
	s := fmt.Sprintf("exit %d, status %q", o.code, o.result.Status)
	if o.result.Error != nil {
		s += fmt.Sprintf(", error %s: %s", o.result.Error.Kind, o.result.Error.Message)
	}
	if o.stderr != "" {
		s += "\n" + o.stderr
	}
	return s
}

// runCompact runs tablectl compact on a table. env is added to the environment. An error means that
// tablectl did not keep to its contract, whatever the outcome: it did not run, or did not print exactly
// one result document.
func runCompact(tbl table, env []string, flags ...string) (outcome, error) {
	return runProgram(tablectlBinary, tbl, env, flags...)
}

// runProgram is runCompact with another build of tablectl.
func runProgram(program string, tbl table, env []string, flags ...string) (outcome, error) {
	args := append([]string{"compact", tbl.location(), "-o", "json", "--verify", "--commit-user", commitUser}, flags...)
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return outcome{}, fmt.Errorf("running tablectl %s: %w", strings.Join(args, " "), err)
	}
	o := outcome{code: cmd.ProcessState.ExitCode(), stderr: stderr.String()}
	dec := json.NewDecoder(&stdout)
	if err := dec.Decode(&o.result); err != nil {
		return o, fmt.Errorf("decoding the result of tablectl %s: %w (%v)", strings.Join(args, " "), err, o)
	}
	if _, err := dec.Token(); err != io.EOF {
		return o, fmt.Errorf("tablectl %s printed more than one document", strings.Join(args, " "))
	}
	if o.result.Kind != "CompactResult" {
		return o, fmt.Errorf("tablectl %s printed a %q document, want CompactResult", strings.Join(args, " "), o.result.Kind)
	}
	return o, nil
}

// compact runs tablectl compact on a table.
func compact(t *testing.T, tbl table, flags ...string) outcome {
	t.Helper()
	o, err := runCompact(tbl, nil, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// mustCommit runs tablectl compact on a table where it has something to do.
func mustCommit(t *testing.T, tbl table, flags ...string) compactResult {
	t.Helper()
	o := compact(t, tbl, flags...)
	if o.code != exitDone || o.result.Status != "committed" {
		t.Fatalf("compacting %s: %v, want exit %d and status committed", tbl.location(), o, exitDone)
	}
	return o.result
}

// mustCommitIn runs tablectl compact in a time zone, on a table where it has something to do.
func mustCommitIn(t *testing.T, tbl table, zone string) {
	t.Helper()
	o, err := runCompact(tbl, []string{"TZ=" + zone})
	if err != nil {
		t.Fatal(err)
	}
	if o.code != exitDone || o.result.Status != "committed" {
		t.Fatalf("%v, want status committed", o)
	}
}
