package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"testing"
)

// BenchmarkManifest writes and reads manifests as large as those of a table with
// 10,000 live files.
func BenchmarkManifest(b *testing.B) {
	const files = 10_000
	entries := make([]ManifestEntry, files)
	for i := range entries {
		f := DataFile{
			FileName: fmt.Sprintf("data-9a1b2c3d-0000-4000-8000-%012d-0.parquet", i), FileSize: 1 << 20, RowCount: 1000, ExtraFiles: []string{},
			MinSequenceNumber: int64(i) * 1000, MaxSequenceNumber: int64(i)*1000 + 999, ValueStats: emptyStats(),
		}
		f.AppendKeys()
		entries[i] = ManifestEntry{Version: manifestVersion, Partition: f.MinKey, TotalBuckets: -1, File: f}
	}
	data, err := encodeAvro(writeManifest, "zstd", entries)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := encodeAvro(writeManifest, "zstd", entries); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(files*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			err := decodeAvro(context.Background(), bytes.NewReader(data), manifestSchema(true, true), func(*ManifestEntry) error {
				n++
				return nil
			})
			if err != nil || n != files {
				b.Fatal(n, err)
			}
		}
		b.ReportMetric(files*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	})
}
