package table

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tablectl/internal/types"
)

// refusal is a feature that changes how a table's files must be read or
// written, and the test for it.
type refusal struct {
	feature string
	applies func(s *Schema, o Options) bool
}

func enabled(key string) func(*Schema, Options) bool {
	return func(_ *Schema, o Options) bool { return strings.EqualFold(strings.TrimSpace(o.Raw[key]), "true") }
}

func anyOf(key string, not ...string) func(*Schema, Options) bool {
	return func(_ *Schema, o Options) bool {
		v := strings.ToLower(strings.TrimSpace(o.Raw[key]))
		return v != "" && !slices.Contains(not, v)
	}
}

func prefixed(prefix string) func(*Schema, Options) bool {
	return func(_ *Schema, o Options) bool {
		for k := range o.Raw {
			if strings.HasPrefix(k, prefix) {
				return true
			}
		}
		return false
	}
}

func columnKind(kinds ...types.Kind) func(*Schema, Options) bool {
	return func(s *Schema, _ Options) bool {
		return slices.ContainsFunc(s.Fields, func(f types.Field) bool { return hasKind(f.Type, kinds) })
	}
}

func hasKind(t types.Type, kinds []types.Kind) bool {
	return slices.Contains(kinds, t.Kind) ||
		t.Key != nil && hasKind(*t.Key, kinds) ||
		t.Element != nil && hasKind(*t.Element, kinds) ||
		slices.ContainsFunc(t.Fields, func(f types.Field) bool { return hasKind(f.Type, kinds) })
}

// keyed is for tables with primary keys only.
func keyed(applies func(o Options) bool) func(*Schema, Options) bool {
	return func(s *Schema, o Options) bool { return len(s.PrimaryKeys) > 0 && applies(o) }
}

// refusals lists what compaction does not do, in the order in which it is
// reported. It fails closed: a table kind that is not understood is named here
// rather than half done.
var refusals = []refusal{
	{"a table of type other than table (option type)", anyOf("type", "table")},
	{"the merge engine first-row (merge-engine)", keyed(func(o Options) bool { return o.MergeTree.Engine == "first-row" })},
	{"a changelog that compaction writes (changelog-producer)", keyed(func(o Options) bool {
		return o.MergeTree.ChangelogProducer != "none" && o.MergeTree.ChangelogProducer != "input"
	})},
	{"lookups while merging (force-lookup)", keyed(func(o Options) bool { return enabled("force-lookup")(nil, o) })},
	{"clustering of primary-key tables (pk-clustering-override)", enabled("pk-clustering-override")},
	{"sequence numbers from snapshots (sequence.snapshot-ordering)", enabled("sequence.snapshot-ordering")},
	{"data evolution (data-evolution.enabled)", func(_ *Schema, o Options) bool { return o.DataEvolution }},
	{"row tracking (row-tracking.enabled)", func(_ *Schema, o Options) bool { return o.RowTracking }},
	{"deletion vectors (deletion-vectors.enabled)", func(_ *Schema, o Options) bool { return o.DeletionVectors }},
	{"BLOB columns", columnKind(types.Blob)},
	{"VECTOR columns", columnKind(types.Vector)},
	{"GEOMETRY and GEOGRAPHY columns", columnKind(types.Geometry, types.Geography)},
	{"incremental clustering (clustering.incremental)", enabled("clustering.incremental")},
	{"chain tables (chain-table.enabled)", enabled("chain-table.enabled")},
	{"shredded maps (map.storage-layout)", anyOf("map.storage-layout", "default")},
	{"shredded variants (parquet.variant.shreddingSchema)", anyOf("parquet.variant.shreddingSchema")},
	{"shredded variants (variant.shreddingSchema)", anyOf("variant.shreddingSchema")},
	{"shredded variants (variant.inferShreddingSchema)", enabled("variant.inferShreddingSchema")},
	{"postpone buckets (bucket = -2)", func(_ *Schema, o Options) bool { return o.Bucket == PostponeBucket }},
	{"manifests that are not Avro (manifest.format)", anyOf("manifest.format", "avro")},
	{"external data paths (data-file.external-paths)", func(_ *Schema, o Options) bool {
		return o.Raw["data-file.external-paths"] != "" && anyOf("data-file.external-paths.strategy", "none")(nil, o)
	}},
	{"sequence numbers from snapshots (write.sequence-number-init-mode)", func(_ *Schema, o Options) bool { return o.SequenceNumberInitMode == "snapshot" }},
	{"encrypted Parquet files (parquet.encryption.*)", prefixed("parquet.encryption.")},
}

// CheckSupported refuses tables that compaction would not leave exactly as
// they are for readers. The error wraps ErrUnsupported and names the feature.
func (t *Table) CheckSupported() error {
	for _, r := range refusals {
		if r.applies(t.Schema, t.Options) {
			return fmt.Errorf("table %s uses %s, which compaction does not support: %w", t.Name(), r.feature, ErrUnsupported)
		}
	}
	perLevel := len(t.Schema.PrimaryKeys) > 0 && slices.Contains(slices.Collect(maps.Values(t.Options.MergeTree.Formats)), "parquet")
	if f := t.Options.FileFormat; f != "parquet" && !perLevel {
		return fmt.Errorf("table %s writes %s files (file.format): only parquet can be written: %w", t.Name(), f, ErrUnsupported)
	}
	return nil
}
