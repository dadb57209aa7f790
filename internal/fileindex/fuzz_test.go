package fileindex

import (
	"strings"
	"testing"

	"tablectl/internal/types"
)

// FuzzParseConfig has options, key and value by turns: what they declare can be built,
// of no rows too.
func FuzzParseConfig(f *testing.F) {
	for _, o := range []string{
		"file-index.bloom-filter.columns\nid,name\nfile-index.bloom-filter.id.items\n0\nfile-index.bloom-filter.id.fpp\n1e-300",
		"file-index.bitmap.columns\nname\nfile-index.bitmap.name.index-block-size\n0",
		"file-index.range-bitmap.columns\nid,name\nfile-index.range-bitmap.name.chunk-size\n9223372036854775807",
		"file-index.bsi.columns\nid", "file-index.bitmap.columns\nid[", "file-index..columns\n,", "file-index.columns\nid",
	} {
		f.Add(o, int64(7))
	}
	fields := []types.Field{{Name: "id", Type: goldenType(f, "INT")}, {Name: "name", Type: goldenType(f, "STRING")}}
	f.Fuzz(func(t *testing.T, text string, v int64) {
		options := map[string]string{}
		parts := strings.Split(text, "\n")
		for i := 0; i+1 < len(parts); i += 2 {
			options[parts[i]] = parts[i+1]
			if strings.HasSuffix(parts[i], ".items") && len(parts[i+1]) > 6 {
				return // large filters take their time
			}
		}
		c, err := ParseConfig(options, fields)
		if err != nil {
			return
		}
		for rows := range 3 {
			builders := c.NewBuilders()
			for _, b := range builders {
				for r := range rows {
					value := types.Value{Int: int64(int32(v)) + int64(r), Bytes: []byte(text[:min(r, len(text))])}
					if err := b.Add(value); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := c.Serialize(builders); err != nil {
				t.Fatalf("%d rows: %v", rows, err)
			}
		}
	})
}
