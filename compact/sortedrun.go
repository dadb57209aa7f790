package compact

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// SortedRun is files of one bucket whose keys ascend from each to the next, none
// overlapping (reference: SortedRun). In level 0 every file is a run of its own.
type SortedRun struct {
	Level int32
	Files []*snapshot.ManifestEntry
}

// Bytes is the size of the run's files.
func (r SortedRun) Bytes() int64 { return totalSize(r.Files) }

// Section is runs whose key ranges overlap with each other and with no other
// section (reference: IntervalPartition).
type Section []SortedRun

// keyRanges knows the lowest and the highest key of files.
type keyRanges struct {
	kinds  []types.Kind
	ranges map[*snapshot.ManifestEntry]keyRange
}

type keyRange struct{ min, max []types.Value }

// newKeyRanges decodes the key ranges of files; they come from manifests and are
// not trusted.
func newKeyRanges(s *table.Schema, files []*snapshot.ManifestEntry) (*keyRanges, error) {
	k := &keyRanges{ranges: map[*snapshot.ManifestEntry]keyRange{}}
	var ts []types.Type
	for _, f := range s.KeyFields() {
		ts, k.kinds = append(ts, f.Type), append(k.kinds, f.Type.Kind)
	}
	for _, e := range files {
		low, err := binrow.Decode(e.File.MinKey, ts)
		if err != nil {
			return nil, fmt.Errorf("data file %s: lowest key: %w", e.File.FileName, err)
		}
		high, err := binrow.Decode(e.File.MaxKey, ts)
		if err != nil {
			return nil, fmt.Errorf("data file %s: highest key: %w", e.File.FileName, err)
		}
		if k.compare(low, high) > 0 {
			return nil, fmt.Errorf("data file %s: its lowest key is above its highest", e.File.FileName)
		}
		k.ranges[e] = keyRange{low, high}
	}
	return k, nil
}

func (k *keyRanges) compare(a, b []types.Value) int {
	for i, kind := range k.kinds {
		if c := types.Compare(kind, a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func (k *keyRanges) sort(files []*snapshot.ManifestEntry) {
	slices.SortStableFunc(files, func(a, b *snapshot.ManifestEntry) int {
		x, y := k.ranges[a], k.ranges[b]
		return cmp.Or(k.compare(x.min, y.min), k.compare(x.max, y.max))
	})
}

// newestFirst orders files of level 0 (reference: Levels).
func newestFirst(a, b *snapshot.ManifestEntry) int {
	created := func(e *snapshot.ManifestEntry) int64 {
		if e.File.CreationTime == nil {
			return 0
		}
		return *e.File.CreationTime
	}
	return cmp.Or(
		cmp.Compare(b.File.MaxSequenceNumber, a.File.MaxSequenceNumber), cmp.Compare(a.File.MinSequenceNumber, b.File.MinSequenceNumber),
		cmp.Compare(created(a), created(b)), cmp.Compare(a.File.FileName, b.File.FileName))
}

// levelRuns are the runs of a bucket: the files of level 0, newest first, then
// the levels that have files.
func levelRuns(files []*snapshot.ManifestEntry, keys *keyRanges) ([]SortedRun, error) {
	levels := map[int32][]*snapshot.ManifestEntry{}
	for _, f := range files {
		if f.File.Level < 0 {
			return nil, fmt.Errorf("data file %s is at level %d", f.File.FileName, f.File.Level)
		}
		levels[f.File.Level] = append(levels[f.File.Level], f)
	}
	slices.SortFunc(levels[0], newestFirst)
	var runs []SortedRun
	for _, f := range levels[0] {
		runs = append(runs, SortedRun{Files: []*snapshot.ManifestEntry{f}})
	}
	delete(levels, 0)
	var numbers []int32
	for level := range levels {
		numbers = append(numbers, level)
	}
	slices.Sort(numbers)
	for _, level := range numbers {
		run := SortedRun{Level: level, Files: levels[level]}
		keys.sort(run.Files)
		for i, f := range run.Files[1:] {
			if before := run.Files[i]; keys.compare(keys.ranges[before].max, keys.ranges[f].min) >= 0 {
				return nil, fmt.Errorf("data files %s and %s of level %d have overlapping keys", before.File.FileName, f.File.FileName, level)
			}
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// sections splits files into sections in the order of their keys, each with as
// few runs as possible.
func sections(files []*snapshot.ManifestEntry, keys *keyRanges) []Section {
	sorted := slices.Clone(files)
	keys.sort(sorted)
	var all []Section
	for len(sorted) > 0 {
		n, bound := 1, keys.ranges[sorted[0]].max
		for n < len(sorted) && keys.compare(keys.ranges[sorted[n]].min, bound) <= 0 {
			if end := keys.ranges[sorted[n]].max; keys.compare(end, bound) > 0 {
				bound = end
			}
			n++
		}
		all = append(all, section(sorted[:n], keys))
		sorted = sorted[n:]
	}
	return all
}

// section puts files, sorted by key, into runs: each goes to the run that ends
// first, if that ends before it.
func section(files []*snapshot.ManifestEntry, keys *keyRanges) Section {
	h := &runHeap{keys: keys}
	for _, f := range files {
		if len(h.runs) > 0 && keys.compare(h.end(0), keys.ranges[f].min) < 0 {
			h.runs[0].Files = append(h.runs[0].Files, f)
			heap.Fix(h, 0)
			continue
		}
		heap.Push(h, SortedRun{Files: []*snapshot.ManifestEntry{f}})
	}
	return h.runs
}

// runHeap has the run that ends first at its top.
type runHeap struct {
	runs []SortedRun
	keys *keyRanges
}

func (h *runHeap) end(i int) []types.Value {
	files := h.runs[i].Files
	return h.keys.ranges[files[len(files)-1]].max
}

func (h *runHeap) Len() int           { return len(h.runs) }
func (h *runHeap) Less(i, j int) bool { return h.keys.compare(h.end(i), h.end(j)) < 0 }
func (h *runHeap) Swap(i, j int)      { h.runs[i], h.runs[j] = h.runs[j], h.runs[i] }
func (h *runHeap) Push(x any)         { h.runs = append(h.runs, x.(SortedRun)) }

func (h *runHeap) Pop() any {
	last := h.runs[len(h.runs)-1]
	h.runs = h.runs[:len(h.runs)-1]
	return last
}
