package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
	"tablectl/table"
)

// keyedBy is a table whose primary key has the types of a list such as
// "INT;STRING", behind a partition column that files do not repeat in their keys.
func keyedBy(t testing.TB, list string) (*table.Schema, []types.Type) {
	t.Helper()
	s := &table.Schema{PartitionKeys: []string{"p"}, PrimaryKeys: []string{"p"}}
	s.Fields = []types.Field{{Name: "p", Type: types.Type{Kind: types.Int}}}
	var ts []types.Type
	for i, text := range strings.Split(list, ";") {
		typ, err := types.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint("k", i)
		s.Fields = append(s.Fields, types.Field{ID: i + 1, Name: name, Type: typ})
		s.PrimaryKeys, ts = append(s.PrimaryKeys, name), append(ts, typ)
	}
	return s, ts
}

// keyCells reads "1;abc", one cell for each type; null is a null.
func keyCells(t testing.TB, ts []types.Type, text string) []types.Value {
	t.Helper()
	var values []types.Value
	for i, cell := range strings.Split(text, ";") {
		v := types.NullValue
		if cell != "null" {
			var err error
			if v, err = types.ParseLiteral(ts[i], cell); err != nil {
				t.Fatal(err)
			}
		}
		values = append(values, v)
	}
	return values
}

func keyedFile(name string, low, high []byte) *ManifestEntry {
	return &ManifestEntry{File: DataFile{FileName: name, MinKey: low, MaxKey: high}}
}

// TestKeyRangesOrder compares keys column by column, each as its type orders them.
func TestKeyRangesOrder(t *testing.T) {
	for _, c := range []struct{ list, ascending string }{
		{"INT", "-2147483648 -1 0 2147483647"},
		{"BIGINT;STRING", "-1;b 0; 0;a 0;aa 0;b 1;"},
		{"STRING;INT", ";9 B;1 a;-1 a;0 abcdefgh;0 abcdefghi;0 é;0"}, // by bytes, beside the slot and within
		{"BYTES", "00 00ff 7f 80"},
		{"DOUBLE", "-Inf -1.5 -0 0 1e300 Inf NaN"},
		{"DECIMAL(38,2);DECIMAL(4,1)", "-99999999999999999999999999999999.99;1 -0.01;1 0;-0.1 0;0.1 70000000000000000000;0"},
		{"TIMESTAMP(9)", "1969-12-31T23:59:59.999999999 1970-01-01 1970-01-01T00:00:00.000000001"},
		{"BOOLEAN;DATE", "false;2024-02-29 true;1969-12-31"},
		{"INT;INT", "null;null null;-5 -9;null -9;0"},
	} {
		s, ts := keyedBy(t, c.list)
		var files []*ManifestEntry
		for _, text := range strings.Split(c.ascending, " ") {
			key := binrow.Encode(ts, keyCells(t, ts, text))
			files = append(files, keyedFile(text, key, key))
		}
		shuffled := slices.Clone(files)
		slices.Reverse(shuffled)
		keys, err := NewKeyRanges(s, shuffled)
		if err != nil {
			t.Errorf("%s: %v", c.list, err)
			continue
		}
		if keys.Sort(shuffled); !slices.Equal(shuffled, files) {
			t.Errorf("%s: sorted as %v", c.list, names(shuffled))
		}
		if a, b := keys.Overlap(files); a != nil {
			t.Errorf("%s: %s and %s overlap", c.list, a.File.FileName, b.File.FileName)
		}
	}
}

func names(files []*ManifestEntry) (all []string) {
	for _, f := range files {
		all = append(all, f.File.FileName)
	}
	return all
}

// TestKeyRangesOverlap has files that share keys, and files that only seem to.
func TestKeyRangesOverlap(t *testing.T) {
	for _, c := range []struct{ ranges, sorted, overlap string }{
		{"a=5..9 b=1..4", "b a", ""},
		{"a=4..9 b=1..4", "b a", "b a"}, // a shared end is enough
		{"a=1..1 b=1..1", "a b", "a b"},
		{"a=1..9 b=1..4 c=10..10", "b a c", "b a"}, // the one that ends first comes first
		{"a=8..9 b=3..5 c=1..2 d=6..7", "c b d a", ""},
		{"a=5..6 b=1..9", "b a", "b a"}, // else the one that begins first
		{"a=1..9", "a", ""},
	} {
		s, ts := keyedBy(t, "INT")
		var files []*ManifestEntry
		for r := range strings.FieldsSeq(c.ranges) {
			name, bounds, _ := strings.Cut(r, "=")
			low, high, _ := strings.Cut(bounds, "..")
			encode := func(text string) []byte { return binrow.Encode(ts, keyCells(t, ts, text)) }
			files = append(files, keyedFile(name, encode(low), encode(high)))
		}
		keys, err := NewKeyRanges(s, files)
		if err != nil {
			t.Fatal(err)
		}
		keys.Sort(files)
		var overlap []*ManifestEntry
		if a, b := keys.Overlap(files); a != nil {
			overlap = []*ManifestEntry{a, b}
		}
		if got := strings.Join(names(files), " "); got != c.sorted {
			t.Errorf("%s: sorted as %s, want %s", c.ranges, got, c.sorted)
		}
		if got := strings.Join(names(overlap), " "); got != c.overlap {
			t.Errorf("%s: overlap of %q, want %q", c.ranges, got, c.overlap)
		}
	}
}

// TestKeyRangesRefused has bytes of keys that no writer makes. The message names
// the file and the end.
func TestKeyRangesRefused(t *testing.T) {
	s, ts := keyedBy(t, "INT;STRING")
	good := binrow.Encode(ts, keyCells(t, ts, "5;some longer text"))
	lower := binrow.Encode(ts, keyCells(t, ts, "5;some longer tex"))
	partition := s.Fields[0].Type
	whole, more := slices.Concat([]types.Type{partition}, ts), slices.Concat(ts, []types.Type{partition})
	changed := func(at int, to byte) []byte {
		bad := bytes.Clone(good)
		bad[at] = to
		return bad
	}
	// A key of two columns is 4 bytes of arity, 8 of nulls, two slots of 8, the text.
	for what, bad := range map[string][]byte{
		"nothing":                   nil,
		"half of an arity":          good[:2],
		"no columns":                binrow.Empty(),
		"one column":                binrow.Encode(ts[:1], keyCells(t, ts[:1], "5")),
		"with the partition":        binrow.Encode(whole, keyCells(t, whole, "1;5;x")),
		"with one more column":      binrow.Encode(more, keyCells(t, more, "5;x;1")),
		"the most columns":          slices.Concat([]byte{0xff, 0xff, 0xff, 0xff}, good[4:]),
		"more columns than bytes":   changed(3, 9),
		"cut in a slot":             good[:20],
		"cut in the text":           good[:len(good)-8],
		"a text before the row":     changed(24, 0),
		"a text longer than a row":  changed(20, 0xff),
		"eight bytes within a slot": changed(27, 0x88),
	} {
		for end, f := range map[string]*ManifestEntry{
			"lowest": keyedFile("data-x", bad, good), "highest": keyedFile("data-x", good, bad),
		} {
			_, err := NewKeyRanges(s, []*ManifestEntry{keyedFile("data-good", good, good), f})
			if !errors.Is(err, binrow.ErrMalformed) || !strings.Contains(err.Error(), "data file data-x: "+end+" key") {
				t.Errorf("%s as %s key: got %v", what, end, err)
			}
		}
	}
	_, err := NewKeyRanges(s, []*ManifestEntry{keyedFile("data-good", lower, good), keyedFile("data-x", good, lower)})
	if err == nil || !strings.Contains(err.Error(), "data file data-x: its lowest key is above its highest") {
		t.Errorf("got %v", err)
	}
}

// keyLists are the keys that FuzzKeyRanges chooses from: every form of a cell.
var keyLists = []string{
	"INT", "STRING", "BIGINT;STRING", "BYTES;BOOLEAN", "DECIMAL(38,10);TINYINT", "DECIMAL(18,2);SMALLINT",
	"TIMESTAMP(9);DATE", "TIMESTAMP_LTZ(3);TIME(0)", "FLOAT;DOUBLE", "CHAR(3);VARCHAR(7);BINARY(2)",
}

// FuzzKeyRanges takes arbitrary bytes as the ends of a file. They are refused with
// the name of the file, or order it among others as any range does.
func FuzzKeyRanges(f *testing.F) {
	zero := func(types.Type) types.Value { return types.Value{Unscaled: new(big.Int)} }
	null := func(types.Type) types.Value { return types.NullValue }
	long := func(t types.Type) types.Value {
		return types.Value{Int: 1, Nanos: 1, Float: 1, Bytes: []byte("more than a slot"), Unscaled: big.NewInt(1 << 40)}
	}
	key := func(ts []types.Type, cell func(types.Type) types.Value) []byte {
		var values []types.Value
		for _, t := range ts {
			values = append(values, cell(t))
		}
		return binrow.Encode(ts, values)
	}
	for i, list := range keyLists {
		_, ts := keyedBy(f, list)
		f.Add(uint8(i), key(ts, zero), key(ts, long))
		f.Add(uint8(i), key(ts, null), key(ts, zero))
		f.Add(uint8(i), key(ts, long), key(ts, long)[:len(key(ts, long))-8])
	}
	f.Add(uint8(0), []byte{}, binrow.Empty())
	f.Add(uint8(1), []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, list uint8, low, high []byte) {
		s, ts := keyedBy(t, keyLists[int(list)%len(keyLists)])
		fuzzed, other := keyedFile("data-x", low, high), keyedFile("data-y", key(ts, zero), key(ts, long))
		files := []*ManifestEntry{fuzzed, other}
		keys, err := NewKeyRanges(s, files)
		if err != nil {
			if !strings.Contains(err.Error(), "data file data-x: ") {
				t.Fatalf("%v does not name the file", err)
			}
			return
		}
		keys.Sort(files)
		a, _ := keys.Overlap(files)
		if apart := keys.Before(fuzzed, other) || keys.Before(other, fuzzed); apart == (a != nil) {
			t.Fatalf("one file is before the other: %v, they overlap: %v", apart, a != nil)
		}
		for _, f := range files {
			if keys.Before(f, f) || keys.CompareEnds(f, f) != 0 {
				t.Fatalf("%s is before itself", f.File.FileName)
			}
		}
		if keys.Before(fuzzed, other) && keys.CompareEnds(fuzzed, other) >= 0 {
			t.Fatal("a file is before one that ends no later")
		}
	})
}
