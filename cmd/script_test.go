package cmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tablectl/internal/lock"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tablectl": func() { os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScript runs the scripts in testdata/script. Beside the commands of
// testscript they have these; a DIR, FILE or GLOB lies in the script's folder.
//
//	table NAME DIR      copies a table of testdata/tables to DIR
//	run CODE ARG...     runs tablectl, which must end with that exit code
//	save DIR            remembers the files in DIR
//	unchanged DIR       fails if they have changed since, or there are others
//	garble GLOB...      overwrites files with what is in no format
//	cut GLOB            cuts the last byte off the first file, whose name is then $cut
//	scramble GLOB...    changes a byte of the content of files, behind a Parquet header
//	edit FILE EXPR TEXT replaces what matches the expression
//	discard GLOB        removes the first file
//	age DURATION FILE   makes a file look that old
//	evil DIR            puts a data file into DIR whose name holds control characters
//	lines STREAM N      fails if stdout or stderr has more or fewer lines
//	json PATH OP VALUE  looks at the one JSON document on standard output; OP is
//	                    is, matches, or has (a member or an element); !json is not
//	hold TABLE          takes the lock of a table; !hold gives it back
//	relink GLOB FILE    puts a link to FILE in the place of the first file
//	like FILE           compares standard output with FILE, uuids and the like masked
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Values[savedKey{}] = new(string)
			env.Values[heldKey{}] = map[string]*lock.Lock{}
			env.Setenv("TABLECTL_LOCK_DIR", filepath.Join(env.WorkDir, "locks"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"table": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[1])), 0o777))
				ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(filepath.Join(tables, args[0], "wh.db", "t"))))
			},
			"run":   runTablectl,
			"save":  func(ts *testscript.TestScript, _ bool, args []string) { *saved(ts) = digest(ts, args[0]) },
			"cut":   func(ts *testscript.TestScript, _ bool, args []string) { cut(ts, args[0]) },
			"json":  checkJSON,
			"like":  like,
			"lines": checkLines,
			"unchanged": func(ts *testscript.TestScript, neg bool, args []string) {
				if now := digest(ts, args[0]); (now != *saved(ts)) != neg {
					ts.Fatalf("before\n%s\nnow\n%s", *saved(ts), now)
				}
			},
			"scramble": func(ts *testscript.TestScript, _ bool, args []string) { overwrite(ts, args, scramble) },
			"garble": func(ts *testscript.TestScript, _ bool, args []string) {
				overwrite(ts, args, func([]byte) []byte { return []byte("in no format") })
			},
			"edit": func(ts *testscript.TestScript, _ bool, args []string) {
				expr := regexp.MustCompile(args[1])
				overwrite(ts, args[:1], func(data []byte) []byte { return expr.ReplaceAll(data, []byte(args[2])) })
			},
			"hold": hold,
			"relink": func(ts *testscript.TestScript, _ bool, args []string) {
				file := find(ts, args[0])[0]
				ts.Check(os.Remove(file))
				ts.Check(os.Symlink(ts.MkAbs(args[1]), file))
			},
			"age": func(ts *testscript.TestScript, _ bool, args []string) {
				age, err := time.ParseDuration(args[0])
				ts.Check(err)
				then := time.Now().Add(-age)
				ts.Check(os.Chtimes(ts.MkAbs(args[1]), then, then))
			},
			"evil": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), "data-\x1b[2J\n.parquet"), nil, 0o666))
			},
			"discard": func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(os.Remove(find(ts, args[0])[0])) },
		},
	})
}

var tables, _ = filepath.Abs("../testdata/tables")

func runTablectl(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg {
		ts.Fatalf("usage: run CODE ARG...")
	}
	err = ts.Exec("tablectl", args[1:]...)
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// saved is where a script keeps the digest that save made.
func saved(ts *testscript.TestScript) *string { return ts.Value(savedKey{}).(*string) }

type savedKey struct{}

type heldKey struct{}

// hold takes a lock as another process would. The kernel does not care that it is
// not one that runs tablectl.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	held := ts.Value(heldKey{}).(map[string]*lock.Lock)
	table := ts.MkAbs(args[0])
	if neg {
		held[table].Release()
		return
	}
	l, err := lock.Dir{Path: ts.MkAbs("locks")}.Acquire(table, lock.Holder{
		PID: 4711, User: "etl", Host: "node1", Since: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC),
	})
	ts.Check(err)
	ts.Defer(l.Release)
	held[table] = l
}

// digest lists the files of a folder, and what they hold, and the folders in it.
func digest(ts *testscript.TestScript, dir string) string {
	var lines []string
	ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		sum := "folder"
		if !d.IsDir() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			sum = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		rel, err := filepath.Rel(ts.MkAbs(dir), p)
		lines = append(lines, sum+" "+rel)
		return err
	}))
	return strings.Join(lines, "\n")
}

func find(ts *testscript.TestScript, glob string) []string {
	files, err := filepath.Glob(ts.MkAbs(glob))
	ts.Check(err)
	files = slices.DeleteFunc(files, func(f string) bool {
		info, err := os.Stat(f)
		return err != nil || info.IsDir()
	})
	if len(files) == 0 {
		ts.Fatalf("no file is %s", glob)
	}
	return files
}

// overwrite changes files that are there.
func overwrite(ts *testscript.TestScript, globs []string, change func([]byte) []byte) {
	for _, glob := range globs {
		for _, file := range find(ts, glob) {
			data, err := os.ReadFile(file)
			ts.Check(err)
			changed := change(slices.Clone(data))
			if bytes.Equal(changed, data) {
				ts.Fatalf("%s is the same as before", file)
			}
			ts.Check(os.WriteFile(file, changed, 0o666))
		}
	}
}

// scramble damages the first column's page and leaves the footer as it is.
func scramble(data []byte) []byte {
	for i := 4; i < 24; i++ {
		data[i] ^= 0x5a
	}
	return data
}

// cut cuts the last byte off a file and puts its name into $cut.
func cut(ts *testscript.TestScript, glob string) {
	file := find(ts, glob)[0]
	info, err := os.Stat(file)
	ts.Check(err)
	ts.Check(os.Truncate(file, info.Size()-1))
	ts.Setenv("cut", filepath.Base(file))
}

// document reads the one JSON document on standard output.
func document(ts *testscript.TestScript) any {
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		ts.Fatalf("standard output is no JSON: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("standard output holds more than one document")
	}
	return doc
}

// checkJSON checks one place of the document, such as .partitions.0.bucket; a
// path of . is all of it.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	node := document(ts)
	path := ""
	for name := range strings.SplitSeq(strings.Trim(args[0], "."), ".") {
		path += "." + name
		switch v := node.(type) {
		case map[string]any:
			member, ok := v[name]
			if !ok && name != "" {
				ts.Fatalf("there is no member %s", path)
			} else if ok {
				node = member
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				ts.Fatalf("there is no element %s", path)
			}
			node = v[i]
		default:
			ts.Fatalf("there is no %s", path)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	ts.Check(enc.Encode(node))
	got := strings.TrimSpace(b.String())
	text, isText := node.(string)
	var ok bool
	switch op, want := args[1], args[2]; op {
	case "is":
		ok = got == want || isText && text == want
	case "matches":
		ok = isText && regexp.MustCompile(want).MatchString(text) || !isText && regexp.MustCompile("^("+want+")$").MatchString(got)
	case "has":
		object, _ := node.(map[string]any)
		list, _ := node.([]any)
		_, ok = object[want]
		ok = ok || slices.ContainsFunc(list, func(v any) bool { return fmt.Sprint(v) == want })
	default:
		ts.Fatalf("unknown comparison %s", op)
	}
	if ok == neg {
		ts.Fatalf("%s is %s, want %v: %s", args[0], got, !neg, strings.Join(args[1:], " "))
	}
}

// checkLines checks that standard output or standard error holds so many lines.
func checkLines(ts *testscript.TestScript, _ bool, args []string) {
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s has %d lines, want %s:\n%s", args[0], n, args[1], ts.ReadFile(args[0]))
	}
}

// masks are what differs from run to run, or from one make of the tables to the next.
var masks = []struct{ pattern, with string }{
	{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "UUID"},
	{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
	{`"(duration_ms|bytes_removed|bytes_added|timeMillis|file_size|baseManifestListSize|deltaManifestListSize)": \d+`, `"$1": N`},
	{`(?m), [\dµms.]+$`, ", DURATION"},
	{`[\d.]+ [KMG]?i?B`, "SIZE"},
	{`(?m)  \d+ +(data-)`, "  N  $1"},
}

func like(ts *testscript.TestScript, neg bool, args []string) {
	got := strings.ReplaceAll(ts.ReadFile("stdout"), ts.Getenv("WORK"), "$WORK")
	for _, m := range masks {
		got = regexp.MustCompile(m.pattern).ReplaceAllString(got, m.with)
	}
	if want := ts.ReadFile(args[0]); (got == want) == neg {
		ts.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}
