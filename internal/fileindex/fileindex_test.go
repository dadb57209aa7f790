package fileindex

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tablectl/internal/datafile"
	"tablectl/internal/types"
)

// build writes the container of a table whose rows have one value per field.
func build(c Config, rows [][]types.Value) ([]byte, error) {
	builders := c.NewBuilders()
	for _, row := range rows {
		for _, b := range builders {
			if err := b.Add(row[b.Column()]); err != nil {
				return nil, err
			}
		}
	}
	return c.Serialize(builders)
}

// buildOne returns the payload of one index on one column.
func buildOne(kind string, typ types.Type, options map[string]string, values []types.Value) ([]byte, error) {
	all := map[string]string{"file-index." + kind + ".columns": "c"}
	for k, v := range options {
		all["file-index."+kind+".c."+k] = v
	}
	c, err := ParseConfig(all, []types.Field{{Name: "c", Type: typ}})
	if err != nil {
		return nil, err
	}
	rows := make([][]types.Value, len(values))
	for i, v := range values {
		rows[i] = []types.Value{v}
	}
	data, err := build(c, rows)
	if err != nil {
		return nil, err
	}
	entries, err := decodeContainer(data)
	if err == nil && (len(entries) != 1 || entries[0].column != "c" || entries[0].kind != kind) {
		err = fmt.Errorf("the container has %q", entries)
	}
	if err != nil {
		return nil, fmt.Errorf("malformed container: %w", err)
	}
	return entries[0].payload, nil
}

// TestGoldens shows that every index on every type has the bytes that Paimon
// 1.4.2 writes, and is refused where Paimon refuses it. The bodies of a bitmap
// index may be in any order.
func TestGoldens(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, g := range readGoldens(t, func(g golden) bool { return g.Index != "" }) {
		seen[[2]string{g.Index, g.Type}] = true
		typ := goldenType(t, g.Type)
		payload, err := buildOne(g.Index, typ, g.Options, g.values(t, typ))
		switch {
		case strings.Contains(g.Error, "index fail"):
			// A key longer than a block, which Paimon cannot write but reads.
			if err == nil {
				_, err = decodeBitmap(payload, typ, true)
			}
			if err != nil {
				t.Errorf("%v: %v", g, err)
			}
		case g.Error != "":
			unsupported := strings.HasPrefix(g.Error, "UnsupportedOperation") || strings.Contains(g.Error, "Can't find") || strings.Contains(g.Error, "only supports")
			if err == nil || unsupported && !errors.Is(err, ErrUnsupported) || strings.Contains(err.Error(), "malformed") {
				t.Errorf("%v: error %v, but Paimon says %s", g, err, g.Error)
			}
		case err != nil:
			t.Errorf("%v: %v", g, err)
		case g.Index == "bitmap":
			g.checkBitmap(t, typ, payload)
		default:
			g.checkPayload(t, payload)
		}
	}
	if want := 4*30 + 6; len(seen) != want {
		t.Errorf("goldens for %d pairs of index and type, want %d", len(seen), want)
	}
}

func (g golden) checkBitmap(t *testing.T, typ types.Type, payload []byte) {
	t.Helper()
	data, err := hex.DecodeString(g.Hex)
	if err != nil {
		t.Fatal(err)
	}
	if err := equalBitmaps(typ, payload, data); err != nil {
		t.Errorf("%v: %v", g, err)
	}
}

func equalBitmaps(typ types.Type, ours, reference []byte) error {
	want, err := decodeBitmap(reference, typ, false)
	if err != nil {
		return fmt.Errorf("golden: %w", err)
	}
	got, err := decodeBitmap(ours, typ, true)
	if err == nil && !got.equal(want) {
		err = fmt.Errorf("\n got %+x\nwant %+x", got, want)
	}
	return err
}

// TestBloomHash shows that values have the hashes that Paimon's readers look for.
func TestBloomHash(t *testing.T) {
	for _, g := range readGoldens(t, func(g golden) bool { return g.Hash != "" && g.Error == "" }) {
		typ := goldenType(t, g.Hash)
		h, err := bloomHash(typ, literal(t, typ, &g.Value))
		if err != nil || int64(h) != g.H {
			t.Errorf("%s %q has the hash %d (%v), want %d", g.Hash, g.Value, int64(h), err, g.H)
		}
	}
}

// fixed is an index with a given payload.
type fixed []byte

func (f fixed) add(types.Value) error { return nil }

func (f fixed) payload() ([]byte, error) { return f, nil }

// TestContainer shows the container byte for byte, names in modified UTF-8
// included. Paimon's mark for an index without rows is never written.
func TestContainer(t *testing.T) {
	for _, g := range readGoldens(t, func(g golden) bool { return g.Container != nil }) {
		var c Config
		var builders []datafile.IndexBuilder
		for _, e := range g.Container {
			if e.Hex == nil {
				continue
			}
			payload, err := hex.DecodeString(*e.Hex)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(c.fields); n == 0 || c.fields[n-1].Name != e.Column {
				c.fields = append(c.fields, types.Field{Name: e.Column})
			}
			builders = append(builders, &columnIndex{declaration{kind: e.Index, column: len(c.fields) - 1}, fixed(payload)})
		}
		got, err := c.Serialize(builders)
		if err != nil {
			t.Fatal(err)
		}
		want, err := hex.DecodeString(g.Hex)
		if err != nil {
			t.Fatal(err)
		}
		if len(builders) == len(g.Container) {
			if !bytes.Equal(got, want) {
				t.Errorf("%v:\n got %x\nwant %x", g.Container, got, want)
			}
			continue
		}
		entries, err := decodeContainer(got)
		if err != nil {
			t.Fatal(err)
		}
		all, err := decodeContainer(want)
		if err != nil {
			t.Fatal(err)
		}
		all = slices.DeleteFunc(all, func(e indexEntry) bool { return e.payload == nil })
		if g, w := fmt.Sprintf("%q", entries), fmt.Sprintf("%q", all); g != w {
			t.Errorf("got %s, want %s", g, w)
		}
	}
}

// TestTables shows that the options of a table declare the indexes that they
// declare for Paimon, and that what Paimon refuses is refused. The columns of the
// tables are id INT, name STRING, m MAP<STRING, INT> and f BOOLEAN.
func TestTables(t *testing.T) {
	fields := []types.Field{
		{ID: 0, Name: "id", Type: goldenType(t, "INT")},
		{ID: 1, Name: "name", Type: goldenType(t, "STRING")},
		{ID: 2, Name: "m", Type: goldenType(t, "MAP")},
		{ID: 3, Name: "f", Type: goldenType(t, "BOOLEAN")},
	}
	for _, g := range readGoldens(t, func(g golden) bool { return g.Table != "" }) {
		name := fmt.Sprintf("%v, %d rows", g.Options, len(g.Rows))
		c, err := ParseConfig(g.Options, fields)
		switch columns := g.Options["file-index.bitmap.columns"] + g.Options["file-index.bloom-filter.columns"]; {
		case g.Error == "" && strings.Contains(columns, "["): // on an entry of a map
			if !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s: error %v, want ErrUnsupported", name, err)
			}
			continue
		case g.Error != "":
			if err == nil {
				t.Errorf("%s: no error, but Paimon says %s", name, g.Error)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", name, err)
			continue
		}
		if g.None != "" {
			if n := len(c.NewBuilders()); n != 0 {
				t.Errorf("%s: %d indexes, want none", name, n)
			}
			continue
		}
		var rows [][]types.Value
		for _, row := range g.Rows {
			cells := strings.Split(row, "|")
			values := make([]types.Value, len(fields))
			for i, cell := range cells {
				if values[i] = types.NullValue; cell != "" && cell != "null" && fields[i].Type.Scalar() {
					values[i] = literal(t, fields[i].Type, &cell)
				}
			}
			rows = append(rows, values)
		}
		data, err := build(c, rows)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		g.checkTable(t, name, data, fields)
	}
}

func (g golden) checkTable(t *testing.T, name string, data []byte, fields []types.Field) {
	t.Helper()
	reference, err := hex.DecodeString(g.Hex)
	if err != nil {
		t.Fatal(err)
	}
	byName := func(data []byte) map[[2]string][]byte {
		entries, err := decodeContainer(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m := map[[2]string][]byte{}
		for _, e := range entries {
			m[[2]string{e.column, e.kind}] = e.payload
		}
		return m
	}
	got, want := byName(data), byName(reference)
	for key := range maps.Keys(want) {
		payload, ok := got[key]
		switch delete(got, key); {
		case !ok:
			t.Errorf("%s: no index %s", name, key)
		case key[1] == "bitmap":
			i := slices.IndexFunc(fields, func(f types.Field) bool { return f.Name == key[0] })
			if err := equalBitmaps(fields[i].Type, payload, want[key]); err != nil {
				t.Errorf("%s: %s: %v", name, key, err)
			}
		case !bytes.Equal(payload, want[key]):
			t.Errorf("%s: %s is %x, want %x", name, key, payload, want[key])
		}
	}
	for key := range got {
		t.Errorf("%s: unwanted index %s", name, key)
	}
}
