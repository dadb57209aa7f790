//go:build interop

package interop

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestKeyedSchemaEvolution shows that versions of a row in files of different schemas merge into one of the
// latest schema, column by column of the same id, whatever their names are, and that the snapshots before
// still read as they did.
func TestKeyedSchemaEvolution(t *testing.T) {
	for _, engine := range []string{"deduplicate", "partial-update"} {
		t.Run(engine, func(t *testing.T) {
			tbl := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"b", "STRING"}, {"n", "INT"}}, "merge-engine", engine)
			// next writes a row that all commits write, one that the next commit writes too, and one of its own.
			commits := 0
			next := func(format string) {
				t.Helper()
				commits++
				var rows []string
				for _, k := range []int{50, commits, commits + 1, 100 + commits} {
					rows = append(rows, fmt.Sprintf(format, k))
				}
				write(t, tbl, rows)
			}
			next(`{"k":%[1]d,"b":"text %[1]d","n":%[1]d}`)
			alter(t, tbl, `[{"op":"renameColumn","name":"b","to":"c"}]`)
			next(`{"k":%[1]d,"c":"renamed %[1]d","n":null}`)
			alter(t, tbl, `[{"op":"dropColumn","name":"c"}]`)
			alter(t, tbl, `[{"op":"addColumn","name":"c","type":"BIGINT"}]`)
			next(`{"k":%[1]d,"c":%[1]d00000000000,"n":%[1]d}`)
			alter(t, tbl, `[{"op":"addColumn","name":"d","type":"ARRAY<STRING>","first":true}]`)
			next(`{"k":%[1]d,"c":null,"d":["x","%[1]d",null]}`)
			alter(t, tbl, `[{"op":"move","name":"n","first":true},{"op":"updateType","name":"n","type":"BIGINT"}]`)
			next(`{"k":%[1]d,"n":%[1]d000000000000}`)

			travel := func() (all [][]string) {
				t.Helper()
				for i := range commits {
					all = append(all, dump(t, tbl, "--snapshot", strconv.Itoa(i+1)))
				}
				return all
			}
			history := travel()
			compactBeside(t, tbl, full)
			for i, rows := range travel() {
				requireRows(t, rows, history[i])
			}
		})
	}
}

// TestTimestampKeys shows that timestamps of every precision order, compare and come through as keys, whatever
// the time zone of the machine.
func TestTimestampKeys(t *testing.T) {
	var key []string
	fields := []field{{"v", "STRING"}}
	for i, typ := range timestampTypes {
		key = append(key, fmt.Sprintf("c%d", i))
		fields = append(fields, field{key[i], typ + " NOT NULL"})
	}
	original := createKeyed(t, strings.Join(key, ","), fields)
	moments := [][2]string{
		{"1969-12-31T23:59:59", "999999999"},
		{"1970-01-01T00:00:00", "000000000"},
		{"0001-01-01T00:00:00", "000000000"},
		{"0001-01-01T00:00:00", "000000001"},
		{"9999-12-31T23:59:59", "999999999"},
		{"1986-01-01T00:15:00", "000000255"},
		{"1986-01-01T00:15:00", "000000000"},
		{"1582-10-10T12:00:00", "123456789"},
		{"1986-01-01T00:15:00", "000000256"},
	}
	for version := range 3 {
		var rows []string
		for i, m := range moments {
			if i%3 != version {
				rows = append(rows, strings.Replace(timestampsAt(m[0], m[1]), "{", fmt.Sprintf(`{"v":"%d",`, version), 1))
			}
		}
		write(t, original, rows)
	}
	before := dump(t, original)
	byJava := original.clone(t)
	compactWithJava(t, byJava, full)
	for _, zone := range []string{"UTC", "Asia/Kathmandu"} {
		t.Run(zone, func(t *testing.T) {
			tbl := original.clone(t)
			mustCommitIn(t, tbl, zone)
			requireSameFiles(t, tbl, byJava)
			requireRows(t, dump(t, tbl), before)
		})
	}
}

// TestKeysOfAllTypes shows that keys are in the order that Java has them in, for every type that a key may
// have, and that equal keys, and only those, meet.
func TestKeysOfAllTypes(t *testing.T) {
	for typ, keys := range map[string][]string{
		"BOOLEAN":       {"false", "true"},
		"TINYINT":       {"-128", "-1", "0", "127"},
		"SMALLINT":      {"-32768", "-1", "0", "32767"},
		"INT":           {"-2147483648", "-1", "0", "256", "2147483647"},
		"BIGINT":        {"-9223372036854775808", "-1", "0", "4294967296", "9223372036854775807"},
		"FLOAT":         {`"-Inf"`, `"-1e+00"`, `"0e+00"`, `"1e-45"`, `"1e+00"`, `"+Inf"`},
		"DOUBLE":        {`"-Inf"`, `"-1e+00"`, `"0e+00"`, `"5e-324"`, `"1e+00"`, `"+Inf"`},
		"DECIMAL(9,2)":  {`"-9999999.99"`, `"-0.01"`, `"0.00"`, `"0.01"`, `"9999999.99"`},
		"DECIMAL(18,2)": {`"-9999999999999999.99"`, `"-0.01"`, `"0.00"`, `"0.01"`, `"9999999999999999.99"`},
		"DECIMAL(20,3)": {`"-12345678901234567.890"`, `"-0.001"`, `"0.000"`, `"0.256"`, `"12345678901234567.890"`},
		"DECIMAL(38,0)": {`"-99999999999999999999999999999999999999"`, `"-1"`, `"0"`, `"18446744073709551616"`},
		"DATE":          {`"0001-01-01"`, `"1969-12-31"`, `"1970-01-01"`, `"9999-12-31"`},
		"TIME(3)":       {`"00:00:00.000"`, `"00:00:00.001"`, `"23:59:59.999"`},
		"TIMESTAMP(9)": {
			`"1969-12-31T23:59:59.999999998"`, `"1969-12-31T23:59:59.999999999"`,
			`"1970-01-01T00:00:00.000000255"`, `"1970-01-01T00:00:00.000000256"`,
		},
		"TIMESTAMP_LTZ(9)": {
			`"1969-12-31T23:59:59.999999998Z"`, `"1969-12-31T23:59:59.999999999Z"`,
			`"1970-01-01T00:00:00.000000255Z"`, `"1970-01-01T00:00:00.000000256Z"`,
		},
		"CHAR(3)": {`"a  "`, `"aa "`, `"z  "`, `"é  "`},
		"STRING": {
			`""`, `" "`, `"a"`, `"a "`, `"a longer text than eight bytes"`, `"a longer text than eight bytes too"`, `"é"`,
			"\"\uFFFF\"", "\"\U0001F600\"",
		},
		"BYTES":         {`""`, `"00"`, `"0000"`, `"7f"`, `"80"`, `"ff"`, `"ff00"`},
		"VARBINARY(20)": {`"0000000000000000"`, `"000000000000000000"`, `"0000000000000080"`, `"ffffffffffffffff"`},
		"BINARY(2)":     {`"0000"`, `"007f"`, `"0080"`, `"8000"`, `"ffff"`},
	} {
		t.Run(typ, func(t *testing.T) {
			tbl := createKeyed(t, "k", []field{{"v", "STRING"}, {"k", typ + " NOT NULL"}})
			// Each key is in two of three runs.
			for version := range 3 {
				var rows []string
				for i, k := range keys {
					if i%3 != version {
						rows = append(rows, fmt.Sprintf(`{"v":"%d","k":%s}`, version, k))
					}
				}
				write(t, tbl, rows)
			}
			compactBeside(t, tbl, full)
			var want []string
			for i, k := range keys {
				newest := 2
				if i%3 == 2 {
					newest = 1
				}
				want = append(want, fmt.Sprintf(`{"v":"%d","k":%s}`, newest, k))
			}
			requireRows(t, dump(t, tbl, "--unsorted"), want)
		})
	}
}

// TestZerosAndNaNKeys shows that the two zeros are two keys, the negative one first, and NaN is one key, the last
// of all, as with newer Java versions. Java 1.4.2 takes the zeros for one key, and NaN for the key beside it,
// whatever that is; so it is asked only after the compaction, when it has nothing to compare.
func TestZerosAndNaNKeys(t *testing.T) {
	for _, typ := range []string{"FLOAT", "DOUBLE"} {
		t.Run(typ, func(t *testing.T) {
			tbl := createKeyed(t, "k", []field{{"k", typ + " NOT NULL"}, {"v", "STRING"}})
			for i, k := range []string{"0e+00", "NaN", "-0e+00", "1e+00", "NaN", "-0e+00"} {
				write(t, tbl, []string{fmt.Sprintf(`{"k":"%s","v":"%d"}`, k, i)})
			}
			mustCommit(t, tbl)
			requireRows(t, dump(t, tbl, "--unsorted"), []string{
				`{"k":"-0e+00","v":"5"}`, `{"k":"0e+00","v":"0"}`, `{"k":"1e+00","v":"3"}`, `{"k":"NaN","v":"4"}`,
			})
		})
	}
}

// TestMixedCompressions shows that files of all compressions merge into ones that are compressed as the table
// says for their level.
func TestMixedCompressions(t *testing.T) {
	tbl := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"v", "STRING"}, {"a", "ARRAY<STRING>"}},
		"file.compression.per.level", "5:lz4")
	for i, codec := range []string{"zstd", "lz4", "none", "snappy", "gzip"} {
		alter(t, tbl, fmt.Sprintf(`[{"op":"setOption","key":"file.compression","value":"%s"}]`, codec))
		rows := heavyRows(`{"k":%d,"v":"%s","a":["the same","the same","the same"]}`)
		for j := range rows {
			rows[j] = strings.Replace(rows[j], "the same", codec, 1)
		}
		write(t, tbl, rows[100*i:200+100*i])
	}
	before := dump(t, tbl)
	clone := compactBeside(t, tbl, full)
	checkRows(t, readAll(t, []reading{{table: tbl}}), 0, before)
	requireRows(t, codecs(t, tbl), codecs(t, clone))
}

var codecMember = regexp.MustCompile(`"codec" ?: ?"[^"]*"`)

// codecs are the codecs of the columns of the only live file of a table.
func codecs(t *testing.T, tbl table) []string {
	t.Helper()
	file, err := listTo(t, tbl)
	if err != nil {
		t.Fatal(err)
	}
	live := readList(t, file).Files
	if len(live) != 1 {
		t.Fatalf("%d live files, want one", len(live))
	}
	out := filepath.Join(t.TempDir(), "inspect.json")
	java(t, javaStep{"inspect", "--file", filepath.Join(tbl.path, "bucket-0", live[0].FileName), "--out", out})
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	all := codecMember.FindAllString(string(data), -1)
	if len(all) == 0 {
		t.Errorf("no codecs in %s", data)
	}
	return all
}

// TestFilterPicksPartitions shows that a filter picks whole partitions of a table with a primary key, those
// with just the value it names, and that one on another column is refused before anything is written.
func TestFilterPicksPartitions(t *testing.T) {
	tbl := createTable(t, tableSpec{
		Fields:        []field{{"d", "STRING NOT NULL"}, {"k", "INT NOT NULL"}, {"v", "INT"}},
		PartitionKeys: []string{"d"}, PrimaryKeys: []string{"d", "k"}, Options: map[string]string{"bucket": "1"},
	})
	for i := range 3 {
		var rows []string
		for _, d := range []string{"1", "01", "v=1"} {
			rows = append(rows, fmt.Sprintf(`{"d":"%s","k":1,"v":%d}`, d, i), fmt.Sprintf(`{"d":"%s","k":%d,"v":1}`, d, 10+i))
		}
		write(t, tbl, rows)
	}
	rows, before := dump(t, tbl), hashTree(t, tbl)
	for _, filter := range []string{"v=1", "k=1 AND d='1'"} {
		if o := compact(t, tbl, "--where", filter); o.code != exitUsage || o.result.Status != "failed" {
			t.Errorf("%s: %v, want exit %d", filter, o, exitUsage)
		}
	}
	requireSameTree(t, before, hashTree(t, tbl))

	clone := tbl.clone(t)
	java(t, step("compact", clone, "--full", "--no-expire", "--where", "d=1", "--out", os.DevNull))
	mustCommit(t, tbl, "--where", "d='1'")
	requireSameFiles(t, tbl, clone)
	requireRows(t, dump(t, tbl), rows)
	requireCount(t, dump(t, tbl, "--raw"), `{"_part":"d=1","_bucket":0,"_level":5`, 4)
	requireCount(t, dump(t, tbl, "--raw"), `{"_part":"d=01","_bucket":0,"_level":0`, 6)
}

// TestDataInOtherFolders shows that files in a folder of their own below the table are found, and that merged
// ones go there; files outside of the table are refused, whether the table still has the option or not.
func TestDataInOtherFolders(t *testing.T) {
	fields := []field{{"k", "INT NOT NULL"}, {"v", "STRING"}}
	versions := [][]string{{`{"k":1,"v":"a"}`, `{"k":2,"v":"a"}`}, {`{"k":1,"v":"b"}`}, {`{"_kind":"-D","k":2,"v":"a"}`}}
	t.Run("below the table", func(t *testing.T) {
		tbl := createKeyed(t, "k", fields, "data-file.path-directory", "data")
		write(t, tbl, versions...)
		compactBeside(t, tbl, full)
		outside, err := filepath.Glob(filepath.Join(tbl.path, "bucket-*"))
		if err != nil || len(outside) > 0 {
			t.Errorf("%v are not in the folder data (%v)", outside, err)
		}
	})
	t.Run("outside of the table", func(t *testing.T) {
		x, y := t.TempDir(), t.TempDir()
		tbl := createKeyed(t, "k", fields,
			"data-file.external-paths", "file://"+x, "data-file.external-paths.strategy", "round-robin")
		write(t, tbl, versions[0])
		requireRefused(t, tbl, "data-file.external-paths")
		alter(t, tbl, `[{"op":"setOption","key":"data-file.external-paths","value":"file://`+y+`"}]`)
		write(t, tbl, versions[1])
		requireRefused(t, tbl, "data-file.external-paths")
		alter(t, tbl, `[{"op":"removeOption","key":"data-file.external-paths"}]`)
		alter(t, tbl, `[{"op":"removeOption","key":"data-file.external-paths.strategy"}]`)
		write(t, tbl, versions[2])
		requireRefused(t, tbl, "lies outside of the table, at file:"+y)
		requireRows(t, dump(t, tbl), []string{`{"k":1,"v":"b"}`})
	})
}

// requireRefused fails the test unless tablectl refuses a table, for the reason, and leaves it alone.
func requireRefused(t *testing.T, tbl table, why string) {
	t.Helper()
	before := hashTree(t, tbl)
	if o := compact(t, tbl); o.code != exitUnsupported || !strings.Contains(o.String(), why) {
		t.Errorf("%v, want exit %d because of %s", o, exitUnsupported, why)
	}
	requireSameTree(t, before, hashTree(t, tbl))
}

// pagesV1 and pagesV2 are ways in which Java writes pages, of the two versions of them.
var (
	pagesV1 = []map[string]string{
		{"file.compression": "zstd", "parquet.enable.dictionary": "true"},
		{"file.compression": "none", "parquet.enable.dictionary": "false"},
		{"file.compression": "lz4", "parquet.enable.dictionary": "true", "parquet.dictionary.page.size": "2048"},
	}
	pagesV2 = []map[string]string{
		{"file.compression": "snappy", "parquet.enable.dictionary": "true", "parquet.writer.version": "v2"},
		{"file.compression": "zstd", "parquet.enable.dictionary": "false"},
	}
)

// smallPages make pages of a kilobyte, looked at every few rows.
var smallPages = []string{
	"parquet.page.size", "1024", "parquet.page.size.row.check.min", "10", "parquet.block.size", "262144",
}

// writeInPages writes each batch as a commit, in its own way.
func writeInPages(t *testing.T, tbl table, ways []map[string]string, batches ...[]string) {
	t.Helper()
	for i, rows := range batches {
		var changes []string
		for k, v := range ways[i] {
			changes = append(changes, fmt.Sprintf(`{"op":"setOption","key":"%s","value":"%s"}`, k, v))
		}
		alter(t, tbl, "["+strings.Join(changes, ",")+"]")
		write(t, tbl, rows)
	}
}

// TestNestedValuesMerge shows that lists and maps in lists and maps, null, empty, holding a null, or of three
// elements, stay with their rows where versions from many small pages are merged.
func TestNestedValuesMerge(t *testing.T) {
	for _, engine := range []string{"deduplicate", "partial-update"} {
		t.Run(engine, func(t *testing.T) {
			tbl := createKeyed(t, "k", []field{
				{"k", "INT NOT NULL"},
				{"ar", "ARRAY<ROW<x INT, y STRING>>"},
				{"m", "MAP<STRING, ARRAY<INT>>"},
				{"aa", "ARRAY<ARRAY<STRING>>"},
			}, append(smallPages, "merge-engine", engine)...)
			shapes := func(n int, format string) string { // of a list or map
				return []string{"null", "[]", "[null]", fmt.Sprintf(format, n)}[n%4]
			}
			const rowsEach = 1000
			var batches [][]string
			for version := range pagesV1 {
				var rows []string
				for i := range rowsEach {
					k := version*rowsEach/4 + i
					n := 7*version + i
					rows = append(rows, fmt.Sprintf(`{"k":%d,"ar":%s,"m":%s,"aa":%s}`, k,
						shapes(n, `[{"x":%[1]d,"y":"first %[1]d"},{"x":null,"y":null},{"x":-%[1]d,"y":"third"}]`),
						strings.Replace(shapes(n/4, `[["a %[1]d",[%[1]d,null,1]],["b",null],["c",[]]]`), "[null]", `[["d",null]]`, 1),
						shapes(n/16, `[["a %[1]d","b",null],[],null,["%[1]d"]]`)))
				}
				batches = append(batches, rows)
			}
			writeInPages(t, tbl, pagesV1, batches...) // Java does not read lists from its own pages of version 2
			before := dump(t, tbl)
			compactBeside(t, tbl, full)
			checkRows(t, readAll(t, []reading{{table: tbl}}), 0, before)
		})
	}
}

// TestValuesMergeOverPages shows that values of many types come through a merge of many rows from files that
// were encoded in different ways. Java is not asked what it reads from its own pages of version 2: it does not
// put texts together again, and the Parquet library of tablectl has no wide decimals there.
func TestValuesMergeOverPages(t *testing.T) {
	const rowsEach = 20_000
	for name, ways := range map[string][]map[string]string{
		"version 1":     pagesV1,
		"both versions": slices.Concat(pagesV1[:1], pagesV2),
	} {
		t.Run(name, func(t *testing.T) {
			fields := []field{
				{"k", "BIGINT NOT NULL"},
				{"s", "STRING"},
				{"b", "BYTES"},
				{"d9", "DECIMAL(9,2)"},
				{"d18", "DECIMAL(18,3)"},
				{"c", "CHAR(5)"},
				{"f", "BINARY(4)"},
				{"n", "INT"},
				{"ts", "TIMESTAMP(6)"},
				{"few", "STRING"},
			}
			wide := ""
			if name == "version 1" {
				fields = append(fields, field{"d38", "DECIMAL(38,5)"})
				wide = `,"d38":"%[5]s%[8]d%015[8]d.%05[12]d"`
			}
			format := `{"k":%d,"s":"%d %x","b":"%016x","d9":"%s%d.%02d","d18":"%[5]s%[8]d.%03[9]d","c":"%05[7]d",` +
				`"f":"%08[10]x","n":%[5]s%[11]d,"ts":"2024-02-29T12:34:56.%06[12]d000","few":"one of %[13]d"` + wide + "}"
			newest := map[int]string{}
			var batches [][]string
			for version := range ways {
				random := rand.New(rand.NewPCG(3, uint64(version)))
				rows := make([]string, rowsEach)
				for i := range rows {
					k, x := version*7+i*(version+1), random.Uint64()
					sign := []string{"", "-"}[x>>63]
					rows[i] = fmt.Sprintf(format, k, version, x>>(x%64), x, sign, 1+x%1_000_000, x%100, 1+x%100_000_000_000_000,
						x%1000, uint32(x), 1+x%2_000_000_000, x%100_000, x%5)
					newest[k] = rows[i]
				}
				batches = append(batches, rows)
			}
			tbl := createKeyed(t, "k", fields, smallPages...)
			writeInPages(t, tbl, ways, batches...)
			if name == "version 1" {
				compactBeside(t, tbl, full)
			} else {
				mustCommit(t, tbl)
			}
			checkRows(t, readAll(t, []reading{{table: tbl}}), 0, slices.Sorted(maps.Values(newest)))
		})
	}
}

// TestLargeFileIsRewrittenWhole shows that of a file that is larger than the target size, and has several row
// groups, no row is lost when it is merged with small ones or rewritten alone.
func TestLargeFileIsRewrittenWhole(t *testing.T) {
	original := createKeyed(t, "k", []field{{"k", "INT NOT NULL"}, {"v", "STRING"}},
		"parquet.block.size", "16384", "parquet.page.size", "2048")
	write(t, original, textRows(1000, 3600, `{"k":%d,"v":"%s"}`))
	file, err := listTo(t, original)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Files []struct{ FileSize int } }
	readJSON(t, file, &list)
	size := list.Files[0].FileSize * 10 / 11
	alter(t, original, fmt.Sprintf(`[{"op":"setOption","key":"target-file-size","value":"%d b"}]`, size))

	for name, small := range map[string][][]string{
		"merged": {{`{"k":1100,"v":"new"}`}, {`{"_kind":"-D","k":2100,"v":""}`}, {`{"k":4599,"v":"last"}`}},
		"alone":  {{`{"k":1,"v":"before"}`}, {`{"k":2,"v":"before"}`}, {`{"k":7000,"v":"behind"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			tbl := original.clone(t)
			alter(t, tbl, `[{"op":"setOption","key":"compaction.force-rewrite-all-files","value":"true"}]`)
			write(t, tbl, small...)
			before := dump(t, tbl)
			result := mustCommit(t, tbl)
			requireRows(t, dump(t, tbl), before)
			if result.FilesRemoved != 4 || result.RowsWritten != int64(len(before)) {
				t.Errorf("%d files became %d rows, want all 4 files and %d rows",
					result.FilesRemoved, result.RowsWritten, len(before))
			}
		})
	}
}
