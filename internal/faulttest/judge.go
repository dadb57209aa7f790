package faulttest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tablectl/internal/fileio/faultio"
	"tablectl/internal/tabletest"
	"tablectl/snapshot"
)

// Status is how a run says that it ended.
type Status string

// The statuses.
const (
	Committed Status = "committed"
	Failed    Status = "failed"
	Unknown   Status = "unknown"
)

// Ending is what a run says of itself.
type Ending struct {
	Status    Status
	Leftovers []string // paths that it could not remove
}

// Judge says what is wrong with the state that a run left, or nil. Whatever
// happened to the run, the table is as before or as after, the run tells which, and
// nothing lies around that it does not name.
func (w *World) Judge(t *testing.T, r *Run, e Ending) error {
	files := r.Store.Files()
	extra := map[string]bool{}
	for p := range files {
		if _, ok := w.Files[p]; !ok {
			extra[p] = true
		}
	}
	for p, content := range w.Files {
		if got, ok := files[p]; !ok || got != content && !strings.HasSuffix(p, "/LATEST") {
			return fmt.Errorf("%s of before the run was changed or removed", p)
		}
	}
	if n := r.FS.Handles(); n != 0 {
		return fmt.Errorf("%d files are still open", n)
	}
	if err := w.judgeLeftovers(r, e); err != nil {
		return err
	}
	next := w.Table(t, r.Store).SnapshotPath(w.ID + 1)
	_, published := files[next]
	switch e.Status {
	case Committed:
		if !published {
			return errors.New("success, but no snapshot")
		}
		return w.judgePublished(t, r, e, extra)
	case Unknown:
		if !r.mayBeUnknown() {
			return errors.New("the outcome is called unknown, but can be found out")
		}
		if i := slices.IndexFunc(r.removed, func(p string) bool { return strings.Contains(p, "/bucket-") }); i >= 0 {
			return fmt.Errorf("the outcome is unknown, but %s was removed", r.removed[i])
		}
		if strings.HasSuffix(files[next], "}") {
			return w.judgePublished(t, r, e, extra)
		}
		maps.DeleteFunc(extra, func(p string, _ bool) bool { return strings.Contains(p, "/bucket-") })
		return onlyMetadata(extra)
	}
	if published {
		return errors.New("published, but the run says that it failed")
	}
	for _, p := range e.Leftovers {
		delete(extra, p)
	}
	if len(extra) > 0 {
		return fmt.Errorf("stray files %v", slices.Sorted(maps.Keys(extra)))
	}
	return nil
}

// judgeLeftovers makes sure that the files which a run calls left behind are its own
// and could not be removed.
func (w *World) judgeLeftovers(r *Run, e Ending) error {
	for _, p := range e.Leftovers {
		if _, old := w.Files[p]; old {
			return fmt.Errorf("%s, a file of before the run, is named as left behind", p)
		}
		if !slices.ContainsFunc(r.FS.Hits(), func(h faultio.Hit) bool {
			switch h.Kind {
			case faultio.Remove:
				return h.Path == p || h.Fault == faultio.Hang || h.Fault == faultio.LateHang // one that hangs takes the time of all
			case faultio.Create:
				return h.Path == p && h.Fault == faultio.Exists // it looks like someone else's
			}
			return false
		}) {
			return fmt.Errorf("%s is named as left behind, but could be removed", p)
		}
	}
	return nil
}

// blindness is how many reads must go wrong for a run to give up finding out what
// became of its snapshot: it looks again and again.
const blindness = 10

// mayBeUnknown reports whether the put of a snapshot went wrong until the time was
// up, or left a part, or nothing could be read after it.
func (r *Run) mayBeUnknown() bool {
	puts, blind := 0, 0
	for _, h := range r.FS.Hits() {
		switch {
		case putsSnapshot(h.Op):
			puts++
			if h.Fault == faultio.Partial || h.Fault == faultio.Hang || h.Fault == faultio.LateHang {
				return true
			}
		case !h.Kind.Changes() && r.putAt > 0 && h.N > r.putAt:
			blind++
		}
	}
	return puts > 1 || blind > blindness
}

// onlyMetadata checks what an unknown commit may leave next to the outputs.
func onlyMetadata(extra map[string]bool) error {
	for p := range extra {
		if !strings.Contains(p, "/manifest/manifest-") && !strings.Contains(p, "/snapshot/") {
			return fmt.Errorf("stray file %s", p)
		}
	}
	return nil
}

// judgePublished checks the rows of the new snapshot, that what it refers to is
// there, and, where the run knows that it has published, that it refers to every
// new file.
func (w *World) judgePublished(t *testing.T, r *Run, e Ending, extra map[string]bool) error {
	tbl := w.Table(t, r.Store)
	s, err := snapshot.Read(t.Context(), tbl, w.ID+1)
	if err != nil {
		return err
	}
	rows, err := tabletest.Rows(t.Context(), tbl, s)
	if err != nil {
		return err
	}
	if rows, err = tabletest.SortSets(tbl.Schema.Options, rows); err != nil {
		return err
	}
	if diff := tabletest.Diff(rows, w.Rows); diff != "" {
		return errors.New(diff)
	}
	if s.CommitKind != snapshot.Compact || s.TotalRecordCount != int64(len(w.Rows)) {
		return fmt.Errorf("snapshot %d of kind %s counts %d rows, want %d", s.ID, s.CommitKind, s.TotalRecordCount, len(w.Rows))
	}
	live, liveErr := Live(t.Context(), tbl, s)
	used, err := metadataOf(t.Context(), tbl, s)
	if err := errors.Join(liveErr, err); err != nil {
		return err
	}
	files := r.Store.Files()
	for _, p := range append(slices.Concat(slices.Collect(maps.Values(live))...), used...) {
		if _, ok := files[p]; !ok {
			return fmt.Errorf("%s is referred to, but missing", p)
		}
		delete(extra, p)
	}
	delete(extra, tbl.SnapshotPath(s.ID))
	if e.Status == Unknown {
		return onlyMetadata(extra)
	}
	for _, p := range e.Leftovers {
		delete(extra, p)
	}
	if len(extra) > 0 {
		return fmt.Errorf("stray files %v", slices.Sorted(maps.Keys(extra)))
	}
	return nil
}

// LeftBehind finds the path in a warning that says that a file could not be removed.
func LeftBehind(warning string) (string, bool) {
	for _, text := range []string{" is left behind: ", " could not be removed"} {
		if p, _, ok := strings.Cut(warning, text); ok {
			return p, true
		}
	}
	return "", false
}
