package cmd

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoFailpoints makes sure that only a build for tests can be killed by a
// variable.
func TestNoFailpoints(t *testing.T) {
	const failpoints = "tablectl/internal/fileio/failpoint"
	for _, c := range []struct {
		tags string
		want bool
	}{{"", false}, {"failpoints", true}} {
		out, err := exec.Command("go", "list", "-deps", "-tags", c.tags, "tablectl").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := strings.Contains(string(out), failpoints); got != c.want {
			t.Errorf("built with the tags %q, the program has failpoints: %v", c.tags, got)
		}
		if !strings.Contains(string(out), "tablectl/internal/fileio\n") {
			t.Error("the list of packages is no such list")
		}
	}
}
