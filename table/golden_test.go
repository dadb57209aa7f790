package table

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tablectl/internal/types"
)

var update = flag.Bool("update", false, "rewrite the expected texts in testdata")

// More random cases than rapid's 100, unless the command line says otherwise.
func init() {
	if err := flag.Set("rapid.checks", "1500"); err != nil {
		panic(err)
	}
}

// golden runs the cases of a file: a line is an input, and the line behind it,
// with a tab in front, is what output makes of it. Lines that begin with # and
// empty lines stay as they are.
func golden(t *testing.T, name string, output func(input string) string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	var out []string
	cases := 0
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "\t"):
			continue // belongs to the line before it
		case line == "" || strings.HasPrefix(line, "#"):
			out = append(out, line)
			continue
		}
		cases++
		got := "\t" + output(line)
		if strings.ContainsAny(got, "\n\r") {
			t.Errorf("%s:%d: %s: the message has several lines: %q", file, i+1, line, got)
		}
		want := ""
		if i+1 < len(lines) {
			want = lines[i+1]
		}
		if got != want && !*update {
			t.Errorf("%s:%d: %s\n got %s\nwant %s", file, i+1, line, got, want)
		}
		out = append(out, line, got)
	}
	if cases == 0 {
		t.Fatalf("%s holds no cases", file)
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// everyType is a schema that is partitioned by a column of every type that can
// be one, and by columns whose names need backticks. The column v is no
// partition column.
func everyType() *Schema {
	columns := []string{
		"p STRING", "q STRING", "c CHAR(3)", "vc VARCHAR(10)", "n INT", "nn INT NOT NULL", "ti TINYINT", "si SMALLINT", "bi BIGINT",
		"f FLOAT", "g DOUBLE", "dec DECIMAL(10, 2)", "big DECIMAL(38, 0)", "b BOOLEAN", "d DATE", "tm TIME(3)",
		"ts TIMESTAMP(3)", "ts9 TIMESTAMP(9)", "lz TIMESTAMP(6) WITH LOCAL TIME ZONE", "bin BYTES", "in STRING", "Date DATE", "a`b STRING", "ünï STRING",
	}
	s := &Schema{Version: 3, Options: map[string]string{}, Fields: []types.Field{{ID: 0, Name: "v", Type: types.Type{Kind: types.Int}}}}
	for i, c := range columns {
		name, text, _ := strings.Cut(c, " ")
		typ, err := types.Parse(text)
		if err != nil {
			panic(err)
		}
		s.Fields = append(s.Fields, types.Field{ID: i + 1, Name: name, Type: typ})
		s.PartitionKeys = append(s.PartitionKeys, name)
	}
	s.Fields = append(s.Fields, types.Field{ID: len(columns) + 1, Name: "group by", Type: types.Type{Kind: types.Varchar, Length: types.MaxLength}})
	s.PartitionKeys = append(s.PartitionKeys, "group by")
	return s
}

// row is a partition of a schema: the cells by column, as literals. What is not
// given is null.
func row(t rapid.TB, s *Schema, cells map[string]string) []types.Value {
	t.Helper()
	values := make([]types.Value, len(s.PartitionKeys))
	for i := range values {
		values[i] = types.NullValue
	}
	for name, text := range cells {
		i := slices.Index(s.PartitionKeys, name)
		if i < 0 {
			t.Fatalf("no partition column %q", name)
		}
		v, err := types.ParseLiteral(s.PartitionFields()[i].Type, text)
		if err != nil {
			t.Fatal(err)
		}
		values[i] = v
	}
	return values
}
