package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// config is the settings of a run: flags, then TABLECTL_* variables, then the
// configuration files, then defaults. Viper does this for plain keys. The keys of
// table-options are Paimon's, with dots and capitals that viper does not keep, so
// that map is read beside it.
type config struct {
	v            *viper.Viper
	tableOptions map[string]string
}

const envPrefix = "TABLECTL"

// addGlobalFlags defines the flags that every command has.
func addGlobalFlags(f *pflag.FlagSet) {
	f.String("config", "", "configuration file that comes before ./tablectl.yaml, the user's and the system's")
	f.String("table", "", "table to work on, where the command line names none")
	f.String("warehouse", "", "folder of databases, in which tables are named db.table")
	f.StringP("output", "o", "text", "form of results: text or json")
	f.BoolP("quiet", "q", false, "log errors only; compact prints no result as text")
	f.BoolP("verbose", "v", false, "log what is being done")
	f.String("log-format", "text", "form of the log: text or json")
}

// settings are the keys that a configuration file may hold. Each is a flag too,
// but for table-options, whose flag sets one of them.
var settings = []string{
	"table", "warehouse", "output", "quiet", "verbose", "log-format",
	"commit-user", "strategy", "parallelism", "memory", "verify", "where", "filter-json", "lock", "on-locked", "lock-dir", tableOptionsKey,
}

const tableOptionsKey = "table-options"

// lists are the settings that can have several values.
var lists = []string{"where", "filter-json"}

func loadConfig(flags *pflag.FlagSet) (*config, error) {
	c := &config{v: viper.New(), tableOptions: map[string]string{}}
	c.v.SetEnvPrefix(envPrefix)
	c.v.SetEnvKeyReplacer(strings.NewReplacer("-", "_"))
	c.v.AutomaticEnv()
	if err := c.v.BindPFlags(flags); err != nil {
		return nil, err
	}
	files, err := configFiles(c.v.GetString("config"))
	if err != nil {
		return nil, err
	}
	// The least important first, so that the others override it.
	for _, file := range slices.Backward(files) {
		if err := c.merge(file); err != nil {
			return nil, fmt.Errorf("configuration %s: %w", file, err)
		}
	}
	return c, nil
}

// configFiles lists the configuration files that exist, the most important
// first. One that was asked for must exist.
func configFiles(explicit string) ([]string, error) {
	var files []string
	if explicit != "" {
		if _, err := os.Stat(explicit); err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		files = append(files, explicit)
	}
	candidates := []string{"tablectl.yaml"}
	if dir, err := os.UserConfigDir(); err == nil {
		candidates = append(candidates, filepath.Join(dir, "tablectl", "config.yaml"))
	}
	candidates = append(candidates, "/etc/tablectl/config.yaml")
	for _, file := range candidates {
		_, err := os.Stat(file)
		if err == nil {
			files = append(files, file)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("configuration: %w", err)
		}
	}
	return files, nil
}

func (c *config) merge(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil {
		return err
	}
	for key := range values {
		if !slices.Contains(settings, key) {
			return fmt.Errorf("unknown key %q%s", key, suggestion(key, settings))
		}
	}
	if raw, ok := values[tableOptionsKey]; ok {
		options, ok := raw.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: expected option names with values", tableOptionsKey)
		}
		for k, v := range options {
			text, err := scalar(v)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", tableOptionsKey, k, err)
			}
			c.tableOptions[k] = text
		}
		delete(values, tableOptionsKey)
	}
	for key, v := range values {
		if slices.Contains(lists, key) {
			values[key], err = scalars(v)
		} else {
			values[key], err = scalar(v)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return c.v.MergeConfigMap(values)
}

// scalar is a value of a YAML file as one would type it.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(v), nil
	case nil:
		return "", errors.New("expected a value, got none")
	}
	return "", fmt.Errorf("expected one value, got %v; put quotes around it if it is text", v)
}

// scalars is one value of a YAML file, or a list of them.
func scalars(v any) ([]string, error) {
	all, ok := v.([]any)
	if !ok {
		all = []any{v}
	}
	texts := make([]string, len(all))
	for i := range all {
		var err error
		if texts[i], err = scalar(all[i]); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func (c *config) text(key string) string { return c.v.GetString(key) }

// given reports whether a value was given, in a flag or a file even an empty one;
// an empty variable is none.
func (c *config) given(key string) bool { return c.v.IsSet(key) }

// flag reads a boolean from wherever it was given.
func (c *config) flag(key string) (bool, error) {
	b, err := strconv.ParseBool(c.text(key))
	if err != nil {
		return false, usageError(fmt.Errorf("--%s %s: expected true or false", key, c.text(key)))
	}
	return b, nil
}

// count reads a number greater than zero from wherever it was given; 0 says
// that it was not.
func (c *config) count(key string) (int, error) {
	if !c.given(key) {
		return 0, nil
	}
	n, err := strconv.Atoi(c.text(key))
	if err != nil {
		return 0, usageError(fmt.Errorf("--%s %s: expected a number", key, c.text(key)))
	}
	if n < 1 {
		return 0, usageError(fmt.Errorf("--%s %d: expected a number greater than zero", key, n))
	}
	return n, nil
}

// list reads a repeatable flag. A variable or a file holds one value, or the
// file a list; values are never split, since filters contain commas.
func (c *config) list(cmd *cobra.Command, key string) ([]string, error) {
	if f := cmd.Flags().Lookup(key); f.Changed {
		// GetStringArray would lose a single value that is empty.
		if values, ok := f.Value.(pflag.SliceValue); ok {
			return values.GetSlice(), nil
		}
	}
	name := envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
	if v, ok := os.LookupEnv(name); ok && v == "" && slices.Contains(lists, key) {
		return nil, usageError(fmt.Errorf("%s is empty: expected a filter; unset it to select everything", name))
	}
	switch v := c.v.Get(key).(type) {
	case []string:
		return v, nil
	case string: // a variable
		if v != "" {
			return []string{v}, nil
		}
	}
	return nil, nil
}

// overrides are the table options for this run: those of the configuration, then
// those of the command line or, if there are none, the one of the variable.
func (c *config) overrides(cmd *cobra.Command) (map[string]string, error) {
	options := maps.Clone(c.tableOptions)
	given, err := c.list(cmd, "table-option")
	if err != nil {
		return nil, err
	}
	for _, o := range given {
		k, v, ok := strings.Cut(o, "=")
		if !ok || strings.TrimSpace(k) == "" {
			return nil, usageError(fmt.Errorf("--table-option %s: expected KEY=VALUE", o))
		}
		options[strings.TrimSpace(k)] = v
	}
	return options, nil
}

// location finds the table that a command works on.
func (c *config) location(args []string) (string, error) {
	name := c.text("table")
	if len(args) > 0 {
		name = args[0]
	}
	if name == "" {
		if _, err := os.Stat(filepath.Join("schema", "schema-0")); err == nil {
			return ".", nil
		}
		return "", usageError(errors.New("no table given: name one, or set --table or TABLECTL_TABLE, or run inside of a table's folder"))
	}
	warehouse := c.text("warehouse")
	if db, table, ok := strings.Cut(name, "."); ok && warehouse != "" && !strings.ContainsAny(name, `/\`) {
		return strings.TrimSuffix(warehouse, "/") + "/" + db + ".db/" + table, nil
	}
	return name, nil
}

// suggestion finds the word that was probably meant.
func suggestion(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := editDistance(word, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
