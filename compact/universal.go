package compact

import (
	"time"

	"tablectl/snapshot"
	"tablectl/table"
)

// unit is what a compaction of a bucket takes: its first runs, which go to one
// level (reference: CompactUnit).
type unit struct {
	files []*snapshot.ManifestEntry
	level int32
	// alone says that the files are rewritten one by one.
	alone bool
}

// universal picks the runs to merge in one bucket (reference:
// UniversalCompaction and what is around it).
type universal struct {
	options  table.MergeTree
	runs     []SortedRun
	maxLevel int32
	now      time.Time
	// fullAt is when the bucket was last compacted as a whole, as far as its
	// files tell.
	fullAt *time.Time
}

// maxLevel is the highest level of a bucket.
func maxLevel(o table.MergeTree, runs []SortedRun) int32 {
	highest := int32(o.Levels - 1)
	for _, r := range runs {
		highest = max(highest, r.Level)
	}
	return highest
}

func (u *universal) all() *unit { return u.unit(len(u.runs), u.maxLevel) }

func (u *universal) unit(count int, level int32) *unit {
	picked := &unit{level: level}
	for _, r := range u.runs[:count] {
		picked.files = append(picked.files, r.Files...)
	}
	return picked
}

// full takes everything, unless it is at the highest level already and no file
// of it has to be rewritten.
func (u *universal) full(rewrite func(*snapshot.ManifestEntry) bool) *unit {
	if len(u.runs) == 0 {
		return nil
	}
	if len(u.runs) > 1 || u.runs[0].Level != u.maxLevel {
		return u.all()
	}
	picked := &unit{level: u.maxLevel, alone: true}
	for _, f := range u.runs[0].Files {
		if rewrite(f) {
			picked.files = append(picked.files, f)
		}
	}
	if len(picked.files) == 0 {
		return nil
	}
	return picked
}

// minor takes as few runs as keep the bucket in shape, or none.
func (u *universal) minor() *unit {
	picked := u.pick()
	if picked == nil && u.options.ForceUpLevel0 {
		picked = u.level0()
	}
	if picked == nil || len(picked.files) == 0 || len(picked.files) == 1 && picked.files[0].File.Level == picked.level {
		return nil
	}
	return picked
}

func (u *universal) pick() *unit {
	trigger := u.options.RunTrigger
	switch {
	case u.early(), u.amplified():
		return u.all()
	case len(u.runs) < trigger:
		return nil
	}
	if picked := u.bySize(1, false); picked != nil {
		return picked
	}
	if len(u.runs) > trigger {
		return u.bySize(len(u.runs)-trigger+1, false)
	}
	return nil
}

// early reports whether options ask for a full compaction (reference:
// EarlyFullCompaction).
func (u *universal) early() bool {
	if len(u.runs) < 2 {
		return false
	}
	o := u.options
	var total, incremental int64
	for _, r := range u.runs {
		total += r.Bytes()
		if r.Level != u.maxLevel {
			incremental += r.Bytes()
		}
	}
	due := o.FullIntervalMillis >= 0 && (u.fullAt == nil || u.now.Sub(*u.fullAt).Milliseconds() > o.FullIntervalMillis)
	return due || o.TotalSize >= 0 && total < o.TotalSize || o.IncrementalSize >= 0 && incremental > o.IncrementalSize
}

// amplified reports whether the newer runs are large compared with the oldest.
func (u *universal) amplified() bool {
	if len(u.runs) < u.options.RunTrigger || len(u.runs) == 0 {
		return false
	}
	var newer float64
	for _, r := range u.runs[:len(u.runs)-1] {
		newer += float64(r.Bytes())
	}
	return newer*100 > float64(u.options.MaxSizeAmp)*float64(u.runs[len(u.runs)-1].Bytes())
}

// bySize takes at least count runs and those after them as long as they are not
// larger than what was taken.
func (u *universal) bySize(count int, forced bool) *unit {
	triggered := forced || count > 1
	var size float64
	for _, r := range u.runs[:count] {
		size += float64(r.Bytes())
	}
	percent := 100 + float64(u.options.SizeRatio) + float64(u.offPeak())
	for _, next := range u.runs[count:] {
		if size*percent/100 < float64(next.Bytes()) && (!triggered || next.Level > 1) {
			break
		}
		size += float64(next.Bytes())
		count++
		triggered = true
	}
	if !triggered {
		return nil
	}
	return u.below(count)
}

// below is the unit of the first runs: it goes right above the level of the next
// run, which is 2 or more.
func (u *universal) below(count int) *unit {
	if count == len(u.runs) {
		return u.all()
	}
	return u.unit(count, u.runs[count].Level-1)
}

func (u *universal) level0() *unit {
	count := 0
	for count < len(u.runs) && u.runs[count].Level == 0 {
		count++
	}
	if count == 0 {
		return nil
	}
	return u.bySize(count, true)
}

// offPeak is what is added to the size ratio at this hour (reference:
// OffPeakHours).
func (u *universal) offPeak() int {
	start, end, hour := u.options.OffPeakStart, u.options.OffPeakEnd, u.now.Hour()
	switch {
	case start < 0 || end < 0 || start == end:
		return 0
	case start < end && (hour < start || hour >= end), start > end && hour < start && hour >= end:
		return 0
	}
	return u.options.OffPeakRatio
}
