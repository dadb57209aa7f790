package snapshot

import (
	"context"
	"fmt"

	"tablectl/table"
)

const (
	indexManifestVersion = 1
	hashIndex            = "HASH"

	// indexManifestAvro has only what is looked at: index manifests are carried
	// over as they are.
	indexManifestAvro = `{"type":"record","name":"record","namespace":"` + avroNamespace + `","fields":[` +
		`{"name":"_VERSION","type":"int"},{"name":"_INDEX_TYPE","type":"string"},{"name":"_FILE_NAME","type":"string"}]}`
)

type indexEntry struct {
	Version   int32  `avro:"_VERSION"`
	IndexType string `avro:"_INDEX_TYPE"`
	FileName  string `avro:"_FILE_NAME"`
}

// CheckIndexes refuses a snapshot with indexes that name data files or rows,
// deletion vectors among them: rewriting files would make them lie. The error
// wraps table.ErrUnsupported.
func CheckIndexes(ctx context.Context, t *table.Table, s *Snapshot) error {
	if s.IndexManifest == nil {
		return nil
	}
	return readIndexManifest(ctx, t, *s.IndexManifest, func(e *indexEntry) error {
		if e.IndexType != hashIndex {
			return fmt.Errorf("table %s has an index of type %s (file %s), which compaction does not support: %w",
				t.Name(), e.IndexType, e.FileName, table.ErrUnsupported)
		}
		return nil
	})
}

func readIndexManifest(ctx context.Context, t *table.Table, name string, each func(*indexEntry) error) error {
	return readAvro(ctx, t, name, indexManifestAvro, func(e *indexEntry) error {
		if e.Version != indexManifestVersion {
			return fmt.Errorf("index manifest entry has the version %d, want %d", e.Version, indexManifestVersion)
		}
		return each(e)
	})
}
