package cmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tablectl/compact"
	"tablectl/internal/fileio/faultio"
	"tablectl/table"
)

// TestPartly lets another run compact one partition just before the command
// publishes: the others are committed, and the exit code and the result tell.
func TestPartly(t *testing.T) {
	const location = "/warehouse/t"
	for _, format := range []string{"json", "text"} {
		files, err := faultio.ReadTree("../testdata/tables/append-partitioned/wh.db/t", location)
		if err != nil {
			t.Fatal(err)
		}
		store := faultio.NewMemory(files)
		options := map[string]string{"compaction.min.file-num": "2"}
		tbl, err := table.Load(t.Context(), store, location, options)
		if err != nil {
			t.Fatal(err)
		}
		filter, err := table.ParseWhere(tbl.Schema, "p = 'a'")
		if err != nil {
			t.Fatal(err)
		}
		publish := func(op faultio.Op) bool { return op.Kind == faultio.Put && strings.Contains(op.Path, "/snapshot-") }
		hook := faultio.Call(1, publish, func(faultio.Op) faultio.Fault {
			if _, err := compact.Table(t.Context(), tbl, compact.Options{Filter: filter}); err != nil {
				t.Error(err)
			}
			return faultio.None
		})
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), faultio.New(store, hook), []string{"compact", location, "-o", format, "--table-option", "compaction.min.file-num=2"}, &stdout, &stderr)
		if code != 3 {
			t.Errorf("exit code %d: %s%s", code, &stdout, &stderr)
		}
		if format == "text" {
			for text, of := range map[string]string{"snapshot": stdout.String(), "Given up: partition (p=a) bucket 0: ": stderr.String(), "Error: 1 of ": stderr.String(), "Hint: run again": stderr.String()} {
				if !strings.Contains(of, text) {
					t.Errorf("no %q in %q", text, of)
				}
			}
			continue
		}
		var result struct {
			Status string
			Tasks  int
			Lost   []struct {
				Partition map[string]any
				Message   string
			}
			Error struct{ Kind string }
		}
		if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
			t.Fatal(err)
		}
		if result.Status != "committed" || result.Tasks == 0 || len(result.Lost) != 1 || result.Lost[0].Partition["p"] != "a" ||
			!strings.Contains(result.Lost[0].Message, "no longer live") || result.Error.Kind != "partial" {
			t.Errorf("got %+v", result)
		}
	}
}

// TestVerify runs on a disk that changes a bit of what is written.
func TestVerify(t *testing.T) {
	const location = "/warehouse/t"
	files, err := faultio.ReadTree("../testdata/tables/append-partitioned/wh.db/t", location)
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range []bool{false, true} {
		store := faultio.NewMemory(files)
		data := func(path string) bool { return broken && strings.HasSuffix(path, ".parquet") }
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), faultio.Flipping{FileIO: store, Match: data, At: 30},
			[]string{"compact", location, "--verify", "-o", "json", "--table-option", "compaction.min.file-num=2"}, &stdout, &stderr)
		var result struct {
			Status string
			Error  *struct{ Kind string }
		}
		if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
			t.Fatal(err)
		}
		switch {
		case !broken && (code != 0 || result.Status != "committed"):
			t.Errorf("exit code %d: %s", code, &stdout)
		case broken && (code != 7 || result.Status != "failed" || result.Error.Kind != "verification" || len(store.Files()) != len(files)):
			t.Errorf("exit code %d: %s", code, &stdout)
		}
	}
}
