//go:build unix

package lock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSharedDir: whoever comes first makes the folder for all users.
func TestSharedDir(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	d := Dir{Path: filepath.Join(t.TempDir(), "locks"), Shared: true}
	for range 2 {
		acquire(t, d).Release()
		if m := mode(t, d.Path); m != fs.ModeDir|fs.ModeSticky|0o777 {
			t.Errorf("the folder is %s", m)
		}
		if m := mode(t, d.file(name)); m != 0o666 {
			t.Errorf("the file is %s", m)
		}
	}
}

// TestSharedDirOfOthers: a folder that is there is used as it is. A link to one is
// not followed, since anybody could have put it there.
func TestSharedDirOfOthers(t *testing.T) {
	dir := t.TempDir()
	private := filepath.Join(dir, "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(private, link); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	refused(t, Dir{Path: pipe, Shared: true})
	refused(t, Dir{Path: link, Shared: true})
	if entries, err := os.ReadDir(private); err != nil || len(entries) > 0 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	acquire(t, Dir{Path: private, Shared: true}).Release()
	if m := mode(t, private); m != fs.ModeDir|0o700 {
		t.Errorf("the folder is now %s", m)
	}
	acquire(t, Dir{Path: link}).Release() // one that was configured may be a link
}

// refused fails unless the lock cannot be had for a reason that is none of locks,
// and at once.
func refused(t *testing.T, d Dir) {
	t.Helper()
	done := make(chan error, 1)
	go func() { _, err := d.Acquire(name, me); done <- err }()
	select {
	case err := <-done:
		var held *HeldError
		if err == nil || errors.As(err, &held) {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for ever")
	}
}

// TestHostileFiles: what others put in the place of a lock file is not written to,
// and does not hold the run up.
func TestHostileFiles(t *testing.T) {
	for what, put := range map[string]func(victim, file string) error{
		"a link":          os.Symlink,
		"a relative link": func(victim, file string) error { return os.Symlink("../"+filepath.Base(victim), file) },
		"a link to a lock": func(_, file string) error {
			return errors.Join(os.WriteFile(file+"2", []byte("mine"), 0o666), os.Symlink(filepath.Base(file)+"2", file))
		},
		"a second name":  os.Link,
		"a link to none": func(victim, file string) error { return os.Symlink(victim+".none", file) },
		"a pipe":         func(_, file string) error { return syscall.Mkfifo(file, 0o666) },
		"a folder":       func(_, file string) error { return os.Mkdir(file, 0o777) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			d := Dir{Path: filepath.Join(dir, "locks"), Shared: true}
			victim := filepath.Join(dir, "victim")
			if err := errors.Join(os.Mkdir(d.Path, 0o777), os.WriteFile(victim, []byte("mine"), 0o600), put(victim, d.file(name))); err != nil {
				t.Fatal(err)
			}
			refused(t, d)
			for _, file := range []string{victim, d.file(name) + "2"} {
				if data, err := os.ReadFile(file); err == nil && string(data) != "mine" {
					t.Errorf("%s now holds %q", file, data)
				}
			}
			if m := mode(t, victim); m != 0o600 {
				t.Errorf("the victim is now %s", m)
			}
			if _, err := os.Lstat(victim + ".none"); err == nil {
				t.Error("a file was made at the end of the link")
			}
		})
	}
}

// TestOtherUsers: users that are strangers to each other meet in the folder that
// one of them has made. Another process than this one is run as those.
func TestOtherUsers(t *testing.T) {
	const dirVariable, userVariable = "LOCK_TEST_DIR", "LOCK_TEST_USER"
	if dir := os.Getenv(dirVariable); dir != "" {
		l, err := Dir{Path: dir, Shared: true}.Acquire(name, Holder{PID: os.Getpid(), User: os.Getenv(userVariable), Since: time.Now()})
		fmt.Println("result:", err)
		if err == nil {
			_, _ = io.Copy(io.Discard, os.Stdin)
			l.Release()
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can run processes of others")
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o777|fs.ModeSticky), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "test")
	if data, err := os.ReadFile(os.Args[0]); err != nil || os.WriteFile(program, data, 0o755) != nil || os.Chmod(filepath.Dir(filepath.Dir(program)), 0o755) != nil {
		t.Fatal(err)
	}
	as := func(uid uint32) (result string, end func()) {
		cmd := exec.Command(program, "-test.run", "^TestOtherUsers$")
		cmd.Env = []string{dirVariable + "=" + filepath.Join(dir, "locks"), userVariable + "=" + fmt.Sprint("u", uid)}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		result, _ = bufio.NewReader(stdout).ReadString('\n')
		return result, func() { stdin.Close(); _ = cmd.Wait() }
	}
	users := []uint32{60001, 60002, 0}
	for _, first := range users {
		result, end := as(first)
		if result != "result: <nil>\n" {
			t.Errorf("%d: %s", first, result)
		}
		for _, second := range users {
			result, endSecond := as(second)
			if !strings.Contains(result, fmt.Sprintf(" of u%d on ", first)) {
				t.Errorf("%d beside %d: %s", second, first, result)
			}
			endSecond()
		}
		end()
	}
}
