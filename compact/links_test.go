package compact_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tablectl/internal/tabletest"
)

const bucketFolder = "p=a/bucket-0"

// moveAway moves a part of the table out of it and leaves a link in its place.
func (h *hostile) moveAway(name string) (target string) {
	h.t.Helper()
	from := filepath.Join(h.location, name)
	target = filepath.Join(filepath.Dir(filepath.Dir(h.location)), "elsewhere-"+filepath.Base(name))
	if err := errors.Join(os.Rename(from, target), os.Symlink(target, from)); err != nil {
		h.t.Fatal(err)
	}
	return target
}

func (h *hostile) link(target, name string) {
	h.t.Helper()
	p := filepath.Join(h.location, name)
	if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.t.Fatal(err)
	}
	if err := os.Symlink(target, p); err != nil {
		h.t.Fatal(err)
	}
}

// isLink tells whether a link is still one.
func isLink(t *testing.T, p string) bool {
	t.Helper()
	info, err := os.Lstat(p)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()&fs.ModeSymlink != 0
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

var linkCases = []struct {
	name string
	// put makes links, and returns where to compact, and what to look at afterwards.
	put func(t *testing.T, h *hostile) (location string, after func())
}{
	{"the table", func(t *testing.T, h *hostile) (string, func()) {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(h.location, link); err != nil {
			t.Fatal(err)
		}
		return link, func() {
			if names := namesIn(t, filepath.Join(h.location, bucketFolder)); len(names) != 7 {
				t.Errorf("the bucket holds %v", names)
			}
		}
	}},
	{"links to links, relative", func(t *testing.T, h *hostile) (string, func()) {
		dir := filepath.Dir(h.location)
		if err := errors.Join(os.Symlink(filepath.Base(h.location), filepath.Join(dir, "one")), os.Symlink("one", filepath.Join(dir, "two"))); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "two"), func() {}
	}},
	{"folder of snapshots", func(t *testing.T, h *hostile) (string, func()) {
		target := h.moveAway("snapshot")
		return h.location, func() {
			if names := namesIn(t, target); !slices.Contains(names, "snapshot-3") {
				t.Errorf("the folder holds %v", names)
			}
		}
	}},
	{"folder of manifests", func(t *testing.T, h *hostile) (string, func()) {
		target := h.moveAway("manifest")
		n := len(namesIn(t, target))
		return h.location, func() {
			if names := namesIn(t, target); len(names) <= n {
				t.Errorf("the folder holds %v", names)
			}
		}
	}},
	{"bucket", func(t *testing.T, h *hostile) (string, func()) {
		target := h.moveAway(bucketFolder)
		return h.location, func() {
			if names := namesIn(t, target); len(names) != 7 {
				t.Errorf("the folder holds %v", names)
			}
		}
	}},
	{"data file", func(t *testing.T, h *hostile) (string, func()) {
		target := h.moveAway(firstData)
		return h.location, func() {
			if _, err := os.Stat(target); err != nil || !isLink(t, filepath.Join(h.location, firstData)) {
				t.Errorf("the input was touched: %v", err)
			}
		}
	}},
	{"hint", func(t *testing.T, h *hostile) (string, func()) {
		target := filepath.Join(filepath.Dir(h.location), "data-outside.parquet")
		h.link(target, "snapshot/LATEST")
		return h.location, func() {
			data, err := os.ReadFile(target)
			if err != nil || string(data) != "keep out" || isLink(t, filepath.Join(h.location, "snapshot/LATEST")) {
				t.Errorf("the file that the hint was linked to holds %q, error %v", data, err)
			}
		}
	}},
}

// TestSymbolicLinks has links in every place, which are followed where a folder or a
// file to be read is expected, and never where a file is written (docs/guarantees.md).
func TestSymbolicLinks(t *testing.T) {
	good := newHostile(t)
	rows := rowsOf(t, tabletest.Load(t, good.location, nil), latestOf(t, tabletest.Load(t, good.location, nil)))
	for _, c := range linkCases {
		t.Run(c.name, func(t *testing.T) {
			h := good.copy(t)
			location, after := c.put(t, h)
			h.location = location
			if err := h.run(); err != nil {
				t.Fatal(err)
			}
			tbl := tabletest.Load(t, location, nil)
			s := latestOf(t, tbl)
			if s.ID != 3 {
				t.Errorf("the latest snapshot is %d", s.ID)
			}
			if diff := tabletest.Diff(rowsOf(t, tbl, s), rows); diff != "" {
				t.Error(diff)
			}
			after()
		})
	}
}

// TestLinksThatLeadNowhere has links that cannot be followed, or must not be.
func TestLinksThatLeadNowhere(t *testing.T) {
	good := newHostile(t)
	for _, c := range []struct {
		name, target, at, want string
	}{
		{"data file that is gone", "gone.parquet", firstData, "is missing"},
		{"data file that is itself", filepath.Base(firstData), firstData, "too many"},
		{"data file that is a folder", "..", firstData, "not a regular file"},
		{"data file that is a device", os.DevNull, firstData, "not a regular file"},
		{"schema that is gone", "gone", onlySchema, "no such file"},
		{"latest snapshot that is gone", "gone", latestSnapshot, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := good.copy(t)
			h.link(c.target, c.at)
			names := namesIn(t, filepath.Dir(filepath.Join(h.location, c.at)))
			err := h.run()
			if err == nil || !strings.Contains(err.Error(), filepath.Base(c.at)) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error does not name %s, or does not have %q: %v", c.at, c.want, err)
			}
			if !isLink(t, filepath.Join(h.location, c.at)) {
				t.Error("the link is none any more")
			}
			if left := namesIn(t, filepath.Dir(filepath.Join(h.location, c.at))); !slices.Equal(left, names) {
				t.Errorf("the folder holds %v, before %v", left, names)
			}
		})
	}
}
