//go:build interop

package interop

import (
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRandomMerges writes random histories to random tables with primary keys, in between compacted by
// tablectl, minor and full, and by Java, and shows after each of our compactions that
//
//   - Java reads the rows that it read before,
//   - a full one stores the records (key, sequence number, kind, value) that Java's stores, had it run instead,
//   - where what is merged first does not matter, Java reads the rows of a table that had the same history
//     without our compactions.
//
// INTEROP_SEED repeats a run, INTEROP_HISTORIES sets the number of histories, and INTEROP_HISTORY runs only
// the n-th, which is the same whatever their number.
func TestRandomMerges(t *testing.T) {
	seed := envNumber(t, "INTEROP_SEED", time.Now().UnixNano())
	count := int(envNumber(t, "INTEROP_HISTORIES", 300))
	first := int(envNumber(t, "INTEROP_HISTORY", 0))
	if _, one := os.LookupEnv("INTEROP_HISTORY"); one {
		count = first + 1
	}
	t.Logf("INTEROP_SEED=%d INTEROP_HISTORIES=%d", seed, count)
	steps := newTally()
	var next atomic.Int64
	next.Store(int64(first))
	var workers sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) { // runs of tablectl wait, too
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && !t.Failed(); i = int(next.Add(1)) - 1 {
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					g := generator{rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
					k := g.keyed()
					h := history{T: t, keyedTable: k, table: createTable(t, k.spec), steps: steps}
					if k.orderless {
						h.control = []table{h.table.clone(t)}
					}
					h.run(g)
					if t.Failed() {
						t.Logf("to see it again: INTEROP_SEED=%d INTEROP_HISTORY=%d", seed, i)
					}
				})
			}
		})
	}
	workers.Wait()
	t.Logf("histories: %d, steps: %v", count-first, steps.count)
	if count-first > 1 && (steps.count["full, committed"] == 0 || steps.count["minor, committed"] == 0) {
		t.Error("tablectl compacted nothing")
	}
}

// A tally counts what was done.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

func newTally() *tally { return &tally{count: map[string]int{}} }

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[what]++
}

// A history is what happens to a table.
type history struct {
	*testing.T
	keyedTable
	table   table
	control []table  // of an orderless table one that has had everything but our compactions
	rows    []string // what Java last read, unless something was written since
	log     []string
	steps   *tally
}

func (h *history) run(g generator) {
	defer func() {
		if h.Failed() {
			h.Logf("table: %+v\n%s", h.spec, strings.Join(h.log, "\n"))
		}
	}()
	for range 3 + g.IntN(10) {
		rows := g.keyedRows(h.keyedTable)
		h.note("write", "write\n  "+strings.Join(rows, "\n  "))
		h.java(writeStep(h.T, h.table, rows))
		switch g.weighted(40, 20, 25, 10, 5) {
		case 1:
			h.compact("full")
		case 2:
			h.compact("minor")
		case 3:
			h.note("minor by Java", "compact by Java")
			h.java(step("compact", h.table, "--no-expire", "--out", os.DevNull))
		case 4:
			h.note("full by Java", "compact --full by Java")
			h.java(step("compact", h.table, "--full", "--no-expire", "--out", os.DevNull))
		}
	}
	h.compact("minor")
	h.compact("full")
}

func (h *history) note(what, text string) {
	h.steps.add(what)
	h.log = append(h.log, text)
}

// java has Java do something to the table and to its control.
func (h *history) java(s javaStep) {
	steps := []javaStep{s}
	for _, c := range h.control {
		steps = append(steps, append(step(s[0], c), s[len(step(s[0], h.table)):]...))
	}
	java(h.T, steps...)
	h.rows = nil
}

func (h *history) read(tbl table) []string { return h.sorted(dump(h.T, tbl)) }

func (h *history) sorted(rows []string) []string { return sortSets(h.T, h.spec.Options, rows) }

// compact runs tablectl and looks at what it left.
func (h *history) compact(strategy string) {
	before := h.rows
	if before == nil {
		before = h.read(h.table)
	}
	var asJava table
	if strategy == "full" {
		asJava = h.table.clone(h.T)
		java(h.T, step("compact", asJava, "--full", "--no-expire", "--out", os.DevNull))
	}
	o := compact(h.T, h.table, "--strategy", strategy)
	what := strategy + ", " + o.result.Status
	h.note(what, "tablectl: "+what)
	if o.code != exitDone {
		h.Fatal(o)
	}
	after := h.read(h.table)
	h.rows = after
	switch {
	case !h.expires:
		h.Run("rows", func(t *testing.T) { requireRows(t, after, before) })
	case strategy == "minor":
		h.checkExpired(before, after)
	}
	for _, c := range h.control {
		h.Run("control", func(t *testing.T) { requireRows(t, h.read(c), before) })
	}
	if strategy == "full" {
		h.Run("raw", func(t *testing.T) { requireRows(t, h.sorted(rawRecords(t, h.table)), h.sorted(rawRecords(t, asJava))) })
	}
	if h.Failed() {
		h.FailNow()
	}
}

// checkExpired shows that no row but expired ones is gone.
func (h *history) checkExpired(before, after []string) {
	gone := slices.DeleteFunc(subtract(before, after), func(row string) bool { return strings.Contains(row, expiredTime) })
	if len(gone) > 0 {
		h.Errorf("rows are gone:\n%s", excerpt(gone))
	}
}
