package compact

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// MergeUnit is the part of a Task that is particular to tables with primary keys:
// where the merged files go, and how (reference: CompactUnit, MergeTreeCompactTask).
type MergeUnit struct {
	Level      int32 // of the outputs
	DropDelete bool  // nothing older is left that a delete would have to hide
	Steps      []MergeStep
}

// MergeStep either lifts a file to the level of the unit as it is, or merges
// sections, in the order of their keys, into new files.
type MergeStep struct {
	Upgrade  *snapshot.ManifestEntry
	Sections []Section
}

// mergeTree plans a bucket of a table with primary keys.
func (p *planner) mergeTree(b snapshot.Bucket, strategy Strategy) error {
	keys, err := snapshot.NewKeyRanges(p.schema, b.Files)
	if err != nil {
		return err
	}
	runs, err := levelRuns(b.Files, keys)
	if err != nil {
		return err
	}
	o := p.options.MergeTree
	u := &universal{options: o, runs: runs, maxLevel: maxLevel(o, runs), now: p.now}
	u.fullAt = lastFull(runs, u.maxLevel, p.now.Location())
	m := &mergePlanner{planner: p, keys: keys, maxLevel: u.maxLevel}
	picked := u.minor()
	if strategy == Full {
		picked = u.full(m.mustRewrite)
	} else if picked != nil && !p.mergesApart(picked, b.Files) {
		picked = u.all()
	}
	if picked == nil {
		reason := SkipFewRuns
		if strategy == Full {
			reason = SkipMerged
		}
		p.skip(reason, len(b.Files))
		return nil
	}
	highest := runs[len(runs)-1].Level
	m.unit = MergeUnit{Level: picked.level, DropDelete: picked.level != 0 && picked.level >= highest}
	m.plan(picked)
	if len(m.unit.Steps) == 0 {
		p.skip(SkipMerged, len(b.Files))
		return nil
	}
	if f := p.options.FormatAt(int(picked.level)); f != "parquet" && m.writes() {
		return fmt.Errorf("files of level %d are to be written as %s (file.format, file.format.per.level): only parquet can be written: %w",
			picked.level, f, table.ErrUnsupported)
	}
	inputs := m.inputs()
	p.skip(SkipMerged, len(b.Files)-len(inputs))
	p.plan.Tasks = append(p.plan.Tasks, Task{
		Partition: b.Partition, Bucket: b.Number, TotalBuckets: b.TotalBuckets, Inputs: inputs, Merge: &m.unit,
	})
	return nil
}

// mergesApart reports whether the files of a unit can be merged without the others
// of their bucket and no row changes by it.
func (p *planner) mergesApart(picked *unit, files []*snapshot.ManifestEntry) bool {
	if len(picked.files) == len(files) {
		return true
	}
	in := map[*snapshot.ManifestEntry]bool{}
	oldest, retracts := int64(math.MaxInt64), false
	for _, e := range picked.files {
		in[e] = true
		oldest = min(oldest, e.File.MinSequenceNumber)
		retracts = retracts || mayRetract(e)
	}
	ordered := len(p.options.MergeTree.SequenceFields) == 0
	for _, e := range files {
		ordered = ordered && (in[e] || e.File.MaxSequenceNumber < oldest)
	}
	return p.engine.InParts(ordered, retracts)
}

// mayRetract reports whether a file may have rows that retract others.
func mayRetract(e *snapshot.ManifestEntry) bool {
	return e.File.DeleteRowCount == nil || *e.File.DeleteRowCount > 0
}

// lastFull is when the newest file of the highest level was made.
func lastFull(runs []SortedRun, level int32, zone *time.Location) *time.Time {
	var newest *time.Time
	for _, r := range runs {
		if r.Level != level {
			continue
		}
		for _, f := range r.Files {
			if f.File.CreationTime == nil {
				continue
			}
			wall := time.UnixMilli(*f.File.CreationTime).UTC()
			t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), zone)
			if newest == nil || t.After(*newest) {
				newest = &t
			}
		}
	}
	return newest
}

// mergePlanner makes the steps of one unit.
type mergePlanner struct {
	*planner
	keys     *snapshot.KeyRanges
	maxLevel int32
	unit     MergeUnit
	pending  []Section
}

func (m *mergePlanner) plan(picked *unit) {
	if picked.alone {
		for _, f := range picked.files {
			m.merge(alone(f))
		}
		return
	}
	for _, s := range sections(picked.files, m.keys) {
		if len(s) > 1 {
			m.pending = append(m.pending, s)
			continue
		}
		for _, f := range s[0].Files {
			if f.File.FileSize < m.options.SmallFileSize() {
				m.pending = append(m.pending, alone(f))
				continue
			}
			m.flush()
			m.upgrade(f)
		}
	}
	m.flush()
}

func alone(f *snapshot.ManifestEntry) Section {
	return Section{{Level: f.File.Level, Files: []*snapshot.ManifestEntry{f}}}
}

func (m *mergePlanner) merge(s ...Section) {
	m.unit.Steps = append(m.unit.Steps, MergeStep{Sections: s})
}

// flush merges what is pending, or lifts it where there is nothing to merge with.
func (m *mergePlanner) flush() {
	switch {
	case len(m.pending) == 1 && len(m.pending[0]) == 1:
		for _, f := range m.pending[0][0].Files {
			m.upgrade(f)
		}
	case len(m.pending) > 0:
		m.merge(m.pending...)
	}
	m.pending = nil
}

func (m *mergePlanner) upgrade(f *snapshot.ManifestEntry) {
	switch {
	case m.unit.Level == m.maxLevel && mayRetract(f), m.mustRewrite(f):
		m.merge(alone(f))
	case f.File.Level != m.unit.Level:
		m.unit.Steps = append(m.unit.Steps, MergeStep{Upgrade: f})
	}
}

// mustRewrite reports whether a file is rewritten even where it could stay as it is.
func (m *mergePlanner) mustRewrite(f *snapshot.ManifestEntry) bool {
	return m.options.ForceRewriteAll || m.expired(f)
}

// expired reports whether the statistics of a file tell that it has expired rows.
func (m *mergePlanner) expired(f *snapshot.ManifestEntry) bool {
	return m.expire != nil && m.expire.hasExpired(m.schema, f)
}

// writes reports whether some step writes a file.
func (m *mergePlanner) writes() bool {
	for _, s := range m.unit.Steps {
		if s.Upgrade == nil {
			return true
		}
	}
	return false
}

// inputs are the files that the steps replace, in their order.
func (m *mergePlanner) inputs() []*snapshot.ManifestEntry {
	var all []*snapshot.ManifestEntry
	for _, s := range m.unit.Steps {
		all = append(all, s.files()...)
	}
	return all
}

func (s MergeStep) files() []*snapshot.ManifestEntry {
	if s.Upgrade != nil {
		return []*snapshot.ManifestEntry{s.Upgrade}
	}
	var all []*snapshot.ManifestEntry
	for _, section := range s.Sections {
		for _, r := range section {
			all = append(all, r.Files...)
		}
	}
	return all
}

// expiry decides about rows by the time that one of their columns holds
// (reference: RecordLevelExpire).
type expiry struct {
	field  types.Field
	column int   // index of the field
	before int64 // rows of an earlier second are expired
}

// newExpiry returns nil for tables whose rows do not expire.
func newExpiry(s *table.Schema, o table.MergeTree, now time.Time) (*expiry, error) {
	if o.ExpireSeconds < 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	e := &expiry{before: now.Unix() - o.ExpireSeconds, column: -1}
	for i, f := range s.Fields {
		if f.Name == o.ExpireField {
			e.field, e.column = f, i
		}
	}
	if e.column < 0 {
		return nil, fmt.Errorf("option record-level.time-field=%s: expected a column of the table: %w", o.ExpireField, table.ErrInvalid)
	}
	switch e.field.Type.Kind {
	case types.Int, types.BigInt, types.Timestamp, types.TimestampLTZ:
	default:
		return nil, fmt.Errorf("option record-level.time-field=%s: a column of type %s, expected INT, BIGINT or TIMESTAMP: %w",
			o.ExpireField, e.field.Type, table.ErrInvalid)
	}
	return e, nil
}

// millisFrom is the number from which a BIGINT counts milliseconds, not seconds.
const millisFrom = 1_000_000_000_000

func (e *expiry) expired(v types.Value) bool {
	seconds := v.Int
	switch kind := e.field.Type.Kind; {
	case kind == types.Timestamp, kind == types.TimestampLTZ, kind == types.BigInt && seconds >= millisFrom:
		seconds /= 1000
	}
	return seconds < e.before
}

// hasExpired reports whether the statistics of a file tell that it has expired
// rows. Of files of older schemas they are not looked at.
func (e *expiry) hasExpired(s *table.Schema, f *snapshot.ManifestEntry) bool {
	at := e.column
	if names := f.File.ValueStatsCols; names != nil {
		at = slices.Index(names, e.field.Name)
	}
	if f.File.SchemaID != s.ID || at < 0 {
		return false
	}
	row, err := binrow.Parse(f.File.ValueStats.Min)
	if err != nil || at >= row.Arity() {
		return false
	}
	low, err := row.Value(at, e.field.Type)
	return err == nil && !low.Null && e.expired(low)
}
