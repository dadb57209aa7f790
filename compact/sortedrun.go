package compact

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"

	"tablectl/snapshot"
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
func levelRuns(files []*snapshot.ManifestEntry, keys *snapshot.KeyRanges) ([]SortedRun, error) {
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
		keys.Sort(run.Files)
		if a, b := keys.Overlap(run.Files); a != nil {
			return nil, fmt.Errorf("data files %s and %s of level %d have overlapping keys", a.File.FileName, b.File.FileName, level)
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// sections splits files into sections in the order of their keys, each with as
// few runs as possible.
func sections(files []*snapshot.ManifestEntry, keys *snapshot.KeyRanges) []Section {
	sorted := slices.Clone(files)
	keys.Sort(sorted)
	var all []Section
	for len(sorted) > 0 {
		n, last := 1, sorted[0] // the one that ends last
		for n < len(sorted) && !keys.Before(last, sorted[n]) {
			if keys.CompareEnds(sorted[n], last) > 0 {
				last = sorted[n]
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
func section(files []*snapshot.ManifestEntry, keys *snapshot.KeyRanges) Section {
	h := &runHeap{keys: keys}
	for _, f := range files {
		if len(h.runs) > 0 && keys.Before(h.last(0), f) {
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
	keys *snapshot.KeyRanges
}

func (h *runHeap) last(i int) *snapshot.ManifestEntry {
	files := h.runs[i].Files
	return files[len(files)-1]
}

func (h *runHeap) Len() int           { return len(h.runs) }
func (h *runHeap) Less(i, j int) bool { return h.keys.CompareEnds(h.last(i), h.last(j)) < 0 }
func (h *runHeap) Swap(i, j int)      { h.runs[i], h.runs[j] = h.runs[j], h.runs[i] }
func (h *runHeap) Push(x any)         { h.runs = append(h.runs, x.(SortedRun)) }

func (h *runHeap) Pop() any {
	last := h.runs[len(h.runs)-1]
	h.runs = h.runs[:len(h.runs)-1]
	return last
}
