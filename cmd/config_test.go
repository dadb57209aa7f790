package cmd

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// configOf reads the configuration that compact has with these files, by name,
// in an empty folder, and with these flags.
func configOf(t *testing.T, files map[string]string, flags ...string) (*config, *cobra.Command, error) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "xdg"))
	t.Setenv("TABLECTL_CONFIG", "")
	t.Setenv("TABLECTL_TABLE", "")
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{}
	compact := a.compactCommand()
	addGlobalFlags(compact.Flags())
	if err := compact.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	c, err := loadConfig(compact.Flags())
	return c, compact, err
}

// TestTableOptionsKeepTheirNames: viper lower-cases keys and splits them at dots;
// Paimon's options have both.
func TestTableOptionsKeepTheirNames(t *testing.T) {
	c, compact, err := configOf(t, map[string]string{
		"tablectl.yaml": `
table-options:
  fs.oss.accessKeyId: Ab.Cd
  s3.access-key: key
  S3.Access-Key: Other
  fields.Name.stats-mode: full
  compaction.min.file-num: 3
  compaction.small-file-ratio: 0.5
  compaction.force-rewrite-all-files: true
  target-file-size: local
  only.local: "1"
`,
		"explicit.yaml": `
table-options:
  target-file-size: explicit
  parquet.variant.shreddingSchema: '{"a":1}'
`,
	}, "--config", "explicit.yaml", "--table-option", "s3.access-key=flag", "--table-option", "a=b=c, d", "--table-option", " X.y = z", "--table-option", "empty=")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.overrides(compact)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"fs.oss.accessKeyId": "Ab.Cd", "s3.access-key": "flag", "S3.Access-Key": "Other", "fields.Name.stats-mode": "full", "compaction.min.file-num": "3",
		"compaction.small-file-ratio": "0.5", "compaction.force-rewrite-all-files": "true", "target-file-size": "explicit", "only.local": "1",
		"parquet.variant.shreddingSchema": `{"a":1}`, "a": "b=c, d", "X.y": " z", "empty": "",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if again, err := c.overrides(compact); err != nil || !maps.Equal(again, want) {
		t.Errorf("the second time: %q, %v", again, err)
	}
}

func TestConfigLists(t *testing.T) {
	for _, c := range []struct {
		name, file, variable string
		flags                []string
		want                 []string
	}{
		{"nothing", "", "", nil, nil},
		{"a flag", "", "", []string{"--where", "p in (a, b)"}, []string{"p in (a, b)"}},
		{"flags", "", "", []string{"--where", "p = 'a,b'", "--where", `q = "x"`}, []string{"p = 'a,b'", `q = "x"`}},
		{"a flag with several lines", "", "", []string{"--where", "p = a\n or p = b"}, []string{"p = a\n or p = b"}},
		{"one in the file", "where: p in (a, b)", "", nil, []string{"p in (a, b)"}},
		{"a list in the file", "where: ['p = 1, 2', q = 3]", "", nil, []string{"p = 1, 2", "q = 3"}},
		{"a variable", "", "p in (a, b)", nil, []string{"p in (a, b)"}},
		{"a variable before the file", "where: [p = 1, p = 2]", "q = 3", nil, []string{"q = 3"}},
		{"a flag before the variable", "where: [p = 1, p = 2]", "q = 3", []string{"--where", "r = 4"}, []string{"r = 4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv("TABLECTL_WHERE", c.variable)
			}
			config, compact, err := configOf(t, map[string]string{"tablectl.yaml": c.file}, c.flags...)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := config.list(compact, "where"); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestEverySettingIsAFlag keeps the list of keys and the flags together.
func TestEverySettingIsAFlag(t *testing.T) {
	_, compact, err := configOf(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range settings {
		if key != tableOptionsKey && compact.Flags().Lookup(key) == nil {
			t.Errorf("there is no flag for the key %s", key)
		}
	}
	for _, flag := range []string{"where", "filter-json", "commit-user", "strategy", "parallelism", "memory", "table-option", "lock", "on-locked", "lock-dir", "table", "warehouse", "output", "config"} {
		if compact.Flags().Lookup(flag) == nil {
			t.Errorf("compact has no flag --%s", flag)
		}
	}
}

// TestEveryKey reads each key from a file alone: none is an unknown one.
func TestEveryKey(t *testing.T) {
	for _, key := range settings {
		value := "x"
		if key == tableOptionsKey {
			value = "{a: b}"
		}
		if _, _, err := configOf(t, map[string]string{"tablectl.yaml": key + ": " + value}); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestSuggestions(t *testing.T) {
	known := []string{"table", "table-options", "warehouse", "where"}
	for word, want := range map[string]string{
		"tabel": `; did you mean "table"?`, "Table": `; did you mean "table"?`, "wher": `; did you mean "where"?`, "wherehouse": `; did you mean "warehouse"?`,
		"table_options": `; did you mean "table-options"?`, "bogus": "", "": "", "tables": `; did you mean "table"?`, "tableoptions": `; did you mean "table-options"?`,
	} {
		if got := suggestion(word, known); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"abc", "acb", 2}} {
		if got := editDistance(c.a, c.b); got != c.want || editDistance(c.b, c.a) != c.want {
			t.Errorf("%s and %s differ by %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestLocation(t *testing.T) {
	for _, c := range []struct {
		name, warehouse string
		want            string
	}{
		{"db.t", "/wh", "/wh/db.db/t"},
		{"db.t", "/wh/", "/wh/db.db/t"},
		{"db.t$branch_b1", "/wh", "/wh/db.db/t$branch_b1"},
		{"db.t.x", "/wh", "/wh/db.db/t.x"},
		{"db.t", "s3://bucket/wh", "s3://bucket/wh/db.db/t"},
		{"db.t", "", "db.t"},
		{"t", "/wh", "t"},
		{"./db.t", "/wh", "./db.t"},
		{"/x/db.db/t", "/wh", "/x/db.db/t"},
		{"file:///x/db.db/t", "/wh", "file:///x/db.db/t"},
	} {
		config, _, err := configOf(t, nil, "--warehouse", c.warehouse)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := config.location([]string{c.name}); got != c.want || err != nil {
			t.Errorf("%s in %q is %s, %v, want %s", c.name, c.warehouse, got, err, c.want)
		}
	}
	config, _, err := configOf(t, map[string]string{"schema/schema-0": ""}, "--table", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := config.location(nil); got != "." || err != nil {
		t.Errorf("inside of a table: %q, %v", got, err)
	}
	config, _, err = configOf(t, map[string]string{"schema/schema-1": "", "schema-0": ""})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := config.location(nil); ExitCode(err) != 2 || !strings.HasPrefix(err.Error(), "no table given") {
		t.Errorf("outside of one: %q, %v", got, err)
	}
}
