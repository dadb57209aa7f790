package snapshot

import (
	"reflect"
	"testing"

	"github.com/google/uuid"

	"tablectl/internal/fileio/faultio"
	"tablectl/table"
)

func newWriter(t testing.TB) (*fileWriter, *table.Table) {
	t.Helper()
	_, tbl := openTable(t, "append-partitioned", 2)
	return &fileWriter{table: tbl, uuid: uuid.NewString()}, tbl
}

// TestManifestRows writes the entries of every manifest of Java 1.4.2 again and
// compares the row of the manifest list with Java's.
func TestManifestRows(t *testing.T) {
	checked := 0
	for _, name := range []string{
		"append-partitioned", "append-bucketed", "append-bucketed-partitioned-unordered", "append-multi-partition-types",
		"append-partition-legacy-types", "append-partition-new-name", "append-row-tracking-recompacted", "append-schema-evolution",
		"many-manifests", "overwritten", "pk-deletion-vectors", "pk-postpone-bucket", "with-tags", "append-deletion-vectors",
	} {
		store, tbl := openTable(t, name, 0)
		all, err := All(t.Context(), tbl)
		if err != nil {
			t.Fatal(err)
		}
		done := map[string]bool{}
		for _, s := range all {
			rows, err := manifests(t.Context(), tbl, s)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				if !done[row.FileName] {
					done[row.FileName] = true
					checked++
					checkManifestRow(t, store, tbl, name, row)
				}
			}
		}
	}
	if checked < 60 {
		t.Errorf("checked only %d rows", checked)
	}
}

func checkManifestRow(t *testing.T, store *faultio.Memory, tbl *table.Table, name string, want ManifestFile) {
	t.Helper()
	w := &fileWriter{table: tbl, uuid: uuid.NewString()}
	out := w.manifests(t.Context())
	if err := ReadManifest(t.Context(), tbl, want.FileName, out.add); err != nil {
		t.Fatal(err)
	}
	rows, err := out.close()
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	got := rows[0]
	if size := len(store.Files()[location+"/manifest/"+got.FileName]); got.FileSize != int64(size) {
		t.Errorf("%s: the size is %d, want %d", name, got.FileSize, size)
	}
	got.FileName, got.FileSize = want.FileName, want.FileSize
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %s\n got %s\nwant %s", name, want.FileName, asJSON(t, got), asJSON(t, want))
	}
}
