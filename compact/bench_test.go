package compact_test

import (
	"fmt"
	"testing"

	"tablectl/compact"
	"tablectl/internal/binrow"
	"tablectl/snapshot"
	"tablectl/table"
)

// BenchmarkPlan plans tables with many live files, a hundred to a partition.
func BenchmarkPlan(b *testing.B) {
	options, err := table.ParseOptions(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, files := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			buckets := make([]snapshot.Bucket, files/100)
			for i := range buckets {
				buckets[i] = snapshot.Bucket{Partition: binrow.Empty(), TotalBuckets: -1}
				for j := range 100 {
					e := &snapshot.ManifestEntry{TotalBuckets: -1, File: snapshot.DataFile{
						FileName: fmt.Sprintf("data-%d-%d.parquet", i, j), FileSize: int64(1+j*37%100) << 20, RowCount: 1000,
					}}
					buckets[i].Files = append(buckets[i].Files, e)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				plan, err := compact.NewPlan(compact.Definition{Schema: &table.Schema{}, Options: options}, nil, buckets, compact.Full)
				if err != nil || len(plan.Tasks) == 0 {
					b.Fatal("nothing planned", err)
				}
			}
			b.ReportMetric(float64(files)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
		})
	}
}
