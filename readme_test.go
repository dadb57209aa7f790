package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeCommands runs every command that the README shows, on a copy of the
// sample table. The make targets must exist; the gate runs them.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	warehouse := t.TempDir()
	if err := os.CopyFS(filepath.Join(warehouse, "demo.db"), os.DirFS("testdata/tables/append-partitioned/wh.db")); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	t.Setenv("TABLECTL_LOCK_DIR", filepath.Join(warehouse, "locks"))
	commands := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		for line := range strings.Lines(block[1]) {
			command, _, _ := strings.Cut(strings.TrimSpace(line), "#")
			command = strings.TrimSpace(command)
			if command == "" {
				continue
			}
			commands++
			if target, ok := strings.CutPrefix(command, "make "); ok {
				if !regexp.MustCompile("(?m)^" + target + ":").Match(makefile) {
					t.Errorf("%s: the Makefile has no such target", command)
				}
				continue
			}
			cmd := exec.Command("sh", "-c", strings.ReplaceAll(command, "/warehouse", warehouse))
			cmd.Env = append(os.Environ(), "GOBIN="+bin, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, out)
			}
		}
	}
	if commands < 8 {
		t.Errorf("found %d commands: the README has no start any more", commands)
	}
}

// TestGuaranteesAreTested makes sure that every test that is named as a proof exists,
// in its package.
func TestGuaranteesAreTested(t *testing.T) {
	text, err := os.ReadFile("docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, part := range regexp.MustCompile("`([a-z/]+)` ((?:\\([^)]*\\)|[^`|;])*)").FindAllStringSubmatch(string(text), -1) {
		files, err := filepath.Glob(filepath.Join(part[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var source strings.Builder
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(data)
		}
		for _, name := range regexp.MustCompile(`Test[A-Z]\w*`).FindAllString(part[2], -1) {
			named++
			if !strings.Contains(source.String(), "\nfunc "+name+"(t ") {
				t.Errorf("there is no %s in %s", name, part[1])
			}
		}
	}
	if named < 30 {
		t.Errorf("only %d tests are named", named)
	}
}
