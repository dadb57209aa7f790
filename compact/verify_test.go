package compact

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"tablectl/internal/fileio"
	"tablectl/internal/fileio/faultio"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// tampering changes the rows of an output as a faulty writer might.
type tampering struct {
	name   string
	keyed  bool // only for files with keys
	change func(rows [][]any) [][]any
}

func cell(row int, change func(row []any)) func([][]any) [][]any {
	return func(rows [][]any) [][]any {
		rows[row] = slices.Clone(rows[row])
		change(rows[row])
		return rows
	}
}

var tamperings = []tampering{
	{"a row is missing", false, func(rows [][]any) [][]any { return rows[:len(rows)-1] }},
	{"a row is there twice", false, func(rows [][]any) [][]any { return append(rows, rows[0]) }},
	{"a row in place of another", false, func(rows [][]any) [][]any { rows[0] = rows[1]; return rows }},
	{"a value is lost", false, cell(1, func(row []any) { row[len(row)-1] = nil })},
	{"a value differs", false, cell(1, func(row []any) {
		i := slices.IndexFunc(row, func(v any) bool { _, ok := v.(types.Value); return ok })
		v := row[i].(types.Value)
		v.Int, v.Bytes = v.Int+1, append(slices.Clone(v.Bytes), 'x')
		row[i] = v
	})},
	{"a value is in the wrong row", false, func(rows [][]any) [][]any {
		a, b := slices.Clone(rows[0]), slices.Clone(rows[1])
		last := len(a) - 1
		a[last], b[last] = b[last], a[last]
		rows[0], rows[1] = a, b
		return rows
	}},
	{"rows in another order", true, func(rows [][]any) [][]any { rows[0], rows[1] = rows[1], rows[0]; return rows }},
}

// TestVerifyCatches plants faults in the outputs of tasks.
func TestVerifyCatches(t *testing.T) {
	for _, name := range []string{"append-bucketed", "pk-dedup-write-only", "pk-partial-update"} {
		t.Run(name, func(t *testing.T) {
			tbl := tabletest.Load(t, tabletest.CopyTable(t, name), map[string]string{"compaction.min.file-num": "2"})
			base, err := snapshot.Latest(t.Context(), tbl)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{}.withDefaults()
			plan, err := planFrom(t.Context(), tbl, base, o)
			if err != nil || len(plan.Tasks) == 0 {
				t.Fatal(plan, err)
			}
			files, err := newTaskFiles(t.Context(), tbl, plan, o)
			if err != nil {
				t.Fatal(err)
			}
			var r rewriter
			if len(tbl.Schema.PrimaryKeys) > 0 {
				r, err = newMergeRewriter(files)
			} else {
				r, err = newAppendRewriter(files)
			}
			if err != nil {
				t.Fatal(err)
			}
			v, task := newVerifier(files, r), plan.Tasks[0]
			m, err := r.rewrite(t.Context(), task)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(v.check(t.Context(), task), v.verify(t.Context(), task, m)); err != nil {
				t.Fatalf("nothing was changed: %v", err)
			}
			for _, c := range tamperings {
				if c.keyed == (v.merge == nil) && c.keyed {
					continue
				}
				if err := v.verify(t.Context(), task, tamper(t, v, task, m, c)); !errors.Is(err, ErrVerification) {
					t.Errorf("%s: got %v", c.name, err)
				}
			}
		})
	}
}

// tamper replaces the first output by one with other rows; the message knows.
func tamper(t *testing.T, v *verifier, task Task, m snapshot.CommitMessage, c tampering) snapshot.CommitMessage {
	t.Helper()
	f := m.Created()[0]
	from, err := v.table.FilePath(task.Partition, int(task.Bucket), f.FileName)
	if err != nil {
		t.Fatal(err)
	}
	written, err := fileio.ReadFile(t.Context(), v.table.IO, from, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tabletest.ReadFile(written, v.spec.Fields)
	if err != nil {
		t.Fatal(err)
	}
	rows = c.change(rows)
	data, err := tabletest.WriteFile(v.spec.Fields, rows, tabletest.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tampered := f
	tampered.FileName = "tampered-" + f.FileName
	tampered.FileSize, tampered.RowCount = int64(len(data)), int64(len(rows))
	p, err := v.table.FilePath(task.Partition, int(task.Bucket), tampered.FileName)
	if err == nil {
		err = v.table.IO.Put(t.Context(), p, data, fileio.Replace)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.CompactAfter = slices.Clone(m.CompactAfter)
	m.CompactAfter[slices.IndexFunc(m.CompactAfter, func(o snapshot.DataFile) bool { return o.FileName == f.FileName })] = tampered
	return m
}

// TestFlippedBits changes single bits of what is written: either the rows are the
// same all the same, or the run says that verification failed and leaves nothing.
func TestFlippedBits(t *testing.T) {
	const location = "/warehouse/t"
	files, err := faultio.ReadTree("../testdata/tables/append-file-index/wh.db/t", location)
	if err != nil {
		t.Fatal(err)
	}
	options := map[string]string{"compaction.min.file-num": "2", "file.compression": "none"}
	caught := 0
	for at := int64(5); at < 600; at += 17 {
		store := faultio.NewMemory(files)
		flipping := faultio.Flipping{FileIO: store, At: at, Match: func(string) bool { return true }}
		tbl, err := table.Load(t.Context(), flipping, location, options)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Table(t.Context(), tbl, Options{Verify: true})
		if err == nil {
			continue // a bit that no reader looks at, such as one of a name
		}
		if !errors.Is(err, ErrVerification) {
			t.Errorf("byte %d: %v", at, err)
		}
		caught++
		if n, want := len(store.Files()), len(files); n != want {
			t.Errorf("byte %d: %d files, %d before", at, n, want)
		}
	}
	if caught < 10 {
		t.Errorf("%d flipped bits were found", caught)
	}
	t.Log(fmt.Sprint(caught, " were found"))
}
