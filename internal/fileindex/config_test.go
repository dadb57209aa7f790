package fileindex

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tablectl/internal/types"
)

// TestParseConfig shows which options declare an index, and that every mistake is
// named.
func TestParseConfig(t *testing.T) {
	fields := []types.Field{
		{Name: "id", Type: goldenType(t, "INT")},
		{Name: "name", Type: goldenType(t, "STRING")},
		{Name: "m", Type: goldenType(t, "MAP")},
		{Name: "a.b", Type: goldenType(t, "INT")},
	}
	for _, tt := range []struct {
		options     string // key=value, by blanks
		want        string // column:kind, by blanks
		err         string
		unsupported bool
	}{
		{options: "", want: ""},
		{options: "bucket=1 file-index.in-manifest-threshold=1kb file-index.read.enabled=false", want: ""},
		{options: "file-index.bitmap.columns=name,id", want: "name:bitmap id:bitmap"},
		{options: "file-index.bsi.columns=id file-index.bitmap.columns=id,id,", want: "id:bitmap id:bsi"},
		{options: "file-index.bitmap.columns=a.b file-index.bitmap.a.b.version=3", want: "a.b:bitmap"},
		{options: "file-index.bitmap.columns=id file-index.bitmap.id.new-option=1", want: "id:bitmap"},
		{options: "file-index.bitmap.columns=Name", err: `unknown column "Name"`},
		{options: "file-index.bitmap.columns=,id", err: "empty column"},
		{options: "file-index.bitmap.columns=", err: "empty column"},
		{options: "file-index.bitmap.columns=id file-index.bitmap.id.version=3", err: "version=3"},
		{options: "file-index.bitmap.columns=id file-index.bitmap.id.index-block-size=x", err: "index-block-size"},
		{options: "file-index.range-bitmap.columns=id file-index.range-bitmap.id.chunk-size=-1", err: "chunk-size"},
		{options: "file-index.bitmap.columns=id file-index.bitmap.name.version=1", err: `column "name" has no index of type "bitmap"`},
		{options: "file-index.bloom-filter.columns=id file-index.bloom-filter.id.fpp=1.5", err: "fpp=1.5"},
		{options: "file-index.bloom-filter.columns=id file-index.bloom-filter.id.fpp=NaN", err: "fpp=NaN"},
		{options: "file-index.bloom-filter.columns=id file-index.bloom-filter.id.items=many", err: "items=many"},
		{options: "file-index.bloom-filter.columns=id file-index.bloom-filter.id.items=9223372036854775807", err: "more than 256 MiB"},
		{options: "file-index.bloom-filter.columns=id file-index.bloom-filter.id.items=300000000", want: "id:bloom-filter"},
		{options: "file-index.bloom-filter.columns=id,name file-index.bloom-filter.id.items=300000000 file-index.bloom-filter.name.items=300000000", err: `column "name": with this one, bloom filters take more than 256 MiB`},
		{options: "file-index.bitmap.columns=m", err: `column "m"`, unsupported: true},
		{options: "file-index.bitmap.columns=m[k]", err: "map entry m[k]", unsupported: true},
		{options: "file-index.token-bloom.columns=id", err: `"token-bloom"`, unsupported: true},
		{options: "file-index..columns=id", err: `""`, unsupported: true},
	} {
		options := map[string]string{}
		for option := range strings.FieldsSeq(tt.options) {
			key, value, _ := strings.Cut(option, "=")
			options[key] = value
		}
		c, err := ParseConfig(options, fields)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || tt.unsupported && !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s: error %v, want one with %s (unsupported: %t)", tt.options, err, tt.err, tt.unsupported)
			}
			continue
		}
		var got []string
		for _, b := range c.NewBuilders() {
			got = append(got, fields[b.Column()].Name+":"+b.(*columnIndex).kind)
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%s: declares %q (%v), want %s", tt.options, got, err, tt.want)
		}
	}
}

// TestFilesAreIndependent shows that every file starts with empty indexes, that
// values may share a buffer, and that a container lists the columns in the order
// of the schema.
func TestFilesAreIndependent(t *testing.T) {
	fields := []types.Field{{Name: "a", Type: goldenType(t, "STRING")}, {Name: "b", Type: goldenType(t, "STRING")}}
	c, err := ParseConfig(map[string]string{"file-index.bitmap.columns": "b,a", "file-index.range-bitmap.columns": "a"}, fields)
	if err != nil {
		t.Fatal(err)
	}
	write := func(cell func(string) types.Value) []byte {
		var rows [][]types.Value
		for _, s := range []string{"x", "y", "w", "x"} {
			rows = append(rows, []types.Value{cell(s), cell(s)})
		}
		data, err := build(c, rows)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	want := write(func(s string) types.Value { return types.Value{Bytes: []byte(s)} })
	if again := write(func(s string) types.Value { return types.Value{Bytes: []byte(s)} }); !bytes.Equal(again, want) {
		t.Errorf("the second file has the indexes\n %x\n, the first\n %x", again, want)
	}

	builders := c.NewBuilders()
	buffer := []byte("?")
	for _, s := range []string{"x", "y", "w", "x"} {
		copy(buffer, s)
		for _, b := range builders {
			if err := b.Add(types.Value{Bytes: buffer}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := c.Serialize(builders)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("from one buffer:\n %x\nwant\n %x", got, want)
	}
	entries, err := decodeContainer(got)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, e := range entries {
		order = append(order, e.column+":"+e.kind)
	}
	if want := "a:bitmap a:range-bitmap b:bitmap"; strings.Join(order, " ") != want {
		t.Errorf("the container has %s, want %s", order, want)
	}
}

// TestBitmapHoldsEveryRow shows that a bitmap index has each row under its value,
// whatever the values, the version and the size of the blocks.
func TestBitmapHoldsEveryRow(t *testing.T) {
	typ := goldenType(t, "STRING")
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 1, 30).Draw(t, "values")
		cells := rapid.SliceOfN(rapid.IntRange(-1, len(alphabet)-1), 0, 300).Draw(t, "rows")
		want := map[string][]uint32{}
		values := make([]types.Value, len(cells))
		for row, cell := range cells {
			if cell < 0 {
				values[row] = types.NullValue
				want["null"] = append(want["null"], uint32(row))
				continue
			}
			values[row].Bytes = alphabet[cell]
			key := fmt.Sprintf("%08x%x", len(alphabet[cell]), alphabet[cell])
			want[key] = append(want[key], uint32(row))
		}
		payload, err := buildOne("bitmap", typ, map[string]string{
			"version":          rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version"),
			"index-block-size": rapid.SampledFrom([]string{"0", "30b", "100", "1 kb"}).Draw(t, "block"),
		}, values)
		if err != nil {
			t.Fatal(err)
		}
		index, err := decodeBitmap(payload, typ, true)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]uint32{}
		for key, rows := range index.keys {
			got[fmt.Sprintf("%x", key)] = rowsOf(t, rows)
		}
		if index.nulls != "" {
			got["null"] = rowsOf(t, index.nulls)
		}
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			t.Fatalf("got %s, want %s", g, w)
		}
	})
}

// TestLargeFilters has options that ask for much. To read them takes no memory.
func TestLargeFilters(t *testing.T) {
	fields := []types.Field{{Name: "id", Type: goldenType(t, "INT")}}
	options := map[string]string{
		"file-index.bloom-filter.columns":       "id",
		"file-index.bloom-filter.id.items":      "400000000",
		"file-index.range-bitmap.columns":       "id",
		"file-index.bitmap.columns":             "id",
		"file-index.bsi.columns":                "id",
		"file-index.bitmap.id.index-block-size": "4096 tb",
		"file-index.range-bitmap.id.chunk-size": "4096 tb",
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := ParseConfig(options, fields)
	if err != nil {
		t.Fatal(err)
	}
	c.NewBuilders()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes were allocated before there is a row", used)
	}
}
