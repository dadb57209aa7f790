//go:build interop || bench

// Package interop checks tablectl against other implementations of Paimon: Java Paimon, which also writes
// the tables, pypaimon and paimon-rust. tablectl is built once and driven as a black box. setup.sh prepares
// the peers; README.md tells how to run the tests.
package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// tablectlBinary is the tablectl under test.
var tablectlBinary string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tablectl-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	tablectlBinary = filepath.Join(dir, "tablectl")
	if out, err := exec.Command("go", "build", "-o", tablectlBinary, "..").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "interop: building tablectl: %v\n%s", err, out)
		return 1
	}
	defer sharedJava.stop()
	// Runs race against each other here, and leave no locks behind on the machine.
	if err := os.Setenv("TABLECTL_LOCK", "none"); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 1
	}
	return m.Run()
}
