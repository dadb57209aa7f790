//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tablectl/internal/tabletest"
)

// readers are the implementations that read tables, independent of each other and of tablectl.
var readers = []string{"java", "pypaimon", "rust"}

// A reading is what a reader is asked for: the rows of a table's latest snapshot, unless another snapshot
// or a tag is named. With sweep it is asked, in place of rows, for the predicates that it answers wrongly
// when they are pushed down, out of up to that many values of every column.
type reading struct {
	table    table
	snapshot int64
	tag      string
	sweep    int
}

// A readout is what came of a reading.
type readout struct {
	rows    []string // sorted
	skipped string   // why the reader is known not to read this kind of table
	err     error
}

// readAll has every reader do all the readings; each is one process.
func readAll(t *testing.T, readings []reading) map[string][]readout {
	t.Helper()
	all := map[string][]readout{}
	for _, reader := range readers {
		all[reader] = read(t, reader, readings)
	}
	return all
}

// read has one reader do the readings. Whatever keeps it from reading, even that it is not installed, is
// an error of the readouts concerned.
func read(t *testing.T, reader string, readings []reading) []readout {
	t.Helper()
	dir := t.TempDir()
	outs := make([]string, len(readings))
	for i := range readings {
		outs[i] = filepath.Join(dir, strconv.Itoa(i))
	}
	readouts := make([]readout, len(readings))
	var err error
	if reader == "java" {
		err = readWithJava(readings, outs, readouts)
	} else {
		err = readWithPython(reader, readings, outs, readouts)
	}
	for i := range readouts {
		r := &readouts[i]
		r.err = errors.Join(r.err, err)
		if r.err == nil && r.skipped == "" {
			r.rows = readRows(t, outs[i])
		}
	}
	return readouts
}

func readWithJava(readings []reading, outs []string, readouts []readout) error {
	steps := make([]javaStep, len(readings))
	for i, r := range readings {
		args := []string{"--out", outs[i]}
		if r.snapshot != 0 {
			args = append(args, "--snapshot", strconv.FormatInt(r.snapshot, 10))
		}
		if r.tag != "" {
			args = append(args, "--tag", r.tag)
		}
		command := "dump"
		if r.sweep > 0 {
			command, args = "sweep", append(args, "--values", strconv.Itoa(r.sweep))
		}
		steps[i] = step(command, r.table, args...)
	}
	failures, err := sharedJava.run(steps...)
	for i, failure := range failures {
		readouts[i].err = failure
	}
	return err
}

// A pythonJob is a line of the input of batch.py.
type pythonJob struct {
	Table    string `json:"table"`
	Branch   string `json:"branch,omitempty"`
	Snapshot int64  `json:"snapshot,omitempty"`
	Tag      string `json:"tag,omitempty"`
	Sweep    int    `json:"sweep,omitempty"`
	Out      string `json:"out"`
}

// readWithPython runs batch.py, which prints how each job ended.
func readWithPython(reader string, readings []reading, outs []string, readouts []readout) error {
	python, err := pythonPath()
	if err != nil {
		return err
	}
	var jobs bytes.Buffer
	enc := json.NewEncoder(&jobs)
	for i, r := range readings {
		job := pythonJob{r.table.path, r.table.branch, r.snapshot, r.tag, r.sweep, outs[i]}
		if err := enc.Encode(job); err != nil {
			return err
		}
	}
	cmd := exec.Command(python, filepath.Join("python", "batch.py"), reader)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stdin = &jobs
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	runErr := cmd.Run()
	dec := json.NewDecoder(&stdout)
	for i := range readouts {
		var end struct{ Status, Detail string }
		if err := dec.Decode(&end); err != nil {
			readouts[i].err = fmt.Errorf("%s ended before this table: %w\n%s", reader, errors.Join(runErr, err), &stderr)
			continue
		}
		switch end.Status {
		case "ok":
		case "skipped":
			readouts[i].skipped = end.Detail
		default:
			readouts[i].err = fmt.Errorf("%s %s: %s", reader, end.Status, end.Detail)
		}
	}
	return nil
}

// pythonPath is the interpreter that setup.sh installed the readers for.
func pythonPath() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "tablectl-interop", "python", "bin", "python")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no Python readers (was setup.sh run?): %w", err)
	}
	return path, nil
}

// checkRows runs a subtest for each reader that fails unless its i-th readout has just the wanted rows.
func checkRows(t *testing.T, readouts map[string][]readout, i int, want []string) {
	t.Helper()
	for _, reader := range readers {
		t.Run(reader, func(t *testing.T) {
			got := readouts[reader][i]
			if got.skipped != "" {
				t.Skipf("skip.tsv: %s", got.skipped)
			}
			if got.err != nil {
				t.Fatalf("reading: %v", got.err)
			}
			requireRows(t, got.rows, want)
		})
	}
}

// requireRows fails the test unless got has the rows of want, in the same order.
func requireRows(t *testing.T, got, want []string) {
	t.Helper()
	missing, extra := subtract(want, got), subtract(got, want)
	if len(missing)+len(extra) > 0 {
		t.Errorf("%d rows, want %d: %d missing, %d extra", len(got), len(want), len(missing), len(extra))
		t.Log("missing:\n" + excerpt(missing))
		t.Log("extra:\n" + excerpt(extra))
		return
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("rows are in another order: row %d is %s, want %s", i, got[i], want[i])
			return
		}
	}
}

// subtract is the multiset difference of rows, in the order of a.
func subtract(a, b []string) []string {
	count := map[string]int{}
	for _, row := range b {
		count[row]++
	}
	var rest []string
	for _, row := range a {
		if count[row]--; count[row] < 0 {
			rest = append(rest, row)
		}
	}
	return rest
}

// excerpt is the start of the first few rows.
func excerpt(rows []string) string {
	const shown, width = 3, 1000
	var b strings.Builder
	for _, row := range rows[:min(shown, len(rows))] {
		fmt.Fprintf(&b, "  %.*s\n", width, row)
	}
	return b.String()
}

// sortSets makes rows comparable that hold arrays without an order.
func sortSets(t *testing.T, options map[string]string, rows []string) []string {
	t.Helper()
	sorted, err := tabletest.SortSets(options, rows)
	if err != nil {
		t.Fatal(err)
	}
	return sorted
}

// sortReadouts does so for the i-th readout of each reader, and returns the options that tell how.
func sortReadouts(t *testing.T, tbl table, readouts map[string][]readout, i int) map[string]string {
	t.Helper()
	options := tbl.latestSchema(t).Options
	for _, reader := range readers {
		readouts[reader][i].rows = sortSets(t, options, readouts[reader][i].rows)
	}
	return options
}
