//go:build !race

package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tablectl/internal/tabletest"
)

// TestSignalWhilePublishing stops the program in the middle of publishing and sends a
// signal: the run goes on to its verdict, which a signal does not change. A second
// signal ends it at once.
func TestSignalWhilePublishing(t *testing.T) {
	program := buildWithFailpoints(t)
	for _, c := range []struct {
		name, place string
		signals     int
	}{
		{"before the snapshot is there", "before", 1}, {"when it is there", "after", 1}, {"twice", "before", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			location := tabletest.CopyTable(t, "append-unpartitioned")
			before := latestOf(t, location)
			goOn := filepath.Join(t.TempDir(), "go-on")
			cmd := exec.Command(program, "compact", location, "-o", "json")
			cmd.Env = append(os.Environ(), "TABLECTL_FAILPOINT=pause "+c.place+" put snapshot/snapshot-* 1 "+goOn)
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, goOn+".reached")
			for range c.signals {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				time.Sleep(200 * time.Millisecond) // the first one is to have been taken
			}
			if c.signals > 1 {
				err := cmd.Wait()
				status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
				if !status.Signaled() || status.Signal() != syscall.SIGTERM || out.Len() > 0 {
					t.Errorf("ended with %v, %s", err, &out)
				}
				return
			}
			if err := os.WriteFile(goOn, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("ended with %v", err)
			}
			var result struct{ Status string }
			if err := json.Unmarshal(out.Bytes(), &result); err != nil || result.Status != statusCommitted {
				t.Errorf("got %s: %v", &out, err)
			}
			if after := latestOf(t, location); after.ID != before.ID+1 {
				t.Errorf("snapshot %d, want %d", after.ID, before.ID+1)
			}
			if left := notUsed(t, location); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// waitFor waits until a file is there.
func waitFor(t *testing.T, path string) {
	t.Helper()
	for range 600 {
		_, err := os.Stat(path)
		if err == nil {
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s is not there", path)
}
