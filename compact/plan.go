package compact

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"tablectl/internal/merge"
	"tablectl/snapshot"
	"tablectl/table"
)

// Strategy says how much a run rewrites (reference: compact_strategy).
type Strategy string

// Full rewrites what is worth it; Minor joins only as many files as it takes.
// They differ for tables with buckets only.
const (
	Full  Strategy = "full"
	Minor Strategy = "minor"
)

// Task is a set of files of one bucket that are rewritten as one. Inputs are
// in the order in which their rows are written, or, of a merge, in that of its steps.
type Task struct {
	Partition    []byte
	Bucket       int32
	TotalBuckets int32
	Inputs       []*snapshot.ManifestEntry
	// AbsorbTail lets the last output grow beyond the target size rather than leave
	// a small file, which the next run would pick up again.
	AbsorbTail bool
	// Merge is set for tables with primary keys; the inputs are those of its steps.
	Merge *MergeUnit
}

// Bytes is the size of all inputs.
func (t Task) Bytes() int64 { return totalSize(t.Inputs) }

// Plan is what a run will rewrite and why the rest stays.
type Plan struct {
	Base    *snapshot.Snapshot
	Tasks   []Task
	Skipped map[Skip]int // files that are left alone, by reason
}

// Skip is a reason to leave files alone.
type Skip string

// The reasons. Large files are no candidates at all; too few small ones, or
// ones between large ones, are not worth a rewrite.
const (
	SkipLarge    Skip = "large_enough"
	SkipTooFew   Skip = "too_few_files"
	SkipBeyond   Skip = "beyond_file_num_limit"
	SkipPostpone Skip = "postpone_bucket"
	SkipMerged   Skip = "merged"              // of primary-key tables: where they belong already
	SkipFewRuns  Skip = "too_few_sorted_runs" // of primary-key tables: not worth a minor compaction
)

// maxWeight keeps sums of sizes, which come from metadata, from overflowing.
const maxWeight = math.MaxInt64 >> 20

// fullCompactMinFiles is how many files a bucket must have for a full rewrite.
const fullCompactMinFiles = 3

// NewPlan decides what to rewrite. It is pure: the same metadata gives the same
// plan. Files that cannot be rewritten are an error that wraps
// table.ErrUnsupported, but only where they would be rewritten.
func NewPlan(d Definition, base *snapshot.Snapshot, buckets []snapshot.Bucket, strategy Strategy) (*Plan, error) {
	p := &planner{options: d.Options, schema: d.Schema, now: d.Now, plan: &Plan{Base: base, Skipped: map[Skip]int{}}, room: d.Options.FileNumLimit}
	var err error
	if len(d.Schema.PrimaryKeys) == 0 {
		d.Options.MergeTree.ExpireSeconds = -1
	}
	if p.expire, err = newExpiry(d.Schema, d.Options.MergeTree, d.Now); err != nil {
		return nil, err
	}
	if len(d.Schema.PrimaryKeys) > 0 {
		if p.engine, err = newEngine(d.Schema, d.Options); err != nil {
			return nil, err
		}
	}
	for _, b := range buckets {
		switch {
		case b.Number == table.PostponeBucket:
			p.skip(SkipPostpone, len(b.Files))
		case len(d.Schema.PrimaryKeys) > 0:
			if err := p.mergeTree(b, strategy); err != nil {
				return nil, fmt.Errorf("bucket %d of partition %x: %w", b.Number, b.Partition, err)
			}
		case d.Options.Bucket > 0 || b.TotalBuckets > 0:
			p.bucketed(b, strategy)
		default:
			p.unaware(b)
		}
	}
	for _, t := range p.plan.Tasks {
		for _, e := range t.read() {
			if err := checkInput(e, t.Merge != nil); err != nil {
				return nil, err
			}
		}
	}
	return p.plan, nil
}

// Definition is what of a table a plan depends on, and when it is made.
type Definition struct {
	Schema  *table.Schema
	Options table.Options
	Now     time.Time
}

// read lists the inputs whose rows are read.
func (t Task) read() []*snapshot.ManifestEntry {
	if t.Merge == nil {
		return t.Inputs
	}
	var all []*snapshot.ManifestEntry
	for _, s := range t.Merge.Steps {
		if s.Upgrade == nil {
			all = append(all, s.files()...)
		}
	}
	return all
}

type planner struct {
	options table.Options
	schema  *table.Schema
	now     time.Time
	expire  *expiry
	engine  *merge.Engine
	plan    *Plan
	room    int // files that may still be put into tasks
}

func (p *planner) skip(reason Skip, files int) {
	if files > 0 {
		p.plan.Skipped[reason] += files
	}
}

func (p *planner) small(size int64) bool {
	return p.options.ForceRewriteAll || size < p.options.SmallFileSize()
}

func (p *planner) add(b snapshot.Bucket, inputs []*snapshot.ManifestEntry, absorbTail bool) {
	p.plan.Tasks = append(p.plan.Tasks, Task{
		Partition: b.Partition, Bucket: b.Number, TotalBuckets: b.TotalBuckets, Inputs: inputs, AbsorbTail: absorbTail,
	})
}

func totalSize(files []*snapshot.ManifestEntry) int64 {
	var n int64
	for _, f := range files {
		n += f.File.FileSize
	}
	return n
}

// unaware plans a partition of a table without buckets, whose rows have no
// order (reference: AppendCompactCoordinator).
func (p *planner) unaware(b snapshot.Bucket) {
	var candidates []*snapshot.ManifestEntry
	for _, f := range b.Files {
		switch {
		case !p.small(f.File.FileSize):
			p.skip(SkipLarge, 1)
		default:
			candidates = append(candidates, f)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *snapshot.ManifestEntry) int { return cmp.Compare(a.File.FileSize, b.File.FileSize) })
	sizes := make([]int64, len(candidates))
	for i, f := range candidates {
		sizes[i] = f.File.FileSize
	}
	bins, absorb := p.settle(sizes)
	taken := 0
	for _, n := range bins {
		task := candidates[taken : taken+n : taken+n]
		taken += n
		if n > p.room {
			p.skip(SkipBeyond, n-p.room)
			task = task[:p.room]
		}
		if len(task) == 1 && n > 1 {
			p.skip(SkipBeyond, 1)
			task = nil
		}
		if len(task) > 0 {
			p.room -= len(task)
			p.add(b, task, absorb)
		}
	}
	p.skip(SkipTooFew, len(candidates)-taken)
}

// pack cuts files, sorted by size, into bins, given as the number of files of
// each: a bin is full when it has two files and twice the target size, counting
// the cost of opening each file. What remains is a bin if it has enough files.
func (p *planner) pack(sizes []int64, openCost int64) []int {
	var bins []int
	files, weight := 0, int64(0)
	for _, size := range sizes {
		files++
		weight += min(size, maxWeight) + openCost
		if files > 1 && weight >= 2*p.options.TargetFileSize {
			bins = append(bins, files)
			files, weight = 0, 0
		}
	}
	if files >= max(p.options.MinFileNum, 2) || files == 1 && p.options.ForceRewriteAll {
		bins = append(bins, files)
	}
	return bins
}

// settle packs so that the next run finds nothing to do. The reference's bins
// are kept where they lead there. They do not where the cost of opening makes many
// bins of few bytes, or where many bins leave a small last file each; then bins
// are cut by bytes alone and their last files may grow.
func (p *planner) settle(sizes []int64) (bins []int, absorbTail bool) {
	bins = p.pack(sizes, p.options.OpenFileCost)
	if p.options.ForceRewriteAll || len(bins) == 0 || p.settled(sizes, bins, false) {
		return bins, false
	}
	bins = p.pack(sizes, 0)
	rest := len(sizes) - sum(bins)
	switch {
	case len(bins) == 0:
		bins = []int{len(sizes)}
	case rest > 0 && !p.settled(sizes, bins, true):
		// The rest would be picked up again together with small outputs.
		bins[len(bins)-1] += rest
	}
	if !p.settled(sizes, bins, true) {
		bins = []int{len(sizes)}
	}
	return bins, true
}

func sum(ns []int) int {
	total := 0
	for _, n := range ns {
		total += n
	}
	return total
}

// settled reports whether a run that rewrites the bins, with outputs as large as
// their inputs, leaves nothing to do.
func (p *planner) settled(sizes []int64, bins []int, absorbTail bool) bool {
	var next []int64
	taken := 0
	for _, n := range bins {
		var bin int64
		for _, s := range sizes[taken : taken+n] {
			bin += s
		}
		taken += n
		tail := bin % p.options.TargetFileSize
		if absorbTail && bin >= p.options.TargetFileSize {
			tail = 0
		}
		if tail > 0 && p.small(tail) {
			next = append(next, tail)
		}
	}
	next = append(next, sizes[taken:]...)
	slices.Sort(next)
	return len(p.pack(next, p.options.OpenFileCost)) == 0
}

// bucketed plans a bucket whose rows have an order: only neighbours in the order
// of sequence numbers are joined (reference: BucketedAppendCompactManager). A full
// compaction that finds nothing goes on with a minor one, as the reference's
// jobs do.
func (p *planner) bucketed(b snapshot.Bucket, strategy Strategy) {
	files := slices.Clone(b.Files)
	slices.SortStableFunc(files, func(a, b *snapshot.ManifestEntry) int {
		return cmp.Compare(a.File.MinSequenceNumber, b.File.MinSequenceNumber) // as readers order them
	})
	if strategy == Full && p.fullBucket(b, files) {
		return
	}
	p.minorBucket(b, files)
}

// fullBucket rewrites everything behind the leading large files if most of it
// is small.
func (p *planner) fullBucket(b snapshot.Bucket, files []*snapshot.ManifestEntry) bool {
	rest := files
	if !p.options.ForceRewriteAll {
		if len(files) < fullCompactMinFiles {
			return false
		}
		for len(rest) > 0 && !p.small(rest[0].File.FileSize) {
			rest = rest[1:]
		}
		small := 0
		for _, f := range rest {
			if p.small(f.File.FileSize) {
				small++
			}
		}
		if len(rest) < fullCompactMinFiles || small <= len(rest)-small {
			return false
		}
	}
	if len(rest) == 0 {
		return false
	}
	p.skip(SkipLarge, len(files)-len(rest))
	p.add(b, rest, true)
	return true
}

// run is a file, or the result of joining neighbours, while a minor compaction
// is planned.
type run struct {
	files []*snapshot.ManifestEntry
	size  int64
}

// minorBucket joins windows of neighbours until none has enough small files. The
// reference joins one window at a time and looks at the result again; here
// windows that follow each other become one task, with the same rows in the same
// order and no file written twice.
func (p *planner) minorBucket(b snapshot.Bucket, files []*snapshot.ManifestEntry) {
	var window []run
	var size int64
	leave := func(r run) {
		switch {
		case int64(len(r.files)) > max(1, r.size/p.options.TargetFileSize):
			p.add(b, r.files, true) // fewer files come out than go in
		case len(r.files) > 1:
			p.skip(SkipLarge, len(r.files))
		case p.small(r.size):
			p.skip(SkipTooFew, 1)
		default:
			p.skip(SkipLarge, 1)
		}
	}
	for _, f := range files {
		window = append(window, run{files: []*snapshot.ManifestEntry{f}, size: f.File.FileSize})
		size += f.File.FileSize
		switch {
		case len(window) >= max(p.options.MinFileNum, 2):
			joined := run{size: size}
			for _, r := range window {
				joined.files = append(joined.files, r.files...)
			}
			window, size = nil, 0
			if p.small(joined.size) {
				window, size = []run{joined}, joined.size // goes back to the head of the queue
			} else {
				leave(joined)
			}
		case size >= 2*p.options.TargetFileSize:
			size -= window[0].size
			leave(window[0])
			window = window[1:]
		}
	}
	for _, r := range window {
		leave(r)
	}
}

// checkInput refuses files that a rewrite would not carry over.
func checkInput(e *snapshot.ManifestEntry, keyed bool) error {
	f := e.File
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("data file %s %s: %w", f.FileName, fmt.Sprintf(format, args...), table.ErrUnsupported)
	}
	switch {
	case fileFormat(f.FileName) != "parquet":
		return refuse("is not in the format parquet")
	case f.ExternalPath != nil:
		return refuse("lies outside of the table, at %s", *f.ExternalPath)
	case f.FirstRowID != nil || f.WriteCols != nil:
		return refuse("has row ids or holds only some of the columns")
	case f.Level != 0 && !keyed:
		return refuse("is at level %d of a table without primary keys", f.Level)
	}
	for _, x := range f.ExtraFiles {
		if !strings.HasSuffix(x, ".index") {
			return refuse("has the extra file %s", x)
		}
	}
	return nil
}

// fileFormat is the format that a data file's name tells, looking through the
// extension of a compression.
func fileFormat(name string) string {
	ext := strings.TrimPrefix(path.Ext(name), ".")
	switch ext {
	case "zst", "gz", "snappy", "lz4", "br", "deflate", "bz2":
		ext = strings.TrimPrefix(path.Ext(strings.TrimSuffix(name, "."+ext)), ".")
	}
	return ext
}
