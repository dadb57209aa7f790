package table

import (
	"path"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
)

// tableOf is a table that is partitioned by columns such as "p STRING".
func tableOf(t rapid.TB, options map[string]string, columns ...string) *Table {
	t.Helper()
	s := &Schema{Version: 3, Options: options}
	for i, c := range columns {
		name, text, _ := strings.Cut(c, " ")
		typ, err := types.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Fields = append(s.Fields, types.Field{ID: i, Name: name, Type: typ})
		s.PartitionKeys = append(s.PartitionKeys, name)
	}
	o, err := ParseOptions(options, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Table{Location: "/wh/db.db/t", Schema: s, Options: o}
}

func text(s string) types.Value { return types.Value{Bytes: []byte(s)} }

func (t *Table) dirOf(tb rapid.TB, bucket int, values ...types.Value) string {
	tb.Helper()
	dir, err := t.BucketDir(binrow.Encode(t.Schema.PartitionTypes(), values), bucket)
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

func TestEscapePath(t *testing.T) {
	for value, want := range map[string]string{
		"plain": "plain", "a b": "a b", "ünï-日本-😀": "ünï-日本-😀", "~!@$&()_+,.;<>|`": "~!@$&()_+,.;<>|`", "\u0085\u00a0\u2028": "\u0085\u00a0\u2028",
		"a/b": "a%2Fb", `a\b`: "a%5Cb", "a=b": "a%3Db", "100%": "100%25", "%2F": "%252F", "../x": "..%2Fx", "/": "%2F", "a:b?c*d": "a%3Ab%3Fc%2Ad",
		`"#'`: "%22%23%27", "[]{}^": "%5B%5D%7B%7D%5E", "\x00": "%00", "\x01\x1f\x7f": "%01%1F%7F", "\n\r\t": "%0A%0D%09", " \x1e\x1f": " %1E%1F",
	} {
		if got := escapePath(value); got != want {
			t.Errorf("%q is written as %q, want %q", value, got, want)
		}
	}
	for c := range 128 {
		escaped := c < 0x20 || c == 0x7f || strings.ContainsRune(`"#%'*/:=?\{}[]^`, rune(c))
		if got := escapePath("a" + string(rune(c))); (got == "a"+string(rune(c))) == escaped {
			t.Errorf("the character %#x is written as %q", c, got)
		}
	}
}

// hostile are partition values that try to be more than one segment of a path.
var hostile = []string{
	"..", ".", "../..", "../../../etc/passwd", "/etc/passwd", "a/b", "a/../b", "/", "//", `..\..`, "%2e%2e", "%2E%2E%2F", "%", "=", "p=a", "\x00", "a\x00/../b",
	"ünï", "日本/東京", "😀", "\u2215", "\uff0f", "x\n/y", "bucket-0", "snapshot", "~", "$branch_x", "file://x", "..;/", ". .", "...", "\xff\xfe", strings.Repeat("../", 100),
}

func TestHostilePartitions(t *testing.T) {
	check := func(tb rapid.TB, tbl *Table, prefix, value string) {
		dir := tbl.dirOf(tb, 3, text(value))
		rest, ok := strings.CutPrefix(dir, prefix+"/p=")
		segment, isBucket := strings.CutSuffix(rest, "/bucket-3")
		if !ok || !isBucket || segment == "" || strings.ContainsAny(segment, "/\x00") || path.Clean(dir) != dir {
			tb.Fatalf("%q leads to %q", value, dir)
		}
		file, err := tbl.FilePath(binrow.Encode(tbl.Schema.PartitionTypes(), []types.Value{text(value)}), 3, "data-1.parquet")
		if err != nil || file != dir+"/data-1.parquet" {
			tb.Fatalf("%q: its file is %q, %v", value, file, err)
		}
	}
	plain := tableOf(t, nil, "p STRING")
	under := tableOf(t, map[string]string{"data-file.path-directory": "data/x", "partition.legacy-name": "false"}, "p STRING")
	for _, value := range hostile {
		check(t, plain, "/wh/db.db/t", value)
		check(t, under, "/wh/db.db/t/data/x", value)
		named := tableOf(t, map[string]string{"partition.default-name": value}, "p STRING")
		check(t, named, "/wh/db.db/t", "")
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(rt, plain, "/wh/db.db/t", string(rapid.SliceOf(rapid.Byte()).Draw(rt, "value")))
	})

	// The names of columns are as hostile.
	for _, name := range hostile {
		s := &Schema{PartitionKeys: []string{name}, Fields: []types.Field{{Name: name, Type: types.Type{Kind: types.Int}}}}
		tbl := &Table{Location: "/wh/db.db/t", Schema: s, Options: plain.Options}
		dir := tbl.dirOf(t, 0, types.Value{Int: 1})
		if path.Clean(dir) != dir || strings.Count(dir, "/") != strings.Count("/wh/db.db/t/p=1/bucket-0", "/") || !strings.HasPrefix(dir, "/wh/db.db/t/") {
			t.Errorf("the column %q leads to %q", name, dir)
		}
	}
}

// TestDistinctPartitions makes sure that two values share a folder only where
// the reference puts them in one: the default partition.
func TestDistinctPartitions(t *testing.T) {
	tbl := tableOf(t, nil, "p STRING")
	values := append([]string{"a", "A", "a ", " a", "a%20", "%2F", "/", "%252F"}, hostile...)
	seen := map[string]string{}
	for _, v := range values {
		dir := tbl.dirOf(t, 0, text(v))
		if other, ok := seen[dir]; ok && other != v {
			t.Errorf("%q and %q share %s", v, other, dir)
		}
		seen[dir] = v
	}
}

func TestPartitionNames(t *testing.T) {
	null := types.NullValue
	literal := func(typ, s string) types.Value {
		parsed, err := types.Parse(typ)
		if err != nil {
			t.Fatal(err)
		}
		v, err := types.ParseLiteral(parsed, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		typ          string
		value        types.Value
		legacy, name string
	}{
		{"STRING", text("a"), "a", "a"},
		{"STRING", text("__DEFAULT_PARTITION__"), "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"},
		{"STRING", null, "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"},
		{"STRING", text(""), "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"},
		{"STRING", text(" \t\n\v\f\r\u2003\u3000"), "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"},
		{"STRING", text("\x1c\x1d\x1e\x1f \u2028\u2029\u1680"), "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"},
		{"STRING", text("\u00a0"), "\u00a0", "\u00a0"},
		{"STRING", text("\u2007\u202f"), "\u2007\u202f", "\u2007\u202f"},
		{"STRING", text("\u0085"), "\u0085", "\u0085"},
		{"STRING", text(" a "), " a ", " a "},
		{"CHAR(5)", text("ab "), "ab ", "ab "},
		{"INT", literal("INT", "-5"), "-5", "-5"},
		{"INT", null, "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"},
		{"TINYINT", literal("TINYINT", "-128"), "-128", "-128"},
		{"BIGINT", literal("BIGINT", "9223372036854775807"), "9223372036854775807", "9223372036854775807"},
		{"BOOLEAN", literal("BOOLEAN", "true"), "true", "true"},
		{"DECIMAL(10, 2)", literal("DECIMAL(10, 2)", "12.5"), "12.50", "12.50"},
		{"DECIMAL(30, 0)", literal("DECIMAL(30, 0)", "-100000000000000000000"), "-100000000000000000000", "-100000000000000000000"},
		{"FLOAT", types.Value{Float: float64(float32(0.1))}, "0.1", "0.1"},
		{"FLOAT", types.Value{Float: 1e10}, "1.0E10", "1.0E10"},
		{"DOUBLE", types.Value{Float: 3}, "3.0", "3.0"},
		{"DOUBLE", types.Value{Float: -1e-5}, "-1.0E-5", "-1.0E-5"},
		{"DATE", literal("DATE", "2024-02-29"), "19782", "2024-02-29"},
		{"DATE", literal("DATE", "1969-12-31"), "-1", "1969-12-31"},
		{"DATE", null, "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__"},
		{"TIME", literal("TIME", "01:02:03"), "3723000", "01%3A02%3A03"},
		{"TIME(3)", literal("TIME(3)", "01:02:03.004"), "3723004", "01%3A02%3A03.004"},
		{"TIMESTAMP(3)", literal("TIMESTAMP(3)", "2024-02-29 00:00:00"), "2024-02-29T00%3A00", "2024-02-29 00%3A00%3A00.000"},
		{"TIMESTAMP(3)", literal("TIMESTAMP(3)", "2024-02-29 01:02:03.004"), "2024-02-29T01%3A02%3A03.004", "2024-02-29 01%3A02%3A03.004"},
		{"TIMESTAMP(0)", literal("TIMESTAMP(0)", "2024-02-29 01:02:03"), "2024-02-29T01%3A02%3A03", "2024-02-29 01%3A02%3A03"},
		{"TIMESTAMP(6)", literal("TIMESTAMP(6)", "2024-02-29 01:02:00.5"), "2024-02-29T01%3A02%3A00.500", "2024-02-29 01%3A02%3A00.500000"},
		{"TIMESTAMP(9)", literal("TIMESTAMP(9)", "1969-12-31 23:59:59.000000001"), "1969-12-31T23%3A59%3A59.000000001", "1969-12-31 23%3A59%3A59.000000001"},
		{"TIMESTAMP(6)", literal("TIMESTAMP(6)", "1969-12-31 23:59:59.000001"), "1969-12-31T23%3A59%3A59.000001", "1969-12-31 23%3A59%3A59.000001"},
	} {
		for options, want := range map[string]string{"": c.legacy, "false": c.name} {
			o := map[string]string{}
			if options != "" {
				o["partition.legacy-name"] = options
			}
			tbl := tableOf(t, o, "p "+c.typ)
			if got := tbl.dirOf(t, 0, c.value); got != "/wh/db.db/t/p="+want+"/bucket-0" {
				t.Errorf("%s with partition.legacy-name=%s: got %s, want p=%s", c.typ, options, got, want)
			}
		}
	}
}

// TestLocalTimePartitions names partitions by the clock of the place where the
// process runs, also before and after it is set.
func TestLocalTimePartitions(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	local := time.Local
	time.Local = berlin
	defer func() { time.Local = local }()
	for _, c := range []struct{ at, legacy, name string }{
		{"2024-03-31T00:59:59.5Z", "2024-03-31T00%3A59%3A59.500", "2024-03-31 01%3A59%3A59.500"},
		{"2024-03-31T01:00:00Z", "2024-03-31T01%3A00", "2024-03-31 03%3A00%3A00.000"},
		{"1969-12-31T23:59:59.999Z", "1969-12-31T23%3A59%3A59.999", "1970-01-01 00%3A59%3A59.999"},
	} {
		at, err := time.Parse(time.RFC3339Nano, c.at)
		if err != nil {
			t.Fatal(err)
		}
		for options, want := range map[string]string{"true": c.legacy, "false": c.name} {
			tbl := tableOf(t, map[string]string{"partition.legacy-name": options}, "p TIMESTAMP(3) WITH LOCAL TIME ZONE")
			if got := tbl.dirOf(t, 0, types.Value{Int: at.UnixMilli()}); got != "/wh/db.db/t/p="+want+"/bucket-0" {
				t.Errorf("%s with partition.legacy-name=%s: got %s, want p=%s", c.at, options, got, want)
			}
		}
	}
}

func TestBucketDirs(t *testing.T) {
	plain := tableOf(t, nil)
	if got := plain.dirOf(t, 0); got != "/wh/db.db/t/bucket-0" {
		t.Errorf("without partitions: %s", got)
	}
	if got := plain.dirOf(t, PostponeBucket); got != "/wh/db.db/t/bucket-postpone" {
		t.Errorf("the postpone bucket: %s", got)
	}
	two := tableOf(t, map[string]string{"partition.default-name": "nix", "data-file.path-directory": "d"}, "b STRING", "a=c INT")
	if got := two.dirOf(t, 12, text("x"), types.NullValue); got != "/wh/db.db/t/d/b=x/a%3Dc=nix/bucket-12" {
		t.Errorf("two partition columns: %s", got)
	}
	branch := &Table{Location: "/wh/db.db/t", Branch: "b1", Schema: plain.Schema, Options: plain.Options}
	if got := branch.dirOf(t, 0); got != "/wh/db.db/t/bucket-0" {
		t.Errorf("of a branch: %s", got)
	}
	if got := branch.SnapshotPath(7); got != "/wh/db.db/t/branch/branch-b1/snapshot/snapshot-7" {
		t.Errorf("snapshot of a branch: %s", got)
	}
	if got := branch.SchemaDir(); got != "/wh/db.db/t/branch/branch-b1/schema" {
		t.Errorf("schemas of a branch: %s", got)
	}
	if got, err := branch.ManifestPath("manifest-1"); got != "/wh/db.db/t/manifest/manifest-1" || err != nil {
		t.Errorf("manifest of a branch: %s, %v", got, err)
	}
	if got := plain.SnapshotPath(7); got != "/wh/db.db/t/snapshot/snapshot-7" {
		t.Errorf("snapshot: %s", got)
	}

	for _, partition := range [][]byte{nil, {0, 0, 0, 9}, binrow.Empty(), binrow.Encode(two.Schema.PartitionTypes()[:1], []types.Value{text("x")})} {
		if dir, err := two.BucketDir(partition, 0); err == nil {
			t.Errorf("partition %x leads to %s", partition, dir)
		}
		if file, err := two.FilePath(partition, 0, "f"); err == nil {
			t.Errorf("a file of partition %x is %s", partition, file)
		}
	}
}

func TestPartitionName(t *testing.T) {
	tbl := tableOf(t, nil, "d DATE", "p STRING", "n INT")
	date, _ := types.ParseLiteral(types.Type{Kind: types.Date}, "2024-02-29")
	for _, c := range []struct {
		values []types.Value
		want   string
	}{
		{[]types.Value{date, text("a/b"), {Int: 1}}, "d=2024-02-29,p=a/b,n=1"},
		{[]types.Value{types.NullValue, text(""), types.NullValue}, "d=null,p=,n=null"},
	} {
		if got := tbl.PartitionName(binrow.Encode(tbl.Schema.PartitionTypes(), c.values)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if got := tableOf(t, nil).PartitionName(binrow.Empty()); got != "" {
		t.Errorf("without partitions: %q", got)
	}
	if got := tbl.PartitionName([]byte{1, 2}); got != "0102" {
		t.Errorf("of bytes that are no row: %q", got)
	}
}

// TestNamesFromMetadata checks the names that snapshots and manifests hold.
func TestNamesFromMetadata(t *testing.T) {
	tbl := tableOf(t, nil)
	for _, name := range []string{
		"", ".", "..", "../x", "../../etc/passwd", "/etc/passwd", "a/b", "a/", "./a", "a\x00", `a\b`, `..\x`, "\x00",
	} {
		if p, err := tbl.ManifestPath(name); err == nil || !strings.Contains(err.Error(), "is not a file name") || p != "" {
			t.Errorf("manifest %q leads to %q, %v", name, p, err)
		}
		if p, err := tbl.FilePath(binrow.Empty(), 0, name); err == nil || !strings.Contains(err.Error(), "is not a file name") || p != "" {
			t.Errorf("data file %q leads to %q, %v", name, p, err)
		}
	}
	for _, name := range []string{"manifest-6c353cf2-0", "a b", "..x", "x..", ".x.tmp", "ü", "%2F", "a:b"} {
		if p, err := tbl.ManifestPath(name); err != nil || p != "/wh/db.db/t/manifest/"+name {
			t.Errorf("manifest %q leads to %q, %v", name, p, err)
		}
	}
}
