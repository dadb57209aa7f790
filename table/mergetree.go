package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tablectl/internal/types"
)

// MergeTree are the settings of a table with primary keys that decide how its
// files are merged, with the reference's names and defaults (CoreOptions).
type MergeTree struct {
	Engine            string
	SequenceFields    []string
	SequenceDescends  bool
	ThinMode          bool
	ChangelogProducer string

	RunTrigger         int // num-sorted-run.compaction-trigger
	Levels             int // num-levels
	MaxSizeAmp         int // percent
	SizeRatio          int // percent
	OffPeakStart       int // hour; -1 is none
	OffPeakEnd         int
	OffPeakRatio       int   // percent
	FullIntervalMillis int64 // compaction.optimization-interval; -1 is none
	TotalSize          int64 // compaction.total-size-threshold, bytes; -1 is none
	IncrementalSize    int64 // compaction.incremental-size-threshold, bytes; -1 is none
	ForceUpLevel0      bool

	Formats      map[int]string // file.format.per.level
	Compressions map[int]string // file.compression.per.level
	StatsModes   map[int]string // metadata.stats-mode.per.level

	ExpireSeconds int64  // record-level.expire-time; -1 is none
	ExpireField   string // record-level.time-field
}

func (p *optionParser) mergeTree() MergeTree {
	m := MergeTree{
		Engine:             strings.ToLower(p.text("merge-engine", "deduplicate")),
		SequenceFields:     p.list("sequence.field"),
		ThinMode:           p.boolean("data-file.thin-mode", false),
		ChangelogProducer:  strings.ToLower(p.text("changelog-producer", "none")),
		RunTrigger:         p.integer("num-sorted-run.compaction-trigger", 5, 1, math.MaxInt32-1),
		MaxSizeAmp:         p.integer("compaction.max-size-amplification-percent", 200, 0, math.MaxInt32),
		SizeRatio:          p.integer("compaction.size-ratio", 1, 0, math.MaxInt32),
		OffPeakStart:       p.integer("compaction.offpeak.start.hour", -1, -1, 23),
		OffPeakEnd:         p.integer("compaction.offpeak.end.hour", -1, -1, 23),
		OffPeakRatio:       p.integer("compaction.offpeak-ratio", 0, 0, math.MaxInt32),
		FullIntervalMillis: p.millis("compaction.optimization-interval", -1),
		TotalSize:          p.size("compaction.total-size-threshold", -1, 0),
		IncrementalSize:    p.size("compaction.incremental-size-threshold", -1, 0),
		ForceUpLevel0:      p.boolean("compaction.force-up-level-0", false),
		Formats:            p.byLevel("file.format.per.level"),
		Compressions:       p.byLevel("file.compression.per.level"),
		StatsModes:         p.byLevel("metadata.stats-mode.per.level"),
		ExpireSeconds:      -1,
		ExpireField:        p.text("record-level.time-field", ""),
	}
	if millis := p.millis("record-level.expire-time", -1); millis >= 0 {
		m.ExpireSeconds = millis / 1000
	}
	m.Levels = p.integer("num-levels", m.RunTrigger+1, 2, math.MaxInt32)
	switch order := strings.ToLower(p.text("sequence.field.sort-order", "ascending")); order {
	case "ascending":
	case "descending":
		m.SequenceDescends = true
	default:
		p.fail("sequence.field.sort-order", order, "ascending or descending")
	}
	return m
}

// list reads names separated by commas.
func (p *optionParser) list(key string) []string {
	v, ok := p.lookup(key)
	if !ok || strings.TrimSpace(v) == "" {
		return nil
	}
	names := strings.Split(v, ",")
	for i, n := range names {
		names[i] = strings.TrimSpace(n)
	}
	return names
}

// byLevel reads a map such as 0:lz4,1:zstd.
func (p *optionParser) byLevel(key string) map[int]string {
	v, ok := p.lookup(key)
	if !ok || strings.TrimSpace(v) == "" {
		return nil
	}
	levels := map[int]string{}
	for _, entry := range strings.Split(v, ",") {
		level, value, ok := strings.Cut(entry, ":")
		n, err := strconv.Atoi(strings.TrimSpace(level))
		if !ok || err != nil || n < 0 {
			p.fail(key, v, "levels with values, such as 0:lz4,1:zstd")
			return nil
		}
		levels[n] = strings.ToLower(strings.TrimSpace(value))
	}
	return levels
}

// FormatAt is the format of files that are written to a level.
func (o Options) FormatAt(level int) string {
	if f, ok := o.MergeTree.Formats[level]; ok {
		return f
	}
	return o.FileFormat
}

// CompressionAt is the compression of files that are written to a level.
func (o Options) CompressionAt(level int) string {
	if c, ok := o.MergeTree.Compressions[level]; ok {
		return c
	}
	return o.Compression
}

// KeyFields returns the columns by which the files of a bucket are sorted: the
// primary key without the partition columns (reference: TableSchema.trimmedPrimaryKeys).
func (s *Schema) KeyFields() []types.Field {
	var fields []types.Field
	for _, k := range s.PrimaryKeys {
		if !slices.Contains(s.PartitionKeys, k) {
			f, _ := s.Field(k)
			fields = append(fields, f)
		}
	}
	return fields
}

func (s *Schema) checkKeys() error {
	if len(s.PrimaryKeys) == 0 {
		return nil
	}
	fields := s.KeyFields()
	if len(fields) == 0 {
		return fmt.Errorf("schema %d has the primary key %v, which is all partition columns", s.ID, s.PrimaryKeys)
	}
	for _, f := range fields {
		if !f.Type.Scalar() {
			return fmt.Errorf("schema %d has the column %s of type %s in its primary key: %w", s.ID, f.Name, f.Type, ErrUnsupported)
		}
	}
	return nil
}
