//go:build interop

package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	full  = "full"
	minor = "minor"
)

// createKeyed makes an empty table of one bucket with a primary key. Three sorted runs are enough for a minor
// compaction, which then leaves a last run alone that is larger than the others together.
func createKeyed(t *testing.T, key string, fields []field, options ...string) table {
	t.Helper()
	spec := tableSpec{Fields: fields, PrimaryKeys: strings.Split(key, ","), Options: map[string]string{
		"bucket": "1", "num-sorted-run.compaction-trigger": "3", "num-levels": "6",
	}}
	for o := range slices.Chunk(options, 2) {
		spec.Options[o[0]] = o[1]
	}
	return createTable(t, spec)
}

// heavyRows are rows whose file is larger than some small ones together; format makes a row of a key, from
// 1000 to 1599, and a text.
func heavyRows(format string) []string { return textRows(1000, 600, format) }

// textRows are n rows of consecutive keys and texts that hardly compress.
func textRows(from, n int, format string) []string {
	random := rand.New(rand.NewPCG(1, uint64(from)))
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(format, from+i, fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64()))
	}
	return rows
}

// compactWithJava has Java compact a table where it has something to do.
func compactWithJava(t *testing.T, tbl table, strategy string) {
	t.Helper()
	before := len(tbl.snapshots(t))
	args := []string{"--no-expire", "--out", os.DevNull}
	if strategy == full {
		args = append(args, "--full")
	}
	java(t, step("compact", tbl, args...))
	if n := len(tbl.snapshots(t)) - before; n != 1 {
		t.Fatalf("Java's %s compaction made %d snapshots, want one", strategy, n)
	}
}

// compactBeside has tablectl compact a table and Java a clone of it, which it returns. The test fails unless
// both leave the same records in the same files, and readers see the rows that they saw before.
func compactBeside(t *testing.T, tbl table, strategy string) table {
	t.Helper()
	return compactBesideOther(t, tbl, strategy, strategy)
}

// compactWhole is compactBeside where tablectl must merge the whole bucket, whatever the strategy.
func compactWhole(t *testing.T, tbl table, strategy string) table {
	t.Helper()
	return compactBesideOther(t, tbl, strategy, full)
}

func compactBesideOther(t *testing.T, tbl table, ours, javas string) table {
	t.Helper()
	before := dump(t, tbl)
	clone := compactLikeJava(t, tbl, ours, javas)
	requireRows(t, dump(t, tbl), before)
	return clone
}

// compactLikeJava is compactBeside for compactions, of Java too, that may change what readers see.
func compactLikeJava(t *testing.T, tbl table, ours, javas string) table {
	t.Helper()
	clone := tbl.clone(t)
	compactWithJava(t, clone, javas)
	mustCommit(t, tbl, "--strategy", ours)
	requireSameFiles(t, tbl, clone)
	return clone
}

// requireSameFiles fails the test unless two tables hold the same records, in the same order, in files that
// manifests describe in the same way.
func requireSameFiles(t *testing.T, got, want table) {
	t.Helper()
	requireRows(t, dump(t, got, "--raw", "--unsorted"), dump(t, want, "--raw", "--unsorted"))
	for _, d := range compare("", listEssentials(t, want), listEssentials(t, got)) {
		t.Errorf("%v (as Java has it)", d)
	}
}

func listEssentials(t *testing.T, tbl table) any {
	t.Helper()
	file, err := listTo(t, tbl)
	if err != nil {
		t.Fatal(err)
	}
	return essentials(t, readDocument(t, file))
}

// writeBoth writes the same batches to two tables and fails the test unless they then have the same rows,
// which it returns.
func writeBoth(t *testing.T, a, b table, batches ...[]string) []string {
	t.Helper()
	write(t, a, batches...)
	write(t, b, batches...)
	rows := dump(t, a)
	requireRows(t, rows, dump(t, b))
	return rows
}

// requireCount fails the test unless so many of the rows start with a text.
func requireCount(t *testing.T, rows []string, start string, want int) {
	t.Helper()
	n := 0
	for _, r := range rows {
		if strings.HasPrefix(r, start) {
			n++
		}
	}
	if n != want {
		t.Errorf("%d rows start with %s, want %d", n, start, want)
	}
}

// holds reports whether some record of a table's files, its level, sequence number and kind included, has all
// of the members.
func holds(t *testing.T, tbl table, members ...string) bool {
	t.Helper()
	return slices.ContainsFunc(dump(t, tbl, "--raw"), func(r string) bool {
		return !slices.ContainsFunc(members, func(m string) bool { return !strings.Contains(r, m) })
	})
}

// TestDeleteStaysDeleted shows that a compaction that leaves an older run alone loses neither the delete nor
// the update that hides a row of it, and that they keep their sequence numbers, so that they do not hide
// what is newer; and that nothing of them is left once all runs are merged.
func TestDeleteStaysDeleted(t *testing.T) {
	for name, second := range map[string]string{
		"deleted": `{"_kind":"-D","k":1,"v":"old"}`,
		"updated": `{"k":1,"v":"new"}`,
	} {
		t.Run(name, func(t *testing.T) {
			tbl := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"v", "STRING"}})
			write(t, tbl, append(heavyRows(`{"k":%d,"v":"%s"}`), `{"k":1,"v":"old"}`, `{"k":9,"v":"z"}`))
			compactWithJava(t, tbl, full)
			write(t, tbl, []string{second}, []string{`{"k":5,"v":"a longer text"}`})

			compactBeside(t, tbl, minor)
			for _, r := range [][]string{
				{`"_level":5`, `"k":1,"v":"old"`}, {`"_level":4`, `"_seq":602,"k":1,`}, {`"_level":4`, `"_seq":603,"k":5,`},
			} {
				if !holds(t, tbl, r...) {
					t.Errorf("no record has %s", r)
				}
			}
			compactBeside(t, tbl, full)
			if holds(t, tbl, `"v":"old"`) || holds(t, tbl, `"_kind":"-D"`) {
				t.Error("the old row or its delete is still there")
			}
		})
	}
}

// TestGreatestSequenceWins shows that of versions of a key in several levels the one with the greatest value
// of sequence.field stays, which here is the oldest one, in the highest level.
func TestGreatestSequenceWins(t *testing.T) {
	tbl := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"v", "STRING"}, {"s", "INT"}}, "sequence.field", "s")
	v := func(k int, v string, s int) string { return fmt.Sprintf(`{"k":%d,"v":"%s","s":%d}`, k, v, s) }
	// Key 1 is newest in the highest level, 2 in the one above it, 3 in level 0; 4 and 5 are equal in two.
	write(t, tbl, append(heavyRows(`{"k":%d,"v":"%s","s":0}`),
		v(1, "first", 9), v(2, "first", 5), v(3, "first", 5), v(4, "first", 7), v(5, "first", 5)))
	compactWithJava(t, tbl, full)
	write(t, tbl,
		[]string{v(6, "other", 1)},
		[]string{v(1, "second", 7), v(2, "second", 9), v(3, "second", 7), v(4, "second", 7), v(5, "second", 8)})
	compactWithJava(t, tbl, minor)
	write(t, tbl,
		[]string{v(7, "other", 1)},
		[]string{v(1, "third", 8), v(2, "third", 7), v(3, "third", 9), v(4, "third", 6), v(5, "third", 8)})

	for _, strategy := range []string{minor, full} {
		compactBeside(t, tbl, strategy)
		apart := holds(t, tbl, `"_level":5`) && holds(t, tbl, `"_level":4`) && !holds(t, tbl, `"_level":0`)
		if strategy == minor && !apart {
			t.Error("the minor compaction did not merge all levels but the highest")
		}
		rows := dump(t, tbl)
		for k, want := range []string{"first", "second", "third", "second", "third"} {
			requireCount(t, rows, fmt.Sprintf(`{"k":%d,"v":"%s"`, k+1, want), 1)
		}
	}
}

// TestLevelsDoNotOverlap shows that compactions of one bucket at the same time, whose outputs are many files,
// do not put files with the same keys into one level, also where files begin with the key at which others end.
func TestLevelsDoNotOverlap(t *testing.T) {
	tbl := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"v", "STRING"}}, "target-file-size", "32 kb")
	const each = 1500 // where to begin a new file is looked at every thousand rows
	run := func(from, n int, v string) []string { return textRows(from, n, `{"k":%d,"v":"`+v+` %s"}`) }
	for i := range 6 { // each begins with the key at which the one before ends
		write(t, tbl, run(i*(each-1), each, fmt.Sprint("run ", i)))
	}
	write(t, tbl, run(each/2, 4*each, "across"))
	want := dump(t, tbl)

	committed := 0
	for _, o := range compactInParallel(t, tbl, 6, 3) {
		switch {
		case o.code == exitDone && o.result.Status == "committed":
			committed++
		case o.code == exitDone && o.result.Status == "nothing_to_do", o.code == exitLostRace:
		default:
			t.Errorf("%v, want committed, nothing to do, or a lost race", o)
		}
	}
	if committed != 1 {
		t.Errorf("%d compactions committed, want one", committed)
	}
	requireRows(t, dump(t, tbl), want)
	requireDisjoint(t, tbl)

	write(t, tbl, run(each, each, "later"), run(3*each, 1, "later"))
	want = dump(t, tbl)
	compactWithJava(t, tbl, full)
	requireRows(t, dump(t, tbl), want)
}

// requireDisjoint fails the test when two files of a level have keys in common, or there are few files.
func requireDisjoint(t *testing.T, tbl table) {
	t.Helper()
	file, err := listTo(t, tbl)
	if err != nil {
		t.Fatal(err)
	}
	type keyedFile struct {
		Level          int
		MinKey, MaxKey []int
	}
	var list struct{ Files []keyedFile }
	readJSON(t, file, &list)
	slices.SortFunc(list.Files, func(a, b keyedFile) int {
		return slices.Compare(append([]int{a.Level}, a.MinKey...), append([]int{b.Level}, b.MinKey...))
	})
	for i, f := range list.Files[1:] {
		if before := list.Files[i]; f.Level == before.Level && slices.Compare(before.MaxKey, f.MinKey) >= 0 {
			t.Errorf("files of level %d have the keys %v to %v and %v to %v",
				f.Level, before.MinKey, before.MaxKey, f.MinKey, f.MaxKey)
		}
	}
	if len(list.Files) < 3 {
		t.Errorf("%d files, want more, so that there are borders", len(list.Files))
	}
}

// TestDeleteHidesLateRows shows that a row that is older, by sequence.field, than a delete stays hidden by it
// until all runs are merged, and that a row that is written after that is seen, as with Java.
func TestDeleteHidesLateRows(t *testing.T) {
	original := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"v", "STRING"}, {"s", "INT"}}, "sequence.field", "s")
	write(t, original, append(heavyRows(`{"k":%d,"v":"%s","s":0}`), `{"k":1,"v":"a","s":100}`))
	compactWithJava(t, original, full)
	write(t, original, []string{`{"_kind":"-D","k":1,"v":"a","s":100}`}, []string{`{"k":1,"v":"late","s":50}`})
	late := []string{`{"k":1,"v":"later","s":60}`}

	for strategy, seen := range map[string]int{minor: 0, full: 1} {
		t.Run(strategy, func(t *testing.T) {
			tbl := original.clone(t)
			clone := compactBeside(t, tbl, strategy)
			requireCount(t, dump(t, tbl), `{"k":1,`, 0)
			requireCount(t, writeBoth(t, tbl, clone, late), `{"k":1,`, seen)
			compactBeside(t, tbl, full)
		})
	}
}

// TestLateDataIsAggregated shows that what a compaction has merged goes on to merge with late and with
// retracted rows as with Java, which keeps one sequence number for all columns of a row.
func TestLateDataIsAggregated(t *testing.T) {
	fields := []field{{"k", "INT NOT NULL"}, {"s", "INT"}, {"a", "INT"}, {"b", "STRING"}, {"c", "STRING"}}
	original := createKeyed(t, "k", fields, "merge-engine", "aggregation", "sequence.field", "s",
		"fields.a.aggregate-function", "sum", "fields.b.aggregate-function", "first_value", "fields.b.ignore-retract", "true")
	v := func(kind string, k, s, a int, b string) string {
		return fmt.Sprintf(`{"_kind":"%s","k":%d,"s":%d,"a":%d,"b":"%s","c":"c%[5]s"}`, kind, k, s, a, b)
	}
	base := heavyRows(`{"k":%d,"s":0,"a":1,"b":"%s","c":null}`)
	write(t, original, append(base, v("+I", 2, 1, 10, "x"), v("+I", 3, 4, 1, "m")))
	compactWithJava(t, original, full)
	write(t, original,
		[]string{v("+I", 1, 4, 10, "x"), v("-U", 2, 2, 10, "x"), v("-D", 4, 1, 5, "g")},
		[]string{v("+I", 1, 2, 5, "y"), v("+U", 2, 2, 7, "y"), v("+I", 3, 6, 1, "n"), v("+I", 4, 2, 6, "h")})

	for _, strategy := range []string{minor, full} {
		t.Run(strategy, func(t *testing.T) {
			tbl := original.clone(t)
			clone := compactWhole(t, tbl, strategy)
			rows := writeBoth(t, tbl, clone,
				[]string{v("+I", 1, 3, 1, "z"), v("-D", 2, 3, 2, "z"), v("+I", 3, 5, 1, "z"), v("-U", 4, 0, 1, "z")})
			requireCount(t, rows, `{"k":1,"s":4,"a":16,`, 1)
			requireCount(t, rows, `{"k":2,"s":null,"a":5,`, 1) // last_value of a retract
			requireCount(t, rows, `{"k":3,"s":6,"a":3,`, 1)
			compactBeside(t, tbl, full)
		})
	}
}

// TestNullInRequiredColumnFails shows that a merge that leaves a null in a NOT NULL column, as a retracted
// last_value does, fails without touching the table, and that later rows can mend it.
func TestNullInRequiredColumnFails(t *testing.T) {
	tbl := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"v", "STRING NOT NULL"}}, "merge-engine", "aggregation",
		"fields.v.aggregate-function", "last_value")
	write(t, tbl, []string{`{"k":1,"v":"x"}`, `{"k":2,"v":"x"}`}, []string{`{"_kind":"-U","k":1,"v":"x"}`})
	before := hashTree(t, tbl)
	o := compact(t, tbl)
	if o.code != exitFailed || o.result.Status != "failed" || !strings.Contains(o.String(), "column v: holds a null") {
		t.Errorf("%v, want exit %d and a null in column v", o, exitFailed)
	}
	requireSameTree(t, before, hashTree(t, tbl))

	write(t, tbl, []string{`{"k":1,"v":"y"}`})
	compactBeside(t, tbl, full)
	requireRows(t, dump(t, tbl), []string{`{"k":1,"v":"y"}`, `{"k":2,"v":"x"}`})
}

// TestKeyInSequenceGroupIsRefused shows that a table whose options would have a merge set a column of the
// primary key to null is refused. Java takes such options.
func TestKeyInSequenceGroupIsRefused(t *testing.T) {
	tbl := createKeyed(t, "k1,k2", []field{{"k1", "INT NOT NULL"}, {"k2", "INT NOT NULL"}, {"s", "INT"}, {"g", "INT"}},
		"merge-engine", "partial-update", "fields.g.sequence-group", "s,k2")
	write(t, tbl, []string{`{"k1":1,"k2":1,"s":1,"g":null}`}, []string{`{"k1":1,"k2":1,"s":2,"g":1}`})
	before := hashTree(t, tbl)
	o := compact(t, tbl)
	if o.code != exitUsage || o.result.Status != "failed" || !strings.Contains(o.String(), "fields.g.sequence-group") {
		t.Errorf("%v, want exit %d and the option", o, exitUsage)
	}
	requireSameTree(t, before, hashTree(t, tbl))
}

// TestExpiredRows shows that rows that expire by record-level.expire-time go in a compaction, but those without
// a time stay. An expired row that is newer than one in a run that is left alone stays as well: the older one
// must not be seen again.
func TestExpiredRows(t *testing.T) {
	tbl := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"v", "STRING"}, {"t", "INT"}},
		"record-level.expire-time", "1 d", "record-level.time-field", "t")
	const old, later = 1577836800, 2145916800 // in 2020 and in 2038
	v := func(k int, v string, seconds any) string {
		return fmt.Sprintf(`{"k":%d,"v":"%s","t":%v}`, k, v, seconds)
	}
	base := heavyRows(`{"k":%d,"v":"%s","t":null}`)
	write(t, tbl, append(base, v(1, "base", later), v(2, "base", "null"), v(3, "base", later)))
	compactWithJava(t, tbl, full)
	write(t, tbl,
		[]string{v(1, "expired", old), v(2, "expired", old), v(4, "expired", old), v(5, "untimed", "null")},
		[]string{v(3, "new", later), v(6, "a longer text, so that the file is larger", later)})

	before := dump(t, tbl)
	mustCommit(t, tbl, "--strategy", minor)
	requireRows(t, dump(t, tbl), before)

	compactLikeJava(t, tbl, full, full)
	rows := dump(t, tbl)
	for _, row := range []string{v(1, "base", later), v(2, "base", "null"), v(3, "new", later), v(5, "untimed", "null")} {
		requireCount(t, rows, row, 1)
	}
	requireCount(t, rows, `{"k":4,`, 0)
	if n := len(dump(t, tbl, "--raw")); n != 605 {
		t.Errorf("%d records, want 605, those that are seen", n)
	}
}

// TestPartOfTheVersions shows that a minor compaction changes nothing that readers see where it could only by
// merging more than it picked: a merged row has one place in the order of versions, and no memory of a delete
// between them.
func TestPartOfTheVersions(t *testing.T) {
	for name, c := range map[string]struct {
		options             []string
		base, second, third string
		seen                string
	}{
		"first value of rows around an older one": {
			[]string{"merge-engine", "aggregation", "sequence.field", "s", "fields.a.aggregate-function", "first_value"},
			`{"k":1,"a":"between","s":2}`, `{"k":1,"a":"first","s":1}`, `{"k":1,"a":"the newest of all","s":3}`,
			`{"k":1,"a":"first","s":3}`,
		},
		"row after a delete": {
			[]string{"merge-engine", "partial-update", "partial-update.remove-record-on-delete", "true"},
			`{"k":1,"a":"before the delete","s":1}`, `{"_kind":"-D","k":1,"a":null,"s":null}`, `{"k":1,"a":null,"s":3}`,
			`{"k":1,"a":null,"s":3}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tbl := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"a", "STRING"}, {"s", "INT"}}, c.options...)
			write(t, tbl, append(heavyRows(`{"k":%d,"a":"%s","s":0}`), c.base))
			compactWithJava(t, tbl, full)
			write(t, tbl, []string{c.second}, []string{c.third, `{"k":2,"a":"so that this file is the larger one","s":0}`})
			requireCount(t, dump(t, tbl), c.seen, 1)

			compactBeside(t, tbl.clone(t), full)
			compactWhole(t, tbl, minor)
		})
	}
}

// TestGroupThatRemovesRecord shows that a delete that counts for one of two sequence groups removes the row,
// and only if it is not late in that group.
func TestGroupThatRemovesRecord(t *testing.T) {
	fields := []field{{"k", "INT NOT NULL"}, {"a", "STRING"}, {"g1", "INT"}, {"g2", "INT"}, {"b", "STRING"}}
	original := createKeyed(t, "k", fields,
		"merge-engine", "partial-update", "fields.g1.sequence-group", "a", "fields.g2.sequence-group", "b",
		"partial-update.remove-record-on-sequence-group", "g2")
	v := func(kind string, k int, g1, g2 any, s string) string {
		return fmt.Sprintf(`{"_kind":"%s","k":%d,"a":"a %s","g1":%v,"g2":%v,"b":"b %[3]s"}`, kind, k, s, g1, g2)
	}
	base := heavyRows(`{"k":%d,"a":"%s","g1":1,"g2":1,"b":"b"}`)
	for k := 1; k <= 5; k++ {
		base = append(base, v("+I", k, 5, 5, "base"))
	}
	write(t, original, base)
	compactWithJava(t, original, full)
	write(t, original,
		[]string{
			v("-D", 1, 6, 6, "removes"), v("-D", 2, 6, 4, "is late"), v("-D", 3, 6, "null", "is not of the group"),
			v("-D", 4, 4, 6, "removes"), v("-D", 6, 1, 1, "of nothing"),
		},
		[]string{
			v("+I", 4, 7, "null", "is back, in one group"),
			v("+I", 5, 4, 6, "is late in one group"), v("-U", 5, 7, 7, "retracts"),
		})

	for _, strategy := range []string{minor, full} {
		t.Run(strategy, func(t *testing.T) {
			tbl := original.clone(t)
			clone := compactWhole(t, tbl, strategy)
			rows := writeBoth(t, tbl, clone,
				[]string{v("+I", 1, 7, 7, "again"), v("+I", 2, 1, 9, "new"), v("-D", 3, 9, 9, "removes")})
			requireCount(t, rows, `{"k":1,"a":"a again","g1":7,"g2":7,"b":"b again"}`, 1)
			requireCount(t, rows, `{"k":3,`, 0)
			requireCount(t, rows, `{"k":6,`, 0)
			compactBeside(t, tbl, full)
		})
	}
}

// TestChangelogOfWritersStays shows that compaction adds nothing to, and takes nothing from, the changelog of
// a table whose writers write it.
func TestChangelogOfWritersStays(t *testing.T) {
	tbl := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"v", "STRING"}}, "changelog-producer", "input")
	write(t, tbl, heavyRows(`{"k":%d,"v":"%s"}`))
	compactWithJava(t, tbl, full)
	write(t, tbl,
		[]string{`{"_kind":"-U","k":1,"v":"a"}`, `{"_kind":"+U","k":1,"v":"b"}`},
		[]string{`{"_kind":"-D","k":1000,"v":"none"}`})
	before := dump(t, tbl, "--changelog")
	requireCount(t, before, `{"_snapshot":`, 603)
	for _, strategy := range []string{minor, full} {
		compactBeside(t, tbl, strategy)
		requireRows(t, dump(t, tbl, "--changelog"), before)
	}
}
