//go:build interop

package interop

import (
	"fmt"
	"os"
	"testing"
)

// meanwhile is what Java does while a compaction stands still.
type meanwhile struct {
	name  string
	kinds []string   // of tables, all if empty
	steps []javaWork // one for each pause
	lost  string     // the buckets that the run gives up; all leaves nothing to commit
	why   string     // is in the message of each
	early string     // takes the place of why after planning
	late  string     // takes the place of lost just before publishing; "nothing" is none
	// unclear says that Java takes the planned snapshot back: a run that has begun to
	// publish may end with 6 then.
	unclear bool
	refused bool // the next run refuses the table
}

const all = "all"

// Kinds of tables.
var (
	unbucketed = []string{"append"}
	bucketed   = []string{"buckets", "keys"}
)

var partitionedFields = []field{{"id", "INT NOT NULL"}, {"p", "STRING NOT NULL"}, {"v", "STRING"}}

// partitionedRows are rows of one partition, n ids from the first on.
func partitionedRows(partition string, first, n int, value string) []string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":%d,"p":"%s","v":"%s %d"}`, first+i, partition, value, first+i)
	}
	return rows
}

// javaWork makes the steps that change a table.
type javaWork func(*testing.T, table, tableSpec) []javaStep

// then is several works in a row.
func then(works ...javaWork) javaWork {
	return func(t *testing.T, tbl table, spec tableSpec) (steps []javaStep) {
		for _, w := range works {
			steps = append(steps, w(t, tbl, spec)...)
		}
		return steps
	}
}

// once is a work at the first pause, with nothing at others.
func once(works ...javaWork) []javaWork { return []javaWork{then(works...)} }

func does(command string, args ...string) javaWork {
	return func(_ *testing.T, tbl table, _ tableSpec) []javaStep { return []javaStep{step(command, tbl, args...)} }
}

func appends(rows []string) javaWork {
	return func(t *testing.T, tbl table, _ tableSpec) []javaStep { return []javaStep{writeStep(t, tbl, rows)} }
}

func overwrites(rows []string) javaWork {
	return func(t *testing.T, tbl table, _ tableSpec) []javaStep {
		return []javaStep{append(writeStep(t, tbl, rows), "--overwrite")}
	}
}

func alters(changes string) javaWork { return does("alter", "--changes", "["+changes+"]") }

func setsOption(key, value string) javaWork {
	return alters(fmt.Sprintf(`{"op":"setOption","key":%q,"value":%q}`, key, value))
}

// recreates drops the table and makes it again, with so many snapshots.
func recreates(snapshots int) javaWork {
	return func(t *testing.T, tbl table, spec tableSpec) []javaStep {
		steps := []javaStep{step("drop", tbl), createStep(t, tbl, spec)}
		for i := range snapshots {
			steps = append(steps, writeStep(t, tbl, partitionedRows("a", 10*i, 5, "another table")))
		}
		return steps
	}
}

var (
	appendsToOldAndNew = then(appends(partitionedRows("a", 1000, 5, "new")), appends(partitionedRows("d", 0, 5, "new")))
	overwritesA        = overwrites(partitionedRows("a", 0, 3, "over"))
	dropsB             = does("drop-partition", "--partition", "p=b")
	compactsAll        = does("compact", "--full", "--no-expire", "--out", os.DevNull)
	compactsC          = does("compact", "--full", "--where", "p=c", "--no-expire", "--out", os.DevNull)
	compactsOneBucket  = does("compact", "--full", "--where", "p=c", "--bucket", "1", "--no-expire", "--out", os.DevNull)
	expires            = does("expire", "--retain", "1", "--out", os.DevNull)
	addsColumn         = alters(`{"op":"addColumn","name":"w","type":"INT"}`)
	writesColumn       = appends([]string{`{"id":7000,"p":"a","v":"x","w":1}`, `{"id":7001,"p":"d","v":"y","w":2}`})
	turnsOnVectors     = setsOption("deletion-vectors.enabled", "true")
)

// Reasons of a loss.
const (
	gone    = "is no longer live in snapshot"
	removed = "was replaced by snapshot" // so its file could not be read
	altered = "the table was altered meanwhile"
)

var meanwhiles = []meanwhile{
	{name: "appends", steps: once(appendsToOldAndNew)},
	{name: "appends and expires", steps: once(appendsToOldAndNew, expires)},
	{name: "appends again and again", steps: []javaWork{appendsToOldAndNew, appendsToOldAndNew, appendsToOldAndNew}},
	{name: "overwrites a partition", lost: "a/0 a/1", why: gone, steps: once(overwritesA)},
	{name: "overwrites a partition and expires", lost: "a/0 a/1", why: gone, early: removed, steps: once(overwritesA, expires)},
	{name: "drops a partition", lost: "b/0 b/1", why: gone, steps: once(dropsB)},
	{name: "drops a partition and expires", lost: "b/0 b/1", why: gone, early: removed, steps: once(dropsB, expires)},
	{name: "overwrites one partition, then drops another", lost: "a/0 a/1 b/0 b/1", why: gone, steps: []javaWork{overwritesA, dropsB}},
	{name: "compacts a partition", lost: "c/0 c/1", why: gone, steps: once(compactsC)},
	{name: "compacts one bucket", lost: "c/1", why: gone, kinds: bucketed, steps: once(compactsOneBucket)},
	{name: "compacts one bucket, then all", lost: all, why: gone, kinds: bucketed, steps: []javaWork{compactsOneBucket, compactsAll}},
	{name: "compacts all", lost: all, why: gone, steps: once(compactsAll)},
	{name: "compacts all and expires", lost: all, why: gone, early: removed, steps: once(compactsAll, expires)},
	{name: "rescales a partition", lost: "a/0 a/1", why: gone, kinds: bucketed, steps: once(setsOption("bucket", "4"), overwrites(partitionedRows("a", 0, 9, "rescaled")))},
	{name: "changes the number of buckets", kinds: bucketed, steps: once(setsOption("bucket", "4"), appends(partitionedRows("d", 0, 9, "in four buckets")))},
	{name: "changes an option", steps: once(setsOption("target-file-size", "1 mb"), appendsToOldAndNew)},
	{name: "adds a column", steps: once(addsColumn)},
	{name: "adds a column and writes it", steps: once(addsColumn, writesColumn)},
	{name: "renames a column, adds one of its name and writes it", steps: once(
		alters(`{"op":"renameColumn","name":"v","to":"u"}`), alters(`{"op":"addColumn","name":"v","type":"BIGINT"}`),
		appends([]string{`{"id":7000,"p":"a","u":"x","v":1}`}))},
	{name: "rolls back", lost: all, why: "is gone", unclear: true, steps: once(does("rollback", "--to", "5"))},
	{name: "rolls back and appends", lost: all, why: gone, unclear: true, steps: once(does("rollback", "--to", "5"),
		appendsToOldAndNew, appendsToOldAndNew, appendsToOldAndNew)},
	{name: "rolls back and appends up to the same id", lost: all, why: gone, unclear: true, steps: once(does("rollback", "--to", "5"),
		appendsToOldAndNew, appendsToOldAndNew)},
	{name: "makes the table anew, without rows", lost: all, why: "is gone", unclear: true, steps: once(recreates(0))},
	{name: "makes the table anew", lost: all, why: "is gone", early: removed, unclear: true, steps: once(recreates(3))},
	{name: "makes the table anew, up to the same id", lost: all, why: gone, early: removed, unclear: true, steps: once(recreates(9))},
	{name: "makes the table anew, with more snapshots", lost: all, why: gone, early: removed, unclear: true, steps: once(recreates(12))},
	{name: "turns on deletion vectors", lost: all, why: altered, late: "nothing", refused: true, kinds: unbucketed, steps: once(turnsOnVectors)},
	{name: "turns on deletion vectors and deletes", lost: all, why: altered, refused: true, kinds: unbucketed, steps: once(turnsOnVectors, does("delete", "--match", `[{"id":3}]`))},
}
