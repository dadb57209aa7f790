package failpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tablectl/internal/fileio"
)

const pointsVariable, dirVariable = "FAILPOINT_TEST_POINTS", "FAILPOINT_TEST_DIR"

// TestMain is also the process that the tests kill.
func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVariable); dir != "" {
		store, err := Wrap(os.Getenv(pointsVariable))
		if err == nil {
			err = script(context.Background(), store, dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// script does each kind of operation once.
func script(ctx context.Context, s fileio.FileIO, dir string) error {
	if err := s.Put(ctx, dir+"/a/put", []byte("1234"), fileio.IfAbsent); err != nil {
		return err
	}
	w, err := s.Create(ctx, dir+"/a/created")
	if err != nil {
		return err
	}
	_, err = w.Write([]byte("abcd"))
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	f, err := s.Open(ctx, dir+"/old")
	if err != nil {
		return err
	}
	_, err = f.ReadAt(make([]byte, 2), 0)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if _, err := s.List(ctx, dir); err != nil {
		return err
	}
	return s.Remove(ctx, dir+"/old")
}

// state is the files of a folder with what they hold; hidden ones are called hidden.
func state(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		name := d.Name()
		if strings.HasPrefix(name, ".put.") && strings.HasSuffix(name, ".tmp") {
			name = "hidden"
		}
		all = append(all, name+"="+string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestKill kills the process at each place.
func TestKill(t *testing.T) {
	const before, written, done = "old=old", "created=abcd old=old put=1234", "created=abcd put=1234"
	for _, c := range []struct{ points, want string }{
		{"kill before put put 1", before},
		{"kill half put a/put 1", "hidden=12 old=old"},
		{"kill named put */a/put 1", "hidden=1234 old=old put=1234"},
		{"kill after put * 1", "old=old put=1234"},
		{"kill before create * 1", "old=old put=1234"},
		{"kill after create * 1", "created= old=old put=1234"},
		{"kill before write * 1", "created= old=old put=1234"},
		{"kill half write created 1", "created=ab old=old put=1234"},
		{"kill after write * 1", "created= old=old put=1234"}, // what is in a buffer is lost
		{"kill before close * 1", "created= old=old put=1234"},
		{"kill after close * 1", written},
		{"kill before open * 1", written},
		{"kill after read old 1", written},
		{"kill before list * 1", written},
		{"kill before remove * 1", written},
		{"kill after remove * 1", done},
		{"kill before change * 5", written},
		{"kill after any * 1; kill before put * 2", "old=old put=1234"},
		{"kill before put * 2; kill half write b/created 1; kill half remove * 1", ""},
		{"", ""},
	} {
		t.Run(c.points, func(t *testing.T) {
			dir := folder(t)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), pointsVariable+"="+c.points, dirVariable+"="+dir)
			out, err := cmd.CombinedOutput()
			if c.want == "" {
				c.want = done
			} else if status := cmd.ProcessState.String(); status != "signal: killed" {
				t.Errorf("it ended with %q: %s", status, out)
			} else {
				err = nil
			}
			if got := state(t, dir); got != c.want || err != nil {
				t.Errorf("got %s, want %s; %v %s", got, c.want, err, out)
			}
		})
	}
}

// TestPause stops the second of three writes until it may go on.
func TestPause(t *testing.T) {
	dir, file := folder(t), filepath.Join(t.TempDir(), "go-on")
	s, err := Wrap("pause before put dir/p-? 2 " + file)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		var errs []error
		for _, name := range []string{"/dir/p-1", "/other/p-1", "/dir/p-2", "/dir/p-3"} {
			errs = append(errs, s.Put(t.Context(), dir+name, nil, fileio.IfAbsent))
		}
		ended <- errors.Join(errs...)
	}()
	waitFor(t, file+".reached")
	time.Sleep(20 * time.Millisecond)
	if got := state(t, dir); got != "old=old p-1= p-1=" {
		t.Errorf("it stands still after %s", got)
	}
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || state(t, dir) != "old=old p-1= p-1= p-2= p-3=" {
		t.Errorf("%v; %s", err, state(t, dir))
	}

	// Nobody lets it go on, but its context is cancelled.
	if err := errors.Join(os.Remove(file), os.Remove(file+".reached")); err != nil {
		t.Fatal(err)
	}
	if s, err = Wrap("pause before remove * every-1 " + file); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- s.Remove(ctx, dir+"/old") }()
	waitFor(t, file+".reached")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || !strings.HasPrefix(state(t, dir), "old=old") {
		t.Errorf("%v; %s", err, state(t, dir))
	}
}

func waitFor(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", file)
		}
	}
}

func TestCounting(t *testing.T) {
	for text, want := range map[string]string{
		"kill before any * every-2":   "[false true false true false]",
		"kill before any a/x 2":       "[false false true false false]",
		"kill before put * 1":         "[false false false false false]",
		"kill after any * 1":          "[false false false false false]",
		"kill before open t/*/[xy] 1": "[true false false false false]",
	} {
		points, err := parse(text)
		if err != nil || len(points) != 1 {
			t.Fatal(points, err)
		}
		var got []bool
		for _, path := range []string{"/t/a/x", "/t/a/y", "/t/a/x", "/t/b/x", "x"} {
			got = append(got, points[0].matches(before, "open", path))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, want %s", text, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"die before put * 1": `unknown action "die"`, "kill before put *": "want kill PLACE", "pause before put * 1": "want pause PLACE",
		"kill near put * 1": `unknown place "near"`, "kill before rename * 1": `unknown kind "rename"`, "kill before put [ 1": "syntax error",
		"kill before put * 0": `unknown number "0"`, "kill before put * every-x": `unknown number`, "kill before put * 1; x": `failpoint "x"`,
	} {
		if _, err := Wrap(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	if s, err := Wrap(" ; "); err != nil || s == nil {
		t.Error(err)
	}
}
