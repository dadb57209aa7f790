//go:build interop

package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRounds lets Java append and tablectl compact, minor and full in turn, round
// after round, while Java expires snapshots now and then. INTEROP_ROUNDS sets the number
// of rounds. The rows are compared every 50th round, and what
// the table's folder holds must not grow with the rounds.
func TestRounds(t *testing.T) {
	rounds := int(envNumber(t, "INTEROP_ROUNDS", 60))
	keyed := []field{{"id", "BIGINT NOT NULL"}, {"v", "STRING"}}
	for name, spec := range map[string]tableSpec{
		"append": {Fields: keyed, Options: map[string]string{"compaction.min.file-num": "2", "target-file-size": "64 kb"}},
		"keys":   {Fields: keyed, PrimaryKeys: []string{"id"}, Options: map[string]string{"bucket": "2", "num-sorted-run.compaction-trigger": "3"}},
	} {
		t.Run(name, func(t *testing.T) { runRounds(t, createTable(t, spec), name == "keys", rounds) })
	}
}

// Bounds on what is in the folder, and how often it is looked at and cleaned.
const (
	compareEvery  = 50
	expireEvery   = 10
	keepSnapshots = 5
	rowsOfRound   = 20
)

func runRounds(t *testing.T, tbl table, keyed bool, rounds int) {
	want := map[int]string{}
	next := 0
	most := map[string]int{}
	committed := 0
	for round := 1; round <= rounds; round++ {
		var rows []string
		for i := range rowsOfRound {
			id := next
			if keyed && i%2 == 0 && next > 0 {
				id = (round*7919 + i*104729) % next // an update
			} else {
				next++
			}
			row := fmt.Sprintf(`{"id":%d,"v":"round %d"}`, id, round)
			want[id] = row
			rows = append(rows, row)
		}
		// Java does not merge manifests, so that it takes tablectl to keep them few.
		java(t, append(writeStep(t, tbl, rows), "-D", "manifest.merge-min-count=1000000"))
		strategy := "minor"
		if round%5 == 0 {
			strategy = "full"
		}
		o := compact(t, tbl, "--strategy", strategy)
		if o.code != exitDone {
			t.Fatalf("round %d: %v", round, o)
		}
		if o.result.Status == "committed" {
			committed++
		}
		if round%expireEvery == 0 {
			java(t, step("expire", tbl, "--retain", fmt.Sprint(keepSnapshots), "--out", os.DevNull))
			countFiles(t, tbl, most)
		}
		if round%compareEvery == 0 || round == rounds {
			var all []string
			for _, row := range want {
				all = append(all, row)
			}
			requireRows(t, dump(t, tbl), sortedRows(all))
		}
	}
	t.Logf("%d rounds, %d commits by tablectl; at most %v", rounds, committed, most)
	checkMost(t, most, next)
	if left := leftovers(t, tbl); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// checkMost checks the greatest numbers of files against bounds that do not depend on
// the number of rounds, but for the rows that there are.
func checkMost(t *testing.T, most map[string]int, rows int) {
	t.Helper()
	// Right after an expiry: the snapshots that are kept, a base and a delta list of each
	// and of none other, and manifests up to manifest.merge-min-count (30) and the new ones.
	for what, bound := range map[string]int{"snapshot": keepSnapshots, "list": 2 * keepSnapshots, "manifest": 30 + 4*keepSnapshots} {
		if most[what] > bound {
			t.Errorf("%d files of kind %s after an expiry, want at most %d", most[what], what, bound)
		}
	}
	if bound := 40 + rows*60/(64<<10); most["data"] > bound {
		t.Errorf("%d data files after an expiry, want at most %d", most["data"], bound)
	}
	// A list of those manifests: its Avro header and less than 300 bytes for each.
	if bound := 4<<10 + 300*(30+4*keepSnapshots); most["list bytes"] > bound {
		t.Errorf("a manifest list of %d bytes after an expiry, want at most %d", most["list bytes"], bound)
	}
}

// countFiles notes the greatest number of files of each kind, and the largest list.
func countFiles(t *testing.T, tbl table, most map[string]int) {
	t.Helper()
	for what, pattern := range map[string]string{
		"snapshot": "snapshot/snapshot-*", "list": "manifest/manifest-list-*", "manifest": "manifest/manifest-*", "data": "bucket-*/*.parquet",
	} {
		paths, err := filepath.Glob(filepath.Join(tbl.path, pattern))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, p := range paths {
			if info, err := os.Stat(p); err == nil && what == "list" {
				most["list bytes"] = max(most["list bytes"], int(info.Size()))
			}
			if what != "manifest" || !strings.HasPrefix(filepath.Base(p), "manifest-list-") {
				n++
			}
		}
		most[what] = max(most[what], n)
	}
}
