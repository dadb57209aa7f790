package datafile_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"

	"tablectl/internal/datafile"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// TestEmptyDictionary has a column of nothing but nulls whose input has a
// dictionary, so that the output has one without words.
func TestEmptyDictionary(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"n", "INT"}, [2]string{"s", "STRING"})
	rows := [][]any{{types.Value{Int: 1}, nil}, {types.Value{Int: 2}, nil}}
	for _, codec := range []string{"zstd", "none", "snappy", "gzip", "lz4", "lz4_raw"} {
		t.Run(codec, func(t *testing.T) {
			spec := plainSpec(fields)
			spec.Compression = codec
			in := []datafile.Input{written(t, 0, fields, rows, tabletest.FileOptions{Dictionary: true})}
			for range 2 {
				outputs, store, got, err := concat(t.Context(), in, spec)
				if err != nil {
					t.Fatal(err)
				}
				wantRows(t, fields, got, rows)
				in = []datafile.Input{input(outputs[0].Name, fields, store.files[0].Bytes(), len(rows))}
			}
		})
	}
}

// TestLZ4OfNothing compares with the frame that pyarrow and Hadoop read: its
// length, 0, and a block of one byte.
func TestLZ4OfNothing(t *testing.T) {
	codec, err := compress.GetCodec(compress.Codecs.Lz4)
	if err != nil {
		t.Fatal(err)
	}
	got := codec.Encode(nil, nil)
	if string(got) != "\x00\x00\x00\x00\x00\x00\x00\x01\x00" {
		t.Errorf("got %x", got)
	}
}
