//go:build interop

package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestRandomTables shows that compaction changes no row of tables of random types, partitions, options and
// contents, neither in the latest snapshot nor in the one before. INTEROP_SEED repeats a run, and
// INTEROP_TABLES sets the number of tables; the n-th table of a seed is the same whatever their number.
func TestRandomTables(t *testing.T) {
	seed := envNumber(t, "INTEROP_SEED", time.Now().UnixNano())
	count := int(envNumber(t, "INTEROP_TABLES", 25))
	t.Logf("INTEROP_SEED=%d INTEROP_TABLES=%d", seed, count)

	wants := make([][]string, count)
	outcomes, errs := make([]outcome, count), make([]error, count)
	var readings []reading
	var commits int
	for i := range count {
		g := generator{rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
		random := g.table()
		t.Logf("table %d: %+v", i, random.spec)
		tbl := createTable(t, random.spec)
		write(t, tbl, random.batches...)
		wants[i] = dump(t, tbl)
		before := tbl.snapshots(t)
		outcomes[i], errs[i] = runCompact(tbl, nil)
		if outcomes[i].result.Status == "committed" {
			commits++
		}
		readings = append(readings, reading{table: tbl}, reading{table: tbl, snapshot: before[len(before)-1].ID})
	}
	t.Logf("%d of %d tables had something to compact", commits, count)
	if commits == 0 {
		t.Error("no table had something to compact")
	}
	readouts := readAll(t, readings)
	for i := range count {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if o := outcomes[i]; o.code != exitDone {
				t.Errorf("%v, want exit %d", o, exitDone)
			}
			t.Run("latest", func(t *testing.T) { checkRows(t, readouts, 2*i, wants[i]) })
			t.Run("before", func(t *testing.T) { checkRows(t, readouts, 2*i+1, wants[i]) })
		})
	}
}

// envNumber is a number from the environment, or fallback when there is none.
func envNumber(t *testing.T, name string, fallback int64) int64 {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// A randomTable is a new table and what to commit to it.
type randomTable struct {
	spec    tableSpec
	batches [][]string
}

// A column is how values of a column of a random table are made.
type column struct {
	field
	value    func() any // never nil
	nullRate float64
}

// table makes up a table.
func (g generator) table() randomTable {
	var columns []column
	for i := range 3 + g.IntN(8) {
		columns = append(columns, g.column(fmt.Sprintf("c%d", i)))
	}
	var partitionKeys []string
	for i := range g.weighted(50, 35, 15) {
		c := g.partitionColumn(fmt.Sprintf("p%d", i))
		columns = append(columns, c)
		partitionKeys = append(partitionKeys, c.Name)
	}
	// The bucket key and the indexed column are of types that can be both.
	key := column{field: field{"k", pick(g, "INT", "BIGINT", "STRING")}, nullRate: 0.05}
	key.value = g.scalar(key.Type)
	columns = append(columns, key)
	g.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })

	spec := tableSpec{PartitionKeys: partitionKeys, Options: g.options(key.Name)}
	for _, c := range columns {
		spec.Fields = append(spec.Fields, c.field)
	}
	var batches [][]string
	for range 5 + g.IntN(4) {
		var rows []string
		for range 1 + g.IntN(pick(g, 5, 50, 300)) {
			rows = append(rows, g.row(columns))
		}
		batches = append(batches, rows)
	}
	return randomTable{spec, batches}
}

// options makes up the options of a table that has a column key. parquet.writer.version=PARQUET_2_0 is not
// among them, as Java Paimon 1.4.2 cannot always read what it writes then (texts inside arrays).
func (g generator) options(key string) map[string]string {
	options := map[string]string{}
	// choose sets an option to one of the values, or not at all.
	choose := func(name string, values ...string) {
		if i := g.IntN(len(values) + 1); i > 0 {
			options[name] = values[i-1]
		}
	}
	choose("metadata.stats-mode", "none", "counts", "truncate(4)", "full")
	choose("metadata.stats-dense-store", "true", "false")
	choose("file.compression", "zstd", "snappy", "lz4", "gzip", "none")
	choose("file.block-size", "1 kb", "32 kb")
	choose("parquet.page.size", "256", "4096")
	choose("parquet.enable.dictionary", "false")
	choose("target-file-size", "8 kb", "64 kb")
	choose("compaction.min.file-num", "2", "3", "4")
	choose("manifest.compression", "null", "snappy")
	if g.chance(0.3) {
		options["bucket"] = pick(g, "1", "2")
		options["bucket-key"] = key
		choose("bucket-append-ordered", "false")
	}
	if g.chance(0.2) {
		options["file-index.bloom-filter.columns"] = key
		choose("file-index.in-manifest-threshold", "1 b")
	}
	return options
}
