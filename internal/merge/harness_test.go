package merge_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tablectl/internal/merge"
	"tablectl/internal/types"
)

// world is a table of one key, as text:
//
//	engine           the merge engine
//	columns          "k INT NOT NULL, v STRING, l ARRAY OF INT"; k is the primary key
//	options          "key=value; key=value"
//	sequence         the columns of the option sequence.field, "a,b"
type world struct {
	engine, columns, options, sequence string
}

// definition is what an engine is made of.
func (w world) definition(t testing.TB) merge.Definition {
	t.Helper()
	d := merge.Definition{Engine: w.engine, PrimaryKeys: []string{"k"}, Options: map[string]string{}}
	for _, declared := range split(w.columns, ", ") {
		name, typ, _ := strings.Cut(declared, " ")
		element, nested := strings.CutPrefix(typ, "ARRAY OF ")
		parsed, err := types.Parse(element)
		if err != nil {
			t.Fatalf("column %s: %v", name, err)
		}
		column := types.Field{ID: len(d.Fields), Name: name, Type: parsed}
		if nested {
			column.Type = types.Type{Kind: types.Array, Element: &parsed}
		}
		d.Fields = append(d.Fields, column)
	}
	for _, option := range split(w.options, "; ") {
		key, value, _ := strings.Cut(option, "=")
		d.Options[key] = value
	}
	d.SequenceFields = split(w.sequence, ",")
	return d
}

func split(s, separator string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, separator)
}

// record is a stored row of the key.
type record struct {
	merge.Version
	row []types.Value
}

// folder merges records with one engine.
type folder struct {
	*merge.Engine
	fields []types.Field
	result merge.Result
}

func newFolder(d merge.Definition) (*folder, error) {
	e, err := merge.NewEngine(d)
	return &folder{Engine: e, fields: d.Fields}, err
}

// merge folds records, oldest first, into one, or into nil. A record alone is not
// merged, as in Paimon.
func (f *folder) merge(records []record) (*record, error) {
	if len(records) == 1 {
		return &records[0], nil
	}
	versions := make([]merge.Version, len(records))
	for i, r := range records {
		versions[i] = r.Version
	}
	if err := f.Merge(versions, groups{f, records}, &f.result); err != nil {
		return nil, err
	}
	if f.result.Drop {
		return nil, nil //nolint:nilnil // there is none
	}
	merged := &record{Version: merge.Version{Sequence: f.result.Sequence, Kind: f.result.Kind}}
	for i, c := range f.Columns {
		v, err := fold(c.Function, f.result.Steps[c.Class], cells{records, i, f.fields[i].Type.Kind})
		if err != nil {
			return nil, err
		}
		merged.row = append(merged.row, v)
	}
	return merged, nil
}

func fold(fn merge.Function, steps []merge.Step, c cells) (types.Value, error) {
	if !fn.Chooses() {
		return fn.Fold(steps, func(version int) (types.Value, error) { return c.value(version), nil })
	}
	switch version, err := fn.Choose(steps, c); {
	case err != nil || version == merge.NoVersion:
		return types.NullValue, err
	default:
		return c.value(version), nil
	}
}

// cells are the values of one column.
type cells struct {
	records []record
	column  int
	kind    types.Kind
}

func (c cells) value(version int) types.Value { return c.records[version].row[c.column] }
func (c cells) Null(version int) bool         { return c.value(version).Null }
func (c cells) Compare(a, b int) int          { return types.Compare(c.kind, c.value(a), c.value(b)) }

// groups compares records by the sequence fields of a group.
type groups struct {
	*folder
	records []record
}

func (g groups) Empty(group, version int) bool {
	return !slices.ContainsFunc(g.Groups[group], func(column int) bool { return !g.records[version].row[column].Null })
}

func (g groups) Compare(group, a, b int) int {
	for _, column := range g.Groups[group] {
		if c := (cells{g.records, column, g.fields[column].Type.Kind}).Compare(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// parse reads "+I 1 x; -D 1 null". Records are numbered from 1; a cell ” is the
// empty string, and ␣ a blank.
func (f *folder) parse(t testing.TB, text string) []record {
	t.Helper()
	var records []record
	for i, line := range split(text, "; ") {
		words := strings.Fields(line)
		kind := slices.Index([]string{"+I", "-U", "+U", "-D"}, words[0])
		if kind < 0 || len(words) != 1+len(f.fields) {
			t.Fatalf("%q is no record of the columns %v", line, f.fields)
		}
		r := record{Version: merge.Version{Sequence: int64(i + 1), Kind: merge.Kind(kind)}}
		for j, word := range words[1:] {
			v := types.NullValue
			if word != "null" {
				var err error
				if v, err = types.ParseLiteral(f.fields[j].Type, unquote.Replace(word)); err != nil {
					t.Fatal(err)
				}
			}
			r.row = append(r.row, v)
		}
		records = append(records, r)
	}
	return records
}

var (
	unquote = strings.NewReplacer("''", "", "␣", " ")
	quote   = strings.NewReplacer(" ", "␣")
)

// text is a record as parse reads it, with its number behind the kind.
func (f *folder) text(r *record) string {
	if r == nil {
		return "nothing"
	}
	words := []string{fmt.Sprintf("%s@%d", r.Kind, r.Sequence)}
	for i, v := range r.row {
		word := quote.Replace(types.Format(f.fields[i].Type, v))
		if word == "" {
			word = "''"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// outcome merges records and tells what they become: a record, "nothing" or the
// message of an error. It merges twice, since an engine and a result serve many
// keys.
func (w world) outcome(t testing.TB, records string) string {
	t.Helper()
	f, err := newFolder(w.definition(t))
	if err != nil {
		t.Fatalf("%+v: %v", w, err)
	}
	once := func() string {
		merged, err := f.merge(f.parse(t, records))
		if err != nil {
			return err.Error()
		}
		return f.text(merged)
	}
	first := once()
	if second := once(); second != first {
		t.Errorf("%s: first %s, then %s", records, first, second)
	}
	return first
}

// mergeCase is records and what they become; a want that begins with "error: " is
// a part of the message.
type mergeCase struct{ name, options, records, want string }

// run merges the cases of a table; each has the table's options and its own.
func (w world) run(t *testing.T, cases []mergeCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			own := w
			own.options = strings.Join(slices.Concat(split(w.options, "; "), split(c.options, "; ")), "; ")
			got := own.outcome(t, c.records)
			if message, ok := strings.CutPrefix(c.want, "error: "); ok && strings.Contains(got, message) || got == c.want {
				return
			}
			t.Errorf("%s\n%s\n got %s\nwant %s", own.options, c.records, got, c.want)
		})
	}
}

// refused checks that there is no engine for a table, and that the message has all
// of the parts.
func (w world) refused(t *testing.T, unsupported bool, parts ...string) {
	t.Helper()
	_, err := merge.NewEngine(w.definition(t))
	if err == nil {
		t.Errorf("%+v is accepted", w)
		return
	}
	if errors.Is(err, merge.ErrUnsupported) != unsupported {
		t.Errorf("%v: that it is not supported should be %v", err, unsupported)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}
