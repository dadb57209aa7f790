package table

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tablectl/internal/bytesize"
)

// Options are the settings of a table that compaction depends on, with the
// reference's names and defaults (CoreOptions). Sizes are bytes.
type Options struct {
	Bucket            int
	TargetFileSize    int64 // roll size of data files
	SmallFileRatio    float64
	MinFileNum        int
	FileNumLimit      int
	OpenFileCost      int64
	ForceRewriteAll   bool
	DeletionVectors   bool
	RowTracking       bool
	DataEvolution     bool
	FileFormat        string
	Compression       string
	ZstdLevel         int
	BlockSize         int64 // bytes of a row group; 0 leaves it to the writer
	PageSize          int64 // bytes of a Parquet page
	Dictionary        bool
	DataFilePrefix    string
	DataFilePath      string // data-file.path-directory
	SuffixCompression bool   // file.suffix.include.compression
	LegacyPartition   bool   // partition.legacy-name
	DefaultPartition  string // partition.default-name

	StatsMode       string
	StatsDense      bool
	StatsFirstN     int // metadata.stats-keep-first-n-columns; -1 is all
	IndexInManifest int64

	ManifestTargetSize     int64
	ManifestFullThreshold  int64
	ManifestMergeMinCount  int
	ManifestCompression    string
	CommitMaxRetries       int
	CommitTimeoutMillis    int64 // 0 is none
	CommitMinRetryMillis   int64
	CommitMaxRetryMillis   int64
	CommitUserPrefix       string
	DeleteFileDropStats    bool
	SequenceNumberInitMode string

	MergeTree MergeTree // of tables with primary keys

	// Raw holds every option as stored or overridden, for those named by column.
	Raw map[string]string
}

// defaultTargetSize is that of data files of tables with primary keys.
const defaultTargetSize = 128 << 20

// forKeys adds the defaults that tables with primary keys have.
func (o Options) forKeys() Options {
	if _, ok := o.Raw["target-file-size"]; !ok {
		o.TargetFileSize = defaultTargetSize
	}
	return o
}

// SmallFileSize is the size below which a file counts as small.
func (o Options) SmallFileSize() int64 {
	return int64(float64(o.TargetFileSize) * o.SmallFileRatio)
}

// fixedOptions say what a table is and where its files are, so they hold for
// every run.
var fixedOptions = []string{
	"bucket", "bucket-key", "type", "primary-key", "partition", "path", "branch", "merge-engine",
	"sequence.field", "sequence.field.sort-order", "changelog-producer", "deletion-vectors.enabled", "row-tracking.enabled", "data-evolution.enabled", "clustering.incremental",
	"data-file.path-directory", "partition.legacy-name", "partition.default-name",
	"ignore-delete", "deduplicate.ignore-delete", "first-row.ignore-delete", "partial-update.ignore-delete",
	"partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group", "aggregation.remove-record-on-delete",
}

// isFixed reports whether an option is one of those, or says how a column is merged:
// another meaning for one run would change rows.
func isFixed(key string) bool {
	return slices.Contains(fixedOptions, key) || strings.HasPrefix(key, "fields.") && !strings.HasSuffix(key, ".stats-mode")
}

// ParseOptions reads the options of a table, overrides first. A value that
// cannot be read is ErrInvalid and the message names the option; so is an
// override of an option that must not change for one run.
func ParseOptions(stored, overrides map[string]string) (Options, error) {
	for _, key := range slices.Sorted(maps.Keys(overrides)) {
		if isFixed(key) && overrides[key] != stored[key] {
			return Options{}, fmt.Errorf("option %s cannot be overridden for one run: %w", key, ErrInvalid)
		}
	}
	raw := maps.Clone(stored)
	if raw == nil {
		raw = map[string]string{}
	}
	maps.Copy(raw, overrides)

	p := optionParser{raw: raw}
	o := p.options()
	if p.err == nil && (!safeSegment(o.DataFilePrefix) || o.DataFilePath != "" && !safePath(o.DataFilePath)) {
		p.err = fmt.Errorf("option data-file.prefix=%s or data-file.path-directory=%s leaves the table: %w", o.DataFilePrefix, o.DataFilePath, ErrInvalid)
	}
	return o, p.err
}

func (p *optionParser) options() Options {
	return Options{
		Bucket:                 p.integer("bucket", -1, -2, math.MaxInt32),
		TargetFileSize:         p.size("target-file-size", 256<<20, 1),
		SmallFileRatio:         p.ratio("compaction.small-file-ratio", 0.7),
		MinFileNum:             p.integer("compaction.min.file-num", 5, 1, math.MaxInt32),
		FileNumLimit:           p.integer("compaction.file-num-limit", 100_000, 1, math.MaxInt32),
		OpenFileCost:           p.size("source.split.open-file-cost", 4<<20, 0),
		ForceRewriteAll:        p.boolean("compaction.force-rewrite-all-files", false),
		DeletionVectors:        p.boolean("deletion-vectors.enabled", false),
		RowTracking:            p.boolean("row-tracking.enabled", false),
		DataEvolution:          p.boolean("data-evolution.enabled", false),
		FileFormat:             strings.ToLower(p.text("file.format", "parquet")),
		Compression:            strings.ToLower(p.text("parquet.compression", p.text("file.compression", "zstd"))),
		ZstdLevel:              p.integer("file.compression.zstd-level", 1, -131072, 22),
		BlockSize:              p.size("file.block-size", p.size("parquet.block.size", 0, 0), 0),
		PageSize:               p.size("parquet.page.size", 1<<20, 1),
		Dictionary:             p.boolean("parquet.enable.dictionary", true),
		DataFilePrefix:         p.text("data-file.prefix", "data-"),
		DataFilePath:           p.text("data-file.path-directory", ""),
		SuffixCompression:      p.boolean("file.suffix.include.compression", false),
		LegacyPartition:        p.boolean("partition.legacy-name", true),
		DefaultPartition:       p.text("partition.default-name", "__DEFAULT_PARTITION__"),
		StatsMode:              p.text("metadata.stats-mode", "truncate(16)"),
		StatsDense:             p.boolean("metadata.stats-dense-store", true),
		StatsFirstN:            p.integer("metadata.stats-keep-first-n-columns", -1, -1, math.MaxInt32),
		IndexInManifest:        p.size("file-index.in-manifest-threshold", 500, 0),
		ManifestTargetSize:     p.size("manifest.target-file-size", 8<<20, 1),
		ManifestFullThreshold:  p.size("manifest.full-compaction-threshold-size", 16<<20, 0),
		ManifestMergeMinCount:  p.integer("manifest.merge-min-count", 30, 1, math.MaxInt32),
		ManifestCompression:    strings.ToLower(p.text("manifest.compression", "zstd")),
		CommitMaxRetries:       p.integer("commit.max-retries", 10, 0, math.MaxInt32),
		CommitTimeoutMillis:    p.duration("commit.timeout", 0),
		CommitMinRetryMillis:   p.duration("commit.min-retry-wait", 10),
		CommitMaxRetryMillis:   p.duration("commit.max-retry-wait", 10_000),
		DeleteFileDropStats:    p.boolean("manifest.delete-file-drop-stats", false),
		SequenceNumberInitMode: strings.ToLower(p.text("write.sequence-number-init-mode", "")),
		MergeTree:              p.mergeTree(),
		Raw:                    p.raw,
	}
}

// otherOptions are known beside those that Options holds: they decide what is
// refused, or say what every run does anyway.
var otherOptions = []string{
	"chain-table.enabled", "force-lookup", "pk-clustering-override", "sequence.snapshot-ordering", "data-file.external-paths", "data-file.external-paths.strategy", "manifest.format", "map.storage-layout",
	"variant.inferShreddingSchema", "variant.shreddingSchema", "write-only",
}

// optionFamilies begin the names of options that are known as a whole: those of
// columns, of file indexes, of Parquet, and of stores.
var optionFamilies = []string{"fields.", "file-index.", "parquet.", "fs.", "s3.", "s3a.", "oss.", "gs.", "cos.", "obs.", "azure.", "hadoop."}

// OptionNames lists the options that mean something to compaction, sorted.
func OptionNames() []string {
	p := optionParser{}
	p.options()
	names := slices.Concat(p.names, fixedOptions, otherOptions)
	slices.Sort(names)
	return slices.Compact(names)
}

// IsOption reports whether an option of that name may mean something to compaction.
func IsOption(name string) bool {
	return slices.Contains(OptionNames(), name) ||
		slices.ContainsFunc(optionFamilies, func(f string) bool { return len(name) > len(f) && strings.EqualFold(name[:len(f)], f) })
}

// optionParser reads options one by one and keeps their names and the first error.
type optionParser struct {
	raw   map[string]string
	names []string
	err   error
}

func (p *optionParser) lookup(key string) (string, bool) {
	p.names = append(p.names, key)
	v, ok := p.raw[key]
	return v, ok
}

func (p *optionParser) fail(key, value, want string) {
	if p.err == nil {
		p.err = fmt.Errorf("option %s=%s: expected %s: %w", key, value, want, ErrInvalid)
	}
}

func (p *optionParser) text(key, def string) string {
	if v, ok := p.lookup(key); ok {
		return strings.TrimSpace(v)
	}
	return def
}

func (p *optionParser) integer(key string, def, low, high int) int {
	v, ok := p.lookup(key)
	if !ok {
		return def
	}
	n, err := strconv.Atoi(strings.TrimSpace(v))
	if err != nil || n < low || n > high {
		p.fail(key, v, fmt.Sprintf("an integer from %d to %d", low, high))
	}
	return n
}

func (p *optionParser) ratio(key string, def float64) float64 {
	v, ok := p.lookup(key)
	if !ok {
		return def
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || !(f > 0 && f <= 1) {
		p.fail(key, v, "a number greater than 0 and at most 1")
	}
	return f
}

func (p *optionParser) boolean(key string, def bool) bool {
	v, ok := p.lookup(key)
	if !ok {
		return def
	}
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "true":
		return true
	case "false":
		return false
	}
	p.fail(key, v, "true or false")
	return def
}

// maxSize and maxMillis are taken for anything larger, which means the same, so
// that sums and multiples do not overflow.
const (
	maxSize   = 1 << 50
	maxMillis = 366 * 24 * 60 * 60 * 1000
)

func (p *optionParser) size(key string, def, least int64) int64 {
	v, ok := p.lookup(key)
	if !ok {
		return def
	}
	n, err := bytesize.Parse(v)
	switch {
	case err != nil:
		p.fail(key, v, "a size such as 128 mb")
	case n < least:
		p.fail(key, v, "a size greater than zero")
	}
	return min(n, maxSize)
}

func (p *optionParser) duration(key string, defMillis int64) int64 {
	return min(p.millis(key, defMillis), maxMillis)
}

// millis reads a duration that may be longer than any wait.
func (p *optionParser) millis(key string, defMillis int64) int64 {
	v, ok := p.lookup(key)
	if !ok {
		return defMillis
	}
	n, err := parseMillis(v)
	if err != nil {
		p.fail(key, v, "a duration such as 10 s")
	}
	return n
}

var quantity = regexp.MustCompile(`^\s*([0-9]+)\s*([a-zA-Z]*)\s*$`)

var millisUnits = []struct {
	names  []string
	millis int64
}{
	{[]string{"ms", "milli", "millis", "millisecond", "milliseconds", ""}, 1},
	{[]string{"s", "sec", "secs", "second", "seconds"}, 1000},
	{[]string{"m", "min", "minute", "minutes"}, 60_000},
	{[]string{"h", "hour", "hours"}, 3_600_000},
	{[]string{"d", "day", "days"}, 86_400_000},
}

func parseMillis(s string) (int64, error) {
	m := quantity.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a duration: %w", s, ErrInvalid)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: %w", s, ErrInvalid)
	}
	for _, u := range millisUnits {
		if slices.Contains(u.names, strings.ToLower(m[2])) && n <= math.MaxInt64/u.millis {
			return n * u.millis, nil
		}
	}
	return 0, fmt.Errorf("%q is not a duration: %w", s, ErrInvalid)
}
