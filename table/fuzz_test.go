package table

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
)

// partitions are two rows of everyType: all null, and a value in every column.
func partitions(t testing.TB) [][]types.Value {
	s := everyType()
	full := cells{
		"c": "abc", "vc": "x", "n": "1", "nn": "2", "ti": "3", "si": "4", "bi": "5", "f": "1.5", "g": "2.5", "dec": "1.50", "big": "7",
		"b": "true", "d": "2024-02-29", "tm": "01:02:03", "ts": "2024-02-29", "ts9": "2024-02-29", "lz": "2024-02-29", "bin": "00ff", "Date": "2024-02-29",
		"p": "a", "q": "", "in": "x", "a`b": "é", "ünï": "\\", "group by": "%",
	}
	return [][]types.Value{row(t, s, nil), row(t, s, full)}
}

// checkFilter checks what holds for every filter, whatever it is made of.
func checkFilter(t *testing.T, text string, f Filter, err error, again func() (Filter, error)) {
	if err != nil {
		if !errors.Is(err, ErrInvalid) {
			t.Fatalf("%q: %v does not wrap ErrInvalid", text, err)
		}
		if strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Fatalf("the message has a control character: %q", err)
		}
		if len(f.terms) > 0 {
			t.Fatalf("%q: %v comes with a filter", text, err)
		}
		return
	}
	if len(f.terms) == 0 || f.String() != text {
		t.Fatalf("%q prints as %q, empty %v", text, f, len(f.terms) == 0)
	}
	second, err := again()
	if err != nil {
		t.Fatalf("%q: the second time, %v", text, err)
	}
	for _, p := range partitions(t) {
		if both := f.And(second); f.Matches(p) != second.Matches(p) || both.Matches(p) != f.Matches(p) {
			t.Fatalf("%q does not match the same twice", text)
		}
	}
}

func FuzzParseWhere(f *testing.F) {
	for _, c := range whereCases {
		f.Add(c.where)
	}
	for _, seed := range []string{"", "(", "'", "`", "p = '\xff'", "p LIKE '\\", "b = '\r'", "NOT ((p IN (a,b,NULL)))", "d BETWEEN DATE '2024-01-01' AND x", "\x00", strings.Repeat("(", 300)} {
		f.Add(seed)
	}
	s := everyType()
	f.Fuzz(func(t *testing.T, where string) {
		filter, err := ParseWhere(s, where)
		checkFilter(t, where, filter, err, func() (Filter, error) { return ParseWhere(s, where) })
		if err != nil {
			return
		}
		// A predicate and its opposite never both select, and null cells decide that
		// there is no third way only for IS NULL.
		opposite, err := ParseWhere(s, "NOT ("+where+")")
		if err != nil {
			return // nests too deep, or is too long
		}
		for _, p := range partitions(t) {
			if filter.Matches(p) && opposite.Matches(p) {
				t.Fatalf("both %q and its opposite select %v", where, p)
			}
		}
	})
}

func FuzzParseFilterJSON(f *testing.F) {
	for _, seed := range []string{
		`{"method":"equal","field":"p","literals":["a"]}`, `{"method":"in","field":"n","literals":[1,2]}`, `{"method":"isNull","field":"d"}`,
		`{"method":"and","children":[{"method":"like","field":"p","literals":["a%"]},{"method":"notBetween","field":"g","literals":[1,2e3]}]}`,
		`{"method":"or","children":[]}`, `{"method":"equal","field":"b","literals":[true]}`, `{"method":"equal","field":"p","literals":["\ud800"]}`,
		`[]`, `null`, `{`, "{\n\"method\":\"equal\",\n\"field\":\"n\",\"literals\":[\n\"x\"]}", `{"method":"equal","field":"dec","literals":["1.5"]}`, `{"method":"startsWith","field":"c","literals":[""]}`,
	} {
		f.Add(seed)
	}
	s := everyType()
	f.Fuzz(func(t *testing.T, dict string) {
		filter, err := ParseFilterJSON(s, dict)
		checkFilter(t, dict, filter, err, func() (Filter, error) { return ParseFilterJSON(s, dict) })
	})
}

func FuzzParseSchema(f *testing.F) {
	for _, data := range schemaFiles(f) {
		f.Add(data)
	}
	for _, c := range schemaErrors {
		f.Add([]byte(strings.ReplaceAll(c.schema, "FIELDS", `[{"id": 0, "name": "a", "type": "INT"}]`)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSchema(data)
		if err != nil {
			return
		}
		names, ids := map[string]bool{}, map[int]bool{}
		for _, field := range s.Fields {
			if names[field.Name] || ids[field.ID] || field.ID < 0 {
				t.Fatalf("column %q or id %d twice, or negative", field.Name, field.ID)
			}
			names[field.Name], ids[field.ID] = true, true
			if field.Type.String() == "" || !field.Type.Same(field.Type) {
				t.Fatalf("column %q has the type %v", field.Name, field.Type)
			}
		}
		partition := s.PartitionTypes()
		for i, k := range s.PartitionKeys {
			if !names[k] || !partition[i].Scalar() {
				t.Fatalf("partition key %q has the type %v", k, partition[i])
			}
		}
		if s.Options == nil || s.Version < 1 || s.Version > currentSchemaVersion {
			t.Fatalf("version %d, options %v", s.Version, s.Options)
		}
	})
}

// FuzzOptions has options as a schema file holds them, key and value by turns.
func FuzzOptions(f *testing.F) {
	for _, o := range []string{
		"bucket\n-1", "target-file-size\n128 mb\nbucket\n4", "compaction.min.file-num\n99999999999999999999", "target-file-size\n9223372036854775807 tb",
		"commit.timeout\n9999999999 d", "metadata.stats-mode\ntruncate(2147483648)", "data-file.path-directory\n../..", "partition.default-name\n../x",
		"data-file.prefix\n/etc/", "fields.a.aggregate-function\nsum", "file.compression.per.level\n0:lz4,1:zstd", "num-levels\n2147483647",
		"num-sorted-run.compaction-trigger\n-1", "file-index.bloom-filter.columns\na,b,,", "snapshot.time-retained\n1e9 h",
	} {
		f.Add(o)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stored := map[string]string{}
		parts := strings.Split(text, "\n")
		for i := 0; i+1 < len(parts); i += 2 {
			stored[parts[i]] = parts[i+1]
		}
		o, err := ParseOptions(stored, nil)
		if err != nil {
			return
		}
		// What is added up, multiplied or doubled must have room for it.
		for name, n := range map[string]int64{
			"target-file-size": o.TargetFileSize, "page size": o.PageSize, "block size": o.BlockSize, "open file cost": o.OpenFileCost,
			"manifest target size": o.ManifestTargetSize, "manifest full threshold": o.ManifestFullThreshold, "timeout": o.CommitTimeoutMillis,
		} {
			if n < 0 || n > 1<<61 {
				t.Fatalf("%s is %d", name, n)
			}
		}
		if strings.ContainsAny(o.DataFilePrefix, "/\\\x00") || !safePath("x/"+o.DataFilePath) && o.DataFilePath != "" {
			t.Fatalf("data files %q in the folder %q", o.DataFilePrefix, o.DataFilePath)
		}
	})
}

// FuzzBucketDir has partitions of any bytes: their folder is below the table and as deep
// as the partition has columns, whatever the values are.
func FuzzBucketDir(f *testing.F) {
	columns := []types.Field{
		{ID: 0, Name: "s", Type: types.Type{Kind: types.Varchar, Length: types.MaxLength}},
		{ID: 1, Name: "../x=", Type: types.Type{Kind: types.Varbinary, Length: types.MaxLength}},
	}
	tbl := &Table{
		Location: "/warehouse/db.db/t", Options: Options{DefaultPartition: "__DEFAULT_PARTITION__"},
		Schema: &Schema{Fields: columns, PartitionKeys: []string{"s", "../x="}},
	}
	for _, values := range [][2]string{{"a", "b"}, {"..", "."}, {"a/b", "../../etc"}, {"\x00", "%2F"}, {"", " "}, {"s=1/bucket-0", "a longer text with / and \\ and .."}} {
		row := binrow.Encode(tbl.Schema.PartitionTypes(), []types.Value{{Bytes: []byte(values[0])}, {Bytes: []byte(values[1])}})
		f.Add(row, 0, "data-1.parquet")
		f.Add(row[:len(row)-1], -2, "../data-1.parquet")
	}
	f.Fuzz(func(t *testing.T, partition []byte, bucket int, name string) {
		p, err := tbl.FilePath(partition, bucket, name)
		if err != nil {
			return
		}
		rest, below := strings.CutPrefix(p, tbl.Location+"/")
		parts := strings.Split(rest, "/")
		if !below || len(parts) != 4 || !strings.HasPrefix(parts[0], "s=") || !strings.HasPrefix(parts[1], "..%2Fx%3D=") || parts[3] != name || !safePath(rest) {
			t.Fatalf("partition %x, file %q: %q", partition, name, p)
		}
	})
}
