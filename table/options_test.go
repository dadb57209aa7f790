package table

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestOptionDefaults(t *testing.T) {
	want := Options{
		Bucket: -1, TargetFileSize: 256 << 20, SmallFileRatio: 0.7, MinFileNum: 5, FileNumLimit: 100_000, OpenFileCost: 4 << 20,
		FileFormat: "parquet", Compression: "zstd", ZstdLevel: 1, PageSize: 1 << 20, Dictionary: true,
		DataFilePrefix: "data-", LegacyPartition: true, DefaultPartition: "__DEFAULT_PARTITION__",
		StatsMode: "truncate(16)", StatsDense: true, StatsFirstN: -1, IndexInManifest: 500,
		ManifestTargetSize: 8 << 20, ManifestFullThreshold: 16 << 20, ManifestMergeMinCount: 30, ManifestCompression: "zstd",
		CommitMaxRetries: 10, CommitMinRetryMillis: 10, CommitMaxRetryMillis: 10_000,
		MergeTree: MergeTree{
			Engine: "deduplicate", ChangelogProducer: "none", RunTrigger: 5, Levels: 6, MaxSizeAmp: 200, SizeRatio: 1,
			OffPeakStart: -1, OffPeakEnd: -1, FullIntervalMillis: -1, TotalSize: -1, IncrementalSize: -1, ExpireSeconds: -1,
		},
		Raw: map[string]string{},
	}
	for _, stored := range []map[string]string{nil, {}} {
		got, err := ParseOptions(stored, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
	if small := want.SmallFileSize(); small != 187_904_819 { // 179.2 MiB
		t.Errorf("files are small below %d bytes", small)
	}
}

func TestOptionValues(t *testing.T) {
	for _, c := range []struct {
		key, value string
		get        func(Options) any
		want       any
	}{
		{"bucket", "4", func(o Options) any { return o.Bucket }, 4},
		{"bucket", "-2", func(o Options) any { return o.Bucket }, -2},
		{"target-file-size", "128 mb", func(o Options) any { return o.TargetFileSize }, int64(128 << 20)},
		{"target-file-size", " 1g ", func(o Options) any { return o.TargetFileSize }, int64(1 << 30)},
		{"target-file-size", "1", func(o Options) any { return o.TargetFileSize }, int64(1)},
		{"target-file-size", "3 KibiBytes", func(o Options) any { return o.TargetFileSize }, int64(3072)},
		{"target-file-size", "2TB", func(o Options) any { return o.TargetFileSize }, int64(2 << 40)},
		{"target-file-size", "9223372036854775807 bytes", func(o Options) any { return o.TargetFileSize }, int64(maxSize)},
		{"commit.timeout", "106751991167 d", func(o Options) any { return o.CommitTimeoutMillis }, int64(maxMillis)},
		{"compaction.small-file-ratio", "0.5", func(o Options) any { return o.SmallFileRatio }, 0.5},
		{"compaction.small-file-ratio", "1", func(o Options) any { return o.SmallFileRatio }, 1.0},
		{"compaction.min.file-num", "1", func(o Options) any { return o.MinFileNum }, 1},
		{"compaction.file-num-limit", " 7 ", func(o Options) any { return o.FileNumLimit }, 7},
		{"source.split.open-file-cost", "0", func(o Options) any { return o.OpenFileCost }, int64(0)},
		{"compaction.force-rewrite-all-files", "TRUE", func(o Options) any { return o.ForceRewriteAll }, true},
		{"deletion-vectors.enabled", "true", func(o Options) any { return o.DeletionVectors }, true},
		{"row-tracking.enabled", "true", func(o Options) any { return o.RowTracking }, true},
		{"data-evolution.enabled", "true", func(o Options) any { return o.DataEvolution }, true},
		{"merge-engine", "Aggregation", func(o Options) any { return o.MergeTree.Engine }, "aggregation"},
		{"sequence.field", " a, b", func(o Options) any { return strings.Join(o.MergeTree.SequenceFields, "|") }, "a|b"},
		{"sequence.field.sort-order", "descending", func(o Options) any { return o.MergeTree.SequenceDescends }, true},
		{"num-sorted-run.compaction-trigger", "3", func(o Options) any { return o.MergeTree.Levels }, 4},
		{"num-levels", "3", func(o Options) any { return o.MergeTree.Levels }, 3},
		{"compaction.max-size-amplification-percent", "50", func(o Options) any { return o.MergeTree.MaxSizeAmp }, 50},
		{"compaction.optimization-interval", "1 min", func(o Options) any { return o.MergeTree.FullIntervalMillis }, int64(60_000)},
		{"compaction.total-size-threshold", "1 kb", func(o Options) any { return o.MergeTree.TotalSize }, int64(1024)},
		{"file.format.per.level", "0:Avro,3: orc", func(o Options) any { return o.FormatAt(0) + o.FormatAt(1) + o.FormatAt(3) }, "avroparquetorc"},
		{"file.compression.per.level", "5:lz4", func(o Options) any { return o.CompressionAt(4) + o.CompressionAt(5) }, "zstdlz4"},
		{"record-level.expire-time", "3000 d", func(o Options) any { return o.MergeTree.ExpireSeconds }, int64(3000 * 24 * 3600)},
		{"record-level.expire-time", "1 h", func(o Options) any { return o.MergeTree.ExpireSeconds }, int64(3600)},
		{"file.format", "ORC", func(o Options) any { return o.FileFormat }, "orc"},
		{"file.compression", "LZ4", func(o Options) any { return o.Compression }, "lz4"},
		{"file.compression.zstd-level", "-3", func(o Options) any { return o.ZstdLevel }, -3},
		{"parquet.compression", "GZIP", func(o Options) any { return o.Compression }, "gzip"},
		{"parquet.block.size", "1048576", func(o Options) any { return o.BlockSize }, int64(1 << 20)},
		{"file.block-size", "64 mb", func(o Options) any { return o.BlockSize }, int64(64 << 20)},
		{"parquet.page.size", "64 kb", func(o Options) any { return o.PageSize }, int64(64 << 10)},
		{"parquet.enable.dictionary", " False ", func(o Options) any { return o.Dictionary }, false},
		{"data-file.prefix", "part-", func(o Options) any { return o.DataFilePrefix }, "part-"},
		{"data-file.path-directory", "data/deep", func(o Options) any { return o.DataFilePath }, "data/deep"},
		{"file.suffix.include.compression", "true", func(o Options) any { return o.SuffixCompression }, true},
		{"partition.legacy-name", "false", func(o Options) any { return o.LegacyPartition }, false},
		{"partition.default-name", "nix", func(o Options) any { return o.DefaultPartition }, "nix"},
		{"metadata.stats-mode", "full", func(o Options) any { return o.StatsMode }, "full"},
		{"metadata.stats-dense-store", "false", func(o Options) any { return o.StatsDense }, false},
		{"metadata.stats-keep-first-n-columns", "3", func(o Options) any { return o.StatsFirstN }, 3},
		{"file-index.in-manifest-threshold", "1 kb", func(o Options) any { return o.IndexInManifest }, int64(1024)},
		{"manifest.target-file-size", "1 mb", func(o Options) any { return o.ManifestTargetSize }, int64(1 << 20)},
		{"manifest.full-compaction-threshold-size", "1 mb", func(o Options) any { return o.ManifestFullThreshold }, int64(1 << 20)},
		{"manifest.merge-min-count", "2", func(o Options) any { return o.ManifestMergeMinCount }, 2},
		{"manifest.compression", "Snappy", func(o Options) any { return o.ManifestCompression }, "snappy"},
		{"manifest.delete-file-drop-stats", "true", func(o Options) any { return o.DeleteFileDropStats }, true},
		{"commit.max-retries", "0", func(o Options) any { return o.CommitMaxRetries }, 0},
		{"commit.timeout", "2 min", func(o Options) any { return o.CommitTimeoutMillis }, int64(120_000)},
		{"commit.min-retry-wait", "5", func(o Options) any { return o.CommitMinRetryMillis }, int64(5)},
		{"commit.max-retry-wait", "1 H", func(o Options) any { return o.CommitMaxRetryMillis }, int64(3_600_000)},
		{"commit.max-retry-wait", "1d", func(o Options) any { return o.CommitMaxRetryMillis }, int64(86_400_000)},
		{"commit.max-retry-wait", "1 second", func(o Options) any { return o.CommitMaxRetryMillis }, int64(1000)},
		{"write.sequence-number-init-mode", "Snapshot", func(o Options) any { return o.SequenceNumberInitMode }, "snapshot"},
	} {
		stored, err := ParseOptions(map[string]string{c.key: c.value}, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := c.get(stored); got != c.want {
			t.Errorf("%s=%s is read as %v (%T), want %v", c.key, c.value, got, got, c.want)
		}
		if stored.Raw[c.key] != c.value {
			t.Errorf("Raw holds %q for %s=%q", stored.Raw[c.key], c.key, c.value)
		}
	}
}

// TestOptionErrors checks that a message names the option and its value, as
// whoever typed it would look for.
func TestOptionErrors(t *testing.T) {
	golden(t, "options_errors.txt", func(input string) string {
		key, value, _ := strings.Cut(input, "=")
		_, err := ParseOptions(map[string]string{key: value}, nil)
		if err == nil {
			return "no error"
		}
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), key+"="+value) {
			t.Errorf("%s: the error does not name option and value, or does not wrap ErrInvalid: %v", input, err)
		}
		if _, fromOverride := ParseOptions(nil, map[string]string{key: value}); !slices.Contains(fixedOptions, key) && (fromOverride == nil || fromOverride.Error() != err.Error()) {
			t.Errorf("%s as an override: got %v, want %v", input, fromOverride, err)
		}
		return err.Error()
	})
}

func TestOptionOverrides(t *testing.T) {
	stored := map[string]string{"target-file-size": "1 mb", "bucket": "2", "compaction.min.file-num": "bad", "X.y-Z": "Kept As Is "}
	before := maps.Clone(stored)
	o, err := ParseOptions(stored, map[string]string{"compaction.min.file-num": "3", "target-file-size": "2 mb", "fs.oss.accessKeyId": "K"})
	if err != nil {
		t.Fatal(err)
	}
	if o.TargetFileSize != 2<<20 || o.MinFileNum != 3 || o.Bucket != 2 {
		t.Errorf("overrides do not win: %+v", o)
	}
	want := map[string]string{
		"target-file-size": "2 mb", "bucket": "2", "compaction.min.file-num": "3", "X.y-Z": "Kept As Is ", "fs.oss.accessKeyId": "K",
	}
	if !maps.Equal(o.Raw, want) {
		t.Errorf("Raw is %v, want %v", o.Raw, want)
	}
	if o.Raw["target-file-size"] = "3 mb"; !maps.Equal(stored, before) {
		t.Errorf("the stored options were changed to %v", stored)
	}

	for _, key := range append([]string{"fields.a.aggregate-function", "fields.a,b.sequence-group", "fields.default-aggregate-function"}, fixedOptions...) {
		value := "1"
		if strings.HasSuffix(key, ".enabled") || key == "partition.legacy-name" {
			value = "true"
		}
		if key == "sequence.field.sort-order" {
			value = "descending"
		}
		_, err := ParseOptions(map[string]string{key: value}, map[string]string{key: "2"})
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "option "+key+" cannot be overridden for one run") {
			t.Errorf("override of %s: got %v", key, err)
		}
		if _, err := ParseOptions(nil, map[string]string{key: value}); !errors.Is(err, ErrInvalid) {
			t.Errorf("override of %s, which is not stored: got %v", key, err)
		}
		if _, err := ParseOptions(map[string]string{key: value}, map[string]string{key: value}); err != nil {
			t.Errorf("override of %s with its own value: %v", key, err)
		}
	}
}

func TestSmallFileSize(t *testing.T) {
	for _, c := range []struct {
		target int64
		ratio  float64
		want   int64
	}{
		{100, 0.7, 70}, {1, 0.7, 0}, {10, 1, 10}, {3, 0.5, 1}, {1 << 40, 0.25, 1 << 38}, {1, 1, 1},
	} {
		if got := (Options{TargetFileSize: c.target, SmallFileRatio: c.ratio}).SmallFileSize(); got != c.want {
			t.Errorf("%v of %d is %d, want %d", c.ratio, c.target, got, c.want)
		}
	}
}
