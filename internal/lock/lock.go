// Package lock keeps runs on one machine from doing the same work twice.
//
// A lock is a file in a folder of locks that the kernel locks (flock) for as long
// as the process lives, however it ends. Nothing is ever decided by the file being
// there or by what it holds, which only tells people who has the lock.
//
// The folder may be one that anybody can write to. What others put there is not
// followed, and not written to unless it is a lock file.
package lock

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// Dir is a folder of locks.
type Dir struct {
	Path string
	// Shared makes it one for all users of the machine, in a folder for temporary
	// files, where anybody can put anything in its place.
	Shared bool
}

// Holder is who has a lock, as far as it told.
type Holder struct {
	PID   int       `json:"pid"`
	User  string    `json:"user"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

func (h Holder) String() string {
	return fmt.Sprintf("process %d of %s on %s since %s", h.PID, h.User, h.Host, h.Since.UTC().Format(time.RFC3339))
}

// HeldError says that another process has the lock.
type HeldError struct {
	Name string
	By   *Holder // nil where it is not known
}

func (e *HeldError) Error() string {
	if e.By == nil {
		return fmt.Sprintf("%s is locked by another run", e.Name)
	}
	return fmt.Sprintf("%s is locked by another run: %s", e.Name, e.By)
}

// Lock is a lock that this process has.
type Lock struct{ file *os.File }

// Release gives the lock back. So does the end of the process.
func (l *Lock) Release() {
	_ = l.file.Truncate(0) // nobody has it; only for those who look at the file
	_ = l.file.Close()
}

// attempts is how often a file may be taken away while it is being locked, as
// those who tidy up do.
const attempts = 5

var errReplaced = errors.New("the file was replaced while it was being locked")

// Acquire takes the lock of that name, if nobody has it; a HeldError says who has.
// It never waits. Other errors say why there can be no locks in the folder.
func (d Dir) Acquire(name string, me Holder) (*Lock, error) {
	var l *Lock
	err := errReplaced
	for i := 0; i < attempts && errors.Is(err, errReplaced); i++ {
		l, err = d.try(name, me)
	}
	var held *HeldError
	if errors.As(err, &held) {
		return nil, held // the file does not matter
	}
	return l, err
}

func (d Dir) file(name string) string { return filepath.Join(d.Path, fileName(name)) }

// fileName has no trace of the name, which can be of any length and hold anything.
func fileName(name string) string { return fmt.Sprintf("%x.lock", sha256.Sum256([]byte(name))) }

func (d Dir) try(name string, me Holder) (*Lock, error) {
	root, err := d.open()
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	f, err := openFile(root, fileName(name))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.file(name), err)
	}
	if err := lockNamed(root, f, name); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", d.file(name), err)
	}
	writeHolder(f, name, me)
	return &Lock{f}, nil
}

// lockNamed locks an open file. It must still have its name then: a lock on one
// that has none any more keeps nobody out.
func lockNamed(root *os.Root, f *os.File, name string) error {
	locked, err := tryLock(f)
	if err != nil {
		return err
	}
	if !locked {
		return &HeldError{Name: name, By: readHolder(f)}
	}
	named, err := root.Lstat(fileName(name))
	if err != nil || !same(named, f) {
		return errReplaced
	}
	return nil
}

// open opens the folder, and makes it where it is missing.
func (d Dir) open() (*os.Root, error) {
	if !d.Shared {
		if err := os.MkdirAll(d.Path, 0o777); err != nil {
			return nil, err
		}
		return os.OpenRoot(d.Path)
	}
	err := os.Mkdir(d.Path, 0o700)
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	named, err := os.Lstat(d.Path)
	if err != nil {
		return nil, err
	}
	if !named.IsDir() {
		return nil, fmt.Errorf("%s is not a folder (%s)", d.Path, named.Mode())
	}
	root, err := os.OpenRoot(d.Path) // follows links, so look where it has led to
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = fmt.Errorf("%s was replaced while it was being opened", d.Path)
	}
	if err == nil && made { // as the folder around it is; never one that was there
		err = root.Chmod(".", 0o777|fs.ModeSticky)
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

// openFile opens a lock file, or makes it. Existing ones are opened without
// O_CREATE, which Linux forbids in shared folders for files of others.
func openFile(root *os.Root, name string) (*os.File, error) {
	named, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return nil, errReplaced
		}
		if err == nil {
			_ = f.Chmod(0o666) // else others cannot lock it, or not say who they are
		}
		return f, err
	}
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no lock file (%s); remove it", named.Mode())
	}
	f, err := root.OpenFile(name, os.O_RDWR|nonblocking, 0)
	if errors.Is(err, fs.ErrPermission) {
		f, err = root.OpenFile(name, os.O_RDONLY|nonblocking, 0) // can be locked all the same
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errReplaced
	}
	if err != nil {
		return nil, err
	}
	if !same(named, f) {
		err = errReplaced
	} else if n := links(named); n != 1 {
		err = fmt.Errorf("it is no lock file (%d names); remove it", n) // perhaps one of somebody's files
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func same(named fs.FileInfo, f *os.File) bool {
	opened, err := f.Stat()
	return err == nil && os.SameFile(named, opened)
}

// record is what a lock file holds.
type record struct {
	Name string `json:"table"`
	Holder
}

const maxRecord = 64 << 10 // bytes; others may have written it

// writeHolder says who has the lock, as well as it can: it is held in any case.
func writeHolder(f *os.File, name string, me Holder) {
	data, err := json.Marshal(record{name, me})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, _ = f.WriteAt(append(data, '\n'), 0)
	}
}

// readHolder reads what the holder wrote, or anybody else: no control characters
// must come through to a terminal.
func readHolder(f *os.File) *Holder {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, maxRecord))
	if err != nil {
		return nil
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil || r.PID <= 0 || r.Since.IsZero() {
		return nil
	}
	r.User, r.Host = printable(r.User), printable(r.Host)
	return &r.Holder
}

const maxNameRunes = 64

func printable(s string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s))
	if len(runes) == 0 {
		return "unknown"
	}
	return string(runes[:min(len(runes), maxNameRunes)])
}
