package compact

import (
	"context"
	"os"
	"testing"
	"time"

	"tablectl/internal/fileio"
	"tablectl/table"
)

func TestZZ(t *testing.T) {
	for _, c := range []string{"append-partitioned", "append-bucketed", "append-file-index"} {
		for i := 0; i < 3; i++ {
			dir := t.TempDir()
			s := time.Now()
			if err := os.CopyFS(dir, os.DirFS("../testdata/tables/"+c+"/wh.db/t")); err != nil {
				t.Fatal(err)
			}
			t.Log("copy", time.Since(s))
			s = time.Now()
			tbl, err := table.Load(context.Background(), fileio.Local{}, dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Table(context.Background(), tbl, Options{Parallelism: 1})
			t.Log(c, time.Since(s), err, len(r.Messages))
		}
	}
}
