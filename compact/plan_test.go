package compact

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tablectl/internal/binrow"
	"tablectl/internal/bytesize"
	"tablectl/snapshot"
	"tablectl/table"
)

var updatePlans = flag.Bool("update", false, "rewrite the expected plans in testdata/plan")

// planFile is a file as planning sees it. It has a hundred rows, so its sequence
// numbers begin at a hundred times seq.
func planFile(size, seq int64) *snapshot.ManifestEntry {
	return &snapshot.ManifestEntry{File: snapshot.DataFile{
		FileName: fmt.Sprintf("%d.parquet", seq), FileSize: size, RowCount: 100, MinSequenceNumber: seq * 100, MaxSequenceNumber: seq*100 + 99,
	}}
}

func planBucket(number, total int32, files ...*snapshot.ManifestEntry) snapshot.Bucket {
	return snapshot.Bucket{Partition: binrow.Empty(), Number: number, TotalBuckets: total, Files: files}
}

// rolled is how large the outputs of a task are when they have as many bytes as
// its inputs: they roll at the target size, and the last one may take up a tail
// that would be small.
func rolled(o table.Options, t Task) []int64 {
	var outputs []int64
	left := t.Bytes()
	for left > 0 {
		size := min(left, o.TargetFileSize)
		if left -= size; t.AbsorbTail && left < o.SmallFileSize() {
			size, left = size+left, 0
		}
		outputs = append(outputs, size)
	}
	return outputs
}

// afterRun is what the buckets hold once a plan was carried out.
func afterRun(o table.Options, buckets []snapshot.Bucket, plan *Plan) []snapshot.Bucket {
	after := make([]snapshot.Bucket, len(buckets))
	for i, b := range buckets {
		after[i] = b
		after[i].Files = slices.Clone(b.Files)
		for _, t := range plan.Tasks {
			if t.Bucket != b.Number {
				continue
			}
			after[i].Files = slices.DeleteFunc(after[i].Files, func(f *snapshot.ManifestEntry) bool { return slices.Contains(t.Inputs, f) })
			for n, size := range rolled(o, t) {
				f := planFile(size, 0)
				f.File.FileName = fmt.Sprintf("%d-%s", n, t.Inputs[0].File.FileName)
				f.File.MinSequenceNumber = t.Inputs[0].File.MinSequenceNumber + int64(n)
				f.File.MaxSequenceNumber = f.File.MinSequenceNumber
				after[i].Files = append(after[i].Files, f)
			}
		}
	}
	return after
}

func mustPlan(t rapid.TB, o table.Options, buckets []snapshot.Bucket, strategy Strategy) *Plan {
	t.Helper()
	plan, err := NewPlan(Definition{Schema: &table.Schema{}, Options: o}, nil, buckets, strategy)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// planScript is one case of a file in testdata/plan:
//
//	plan [minor]
//	key=value          options of the table
//	bucket 0 of 2      the files that follow; without it, bucket 0 of none
//	size seq, size seq external
//	----   and the plan behind it
//
// For tables with primary keys see keyedFile.
type planScript struct {
	strategy Strategy
	options  map[string]string
	buckets  []snapshot.Bucket
	keyed    bool
	now      time.Time
}

// definition is the table of the script.
func (c planScript) definition(o table.Options) Definition {
	if c.keyed {
		return Definition{Schema: keyedSchema, Options: o, Now: c.now}
	}
	return Definition{Schema: &table.Schema{}, Options: o}
}

// oddFiles are words behind a file that make it one that cannot be rewritten.
var oddFiles = map[string]func(*snapshot.DataFile){
	"orc":      func(f *snapshot.DataFile) { f.FileName = "x.orc" },
	"orc.zst":  func(f *snapshot.DataFile) { f.FileName = "x.orc.zst" },
	"level":    func(f *snapshot.DataFile) { f.Level = 1 },
	"external": func(f *snapshot.DataFile) { f.ExternalPath = &f.FileName },
	"row-ids":  func(f *snapshot.DataFile) { f.FirstRowID = &f.RowCount },
	"columns":  func(f *snapshot.DataFile) { f.WriteCols = []string{} },
	"extra":    func(f *snapshot.DataFile) { f.ExtraFiles = []string{"x.index", "x.row"} },
	"indexed":  func(f *snapshot.DataFile) { f.ExtraFiles = []string{"x.index"} }, // can be
}

func parsePlanScript(lines []string) (planScript, error) {
	c := planScript{options: map[string]string{}}
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "plan"); ok {
			c.strategy = cmp.Or(Strategy(strings.TrimSpace(rest)), Full)
			continue
		}
		if hour, ok := strings.CutPrefix(line, "primary key, at "); ok {
			now, err := time.ParseInLocation("15:04", hour, planZone)
			if err != nil {
				return c, err
			}
			c.keyed, c.now = true, now
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok {
			c.options[key] = value
			continue
		}
		var number, total int32
		if n, _ := fmt.Sscanf(line, "bucket %d of %d", &number, &total); n == 2 {
			c.buckets = append(c.buckets, planBucket(number, total))
			continue
		}
		if len(c.buckets) == 0 {
			c.buckets = append(c.buckets, planBucket(0, -1))
		}
		b := &c.buckets[len(c.buckets)-1]
		for f := range strings.SplitSeq(line, ",") {
			words := strings.Fields(f)
			bytes, err := bytesize.Parse(words[0])
			n, err2 := strconv.ParseInt(words[1], 10, 64)
			if err := errors.Join(err, err2); err != nil {
				return c, err
			}
			file := planFile(bytes, n)
			if c.keyed {
				if err := keyedFile(&file.File, words[2:]); err != nil {
					return c, err
				}
				b.Files = append(b.Files, file)
				continue
			}
			for _, odd := range words[2:] {
				oddFiles[odd](&file.File)
			}
			b.Files = append(b.Files, file)
		}
	}
	return c, nil
}

// text is the plan, as the files in testdata/plan hold it.
func (c planScript) text(t *testing.T) string {
	o, err := table.ParseOptions(c.options, nil)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	plan, err := NewPlan(c.definition(o), nil, c.buckets, c.strategy)
	if err != nil {
		return err.Error() + "\n"
	}
	for _, task := range plan.Tasks {
		if task.Merge != nil {
			b.WriteString(mergeText(task))
			continue
		}
		b.WriteString("task")
		if len(c.buckets) > 1 {
			fmt.Fprintf(&b, " of bucket %d", task.Bucket)
		}
		b.WriteString(":")
		for _, f := range task.Inputs {
			fmt.Fprintf(&b, " %d@%d", f.File.FileSize, f.File.MinSequenceNumber/100)
		}
		fmt.Fprintf(&b, " → %s\n", strings.Trim(fmt.Sprint(rolled(o, task)), "[]"))
	}
	for _, reason := range slices.Sorted(maps.Keys(plan.Skipped)) {
		fmt.Fprintf(&b, "skipped: %d %s\n", plan.Skipped[reason], reason)
	}
	after := afterRun
	if c.keyed {
		after = afterMerge
	}
	again, err := NewPlan(c.definition(o), nil, after(o, c.buckets, plan), c.strategy)
	if err != nil {
		t.Error(err)
	} else if len(again.Tasks) > 0 {
		fmt.Fprintf(&b, "the next run has %d tasks\n", len(again.Tasks))
	}
	return b.String()
}

func TestPlans(t *testing.T) {
	files, err := filepath.Glob("../testdata/plan/*.txt")
	if err != nil || len(files) < 7 {
		t.Fatalf("found %d plans: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			blocks := strings.Split(strings.TrimSpace(string(data)), "\n\n")
			for i, block := range blocks {
				input, want, ok := strings.Cut(block+"\n", "\n----\n")
				input = strings.TrimSpace(input)
				lines := slices.DeleteFunc(strings.Split(input, "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
				if len(lines) == 0 {
					continue // a comment
				}
				c, err := parsePlanScript(lines)
				if err != nil {
					t.Fatalf("%s: %v", input, err)
				}
				got := c.text(t)
				if !*updatePlans && (!ok || got != want) {
					t.Errorf("%s\ngot\n%swant\n%s", input, got, want)
				}
				blocks[i] = strings.TrimSpace(input + "\n----\n" + got)
			}
			if *updatePlans {
				err = os.WriteFile(file, []byte(strings.Join(blocks, "\n\n")+"\n"), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// planWorld is a random bucket with random options: tiny and huge targets, files
// around every threshold. A total of -1 is a table without buckets.
func planWorld(t *rapid.T, total int32) (table.Options, []snapshot.Bucket) {
	target := rapid.SampledFrom([]int64{100, 1, 2, 10, 1000, 1 << 20, 10 << 20, 128 << 20, 256 << 20, 1 << 40}).Draw(t, "target")
	o := table.Options{
		Bucket: int(total), TargetFileSize: target, FileNumLimit: math.MaxInt32,
		SmallFileRatio: rapid.SampledFrom([]float64{0.7, 0.5, 0.1, 0.9, 1}).Draw(t, "ratio"),
		MinFileNum:     rapid.SampledFrom([]int{5, 1, 2, 3, 4, 10}).Draw(t, "min"),
		OpenFileCost:   rapid.SampledFrom([]int64{4 << 20, 0, 1, target / 50, target / 3, target, 3 * target}).Draw(t, "cost"),
	}
	var files []*snapshot.ManifestEntry
	percents := []int64{0, 1, 5, 10, 30, 49, 50, 60, 69, 70, 71, 99, 100, 101, 150, 200, 250}
	for i, percent := range rapid.SliceOfN(rapid.SampledFrom(percents), 0, 30).Draw(t, "sizes") {
		files = append(files, planFile(target/100*percent+target%100*percent/100+rapid.Int64Range(0, 2).Draw(t, "more"), int64(i+1)))
	}
	return o, []snapshot.Bucket{planBucket(0, total, files...)}
}

// describePlan has a line for the files and one for each task.
func describePlan(o table.Options, buckets []snapshot.Bucket, plan *Plan) string {
	sizes := func(files []*snapshot.ManifestEntry) (all []int64) {
		for _, f := range files {
			all = append(all, f.File.FileSize)
		}
		return all
	}
	s := fmt.Sprintf("target %d, small below %d, cost %d, min %d: %d", o.TargetFileSize, o.SmallFileSize(), o.OpenFileCost, o.MinFileNum, sizes(buckets[0].Files))
	for _, t := range plan.Tasks {
		s += fmt.Sprintf("\n%d → %d", sizes(t.Inputs), rolled(o, t))
	}
	return s
}

// checkPlans is rapid.Check with more cases, since planning is quick.
func checkPlans(t *testing.T, property func(*rapid.T)) {
	for range 30 {
		rapid.Check(t, property)
	}
}

// runsToRest is after how many runs a bucketed table has nothing left to do.
const runsToRest = 30

// TestPlanSettles carries plans out and plans again: a run that finds nothing new
// does nothing.
func TestPlanSettles(t *testing.T) {
	settle := func(t *rapid.T, o table.Options, buckets []snapshot.Bucket, strategy Strategy, runs int) {
		var history string
		for range runs {
			plan := mustPlan(t, o, buckets, strategy)
			history += describePlan(o, buckets, plan) + "\n"
			buckets = afterRun(o, buckets, plan)
		}
		if plan := mustPlan(t, o, buckets, strategy); len(plan.Tasks) > 0 {
			t.Fatalf("%s%s", history, describePlan(o, buckets, plan))
		}
	}
	t.Run("unaware", func(t *testing.T) {
		checkPlans(t, func(t *rapid.T) {
			o, buckets := planWorld(t, -1)
			settle(t, o, buckets, Full, 1)
		})
	})
	for _, strategy := range []Strategy{Full, Minor} {
		t.Run(string(strategy), func(t *testing.T) {
			checkPlans(t, func(t *rapid.T) {
				o, buckets := planWorld(t, 1)
				o.MinFileNum = max(o.MinFileNum, 3)
				settle(t, o, buckets, strategy, runsToRest)
			})
		})
	}
}

// TestPlanTasks checks what holds for the tasks of every plan.
func TestPlanTasks(t *testing.T) {
	checkPlans(t, func(t *rapid.T) {
		total := rapid.SampledFrom([]int32{-1, 1}).Draw(t, "total")
		o, buckets := planWorld(t, total)
		o.ForceRewriteAll = rapid.IntRange(0, 4).Draw(t, "force") == 0
		o.FileNumLimit = rapid.SampledFrom([]int{math.MaxInt32, 1, 7}).Draw(t, "limit")
		strategy := rapid.SampledFrom([]Strategy{Full, Minor}).Draw(t, "strategy")
		files := rapid.Permutation(buckets[0].Files).Draw(t, "order")
		plan := mustPlan(t, o, []snapshot.Bucket{planBucket(0, total, files...)}, strategy)

		seen, inputs, skipped := map[string]bool{}, 0, 0
		for _, task := range plan.Tasks {
			if len(task.Inputs) < 2 && !o.ForceRewriteAll || len(task.Inputs) == 0 {
				t.Fatalf("a task has %d inputs\n%s", len(task.Inputs), describePlan(o, buckets, plan))
			}
			if total < 0 && len(rolled(o, task)) > len(task.Inputs) && !o.ForceRewriteAll {
				t.Fatalf("a task makes more files than it takes\n%s", describePlan(o, buckets, plan))
			}
			for i, f := range task.Inputs {
				if seen[f.File.FileName] || !slices.Contains(files, f) {
					t.Fatalf("%s is in two tasks, or was never given\n%s", f.File.FileName, describePlan(o, buckets, plan))
				}
				seen[f.File.FileName], inputs = true, inputs+1
				if i > 0 && total > 0 && f.File.MinSequenceNumber != task.Inputs[i-1].File.MinSequenceNumber+100 {
					t.Fatalf("the files of a task are no neighbours\n%s", describePlan(o, buckets, plan))
				}
				if i > 0 && total < 0 && f.File.FileSize < task.Inputs[i-1].File.FileSize {
					t.Fatalf("the files of a task are not in the order of their size\n%s", describePlan(o, buckets, plan))
				}
				if total < 0 && !o.ForceRewriteAll && f.File.FileSize >= o.SmallFileSize() {
					t.Fatalf("a large file is taken\n%s", describePlan(o, buckets, plan))
				}
			}
		}
		for _, n := range plan.Skipped {
			skipped += n
		}
		if inputs+skipped != len(files) || total < 0 && inputs > o.FileNumLimit {
			t.Fatalf("%d files are planned and %d skipped, of %d\n%s", inputs, skipped, len(files), describePlan(o, buckets, plan))
		}
	})
}

// javaUnaware is what AppendCompactCoordinator does, written anew.
func javaUnaware(o table.Options, files []*snapshot.ManifestEntry) [][]*snapshot.ManifestEntry {
	small := slices.DeleteFunc(slices.Clone(files), func(f *snapshot.ManifestEntry) bool { return f.File.FileSize >= o.SmallFileSize() })
	slices.SortStableFunc(small, func(a, b *snapshot.ManifestEntry) int { return cmp.Compare(a.File.FileSize, b.File.FileSize) })
	var bins [][]*snapshot.ManifestEntry
	for len(small) > 0 {
		n, total := 0, int64(0)
		for n < len(small) && (n < 2 || total < 2*o.TargetFileSize) {
			total += small[n].File.FileSize + o.OpenFileCost
			n++
		}
		if full := n > 1 && total >= 2*o.TargetFileSize; !full && n < max(o.MinFileNum, 2) {
			break
		}
		bins, small = append(bins, small[:n]), small[n:]
	}
	return bins
}

// TestPlanLikeJava compares with the reference where that leaves nothing for the
// next run and makes fewer files than it takes.
func TestPlanLikeJava(t *testing.T) {
	same := 0
	checkPlans(t, func(t *rapid.T) {
		o, buckets := planWorld(t, -1)
		want := &Plan{}
		for _, bin := range javaUnaware(o, buckets[0].Files) {
			task := Task{TotalBuckets: -1, Inputs: bin}
			if want.Tasks = append(want.Tasks, task); len(rolled(o, task)) >= len(bin) {
				return
			}
		}
		if len(want.Tasks) == 0 || len(javaUnaware(o, afterRun(o, buckets, want)[0].Files)) > 0 {
			return
		}
		same++
		got := mustPlan(t, o, buckets, Full)
		if describePlan(o, buckets, got) != describePlan(o, buckets, want) {
			t.Fatalf("got %s\nwant %s", describePlan(o, buckets, got), describePlan(o, buckets, want))
		}
	})
	if same < 100 {
		t.Errorf("only %d plans of the reference were compared", same)
	}
}
