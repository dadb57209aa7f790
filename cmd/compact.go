package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"tablectl/compact"
	"tablectl/internal/bytesize"
	"tablectl/internal/lock"
	"tablectl/internal/version"
	"tablectl/snapshot"
	"tablectl/table"
)

const compactName = "compact"

func (a *app) compactCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   compactName + " [TABLE]",
		Short: "Merge small files and publish one COMPACT snapshot",
		Long: `compact reads the latest snapshot of a table, plans which files to merge,
merges them, and publishes the result as one snapshot of kind COMPACT. When
nothing is worth merging it publishes nothing. When a task fails, every file
that the run has written is removed and the table stays as it was.

TABLE is a table's folder, with $branch_NAME behind it for a branch, or
db.table inside of --warehouse.`,
		Example: `  tablectl compact /warehouse/shop.db/orders
  tablectl compact --warehouse /warehouse shop.orders --where "dt >= '2026-11-01'"
  tablectl compact --where p=a --commit-user etl --output json`,
		Args: tableArg,
		RunE: a.runCompact,
	}
	f := c.Flags()
	f.StringArray("where", nil, "partition filter, such as \"dt = '2026-11-01' AND hr < 12\"; repeated ones are combined with AND")
	f.StringArray("filter-json", nil, `the same as a dict, such as {"method":"equal","field":"dt","literals":["2026-11-01"]}`)
	f.String("commit-user", "", "the snapshot records USER-compact-<random>")
	f.String("strategy", string(compact.Full), "full or minor")
	f.Int("parallelism", 0, "tasks that run at once (default: the number of CPUs)")
	f.String("memory", "", "bound on the memory of the run, such as 2gb (default: from the cgroup or the machine)")
	f.Bool("verify", false, "before the commit, read outputs and inputs back and compare every column")
	f.StringArray("table-option", nil, "KEY=VALUE, overrides a stored table option for this run")
	addLockFlags(f)
	return c
}

// compactResult is the JSON document of a run.
type compactResult struct {
	header
	Table               string            `json:"table"`
	Status              string            `json:"status"`
	Tasks               int               `json:"tasks"`
	FilesRemoved        int               `json:"files_removed"`
	FilesAdded          int               `json:"files_added"`
	FilesUpgraded       int               `json:"files_upgraded"`
	RowsWritten         int64             `json:"rows_written"`
	BytesRemoved        int64             `json:"bytes_removed"`
	BytesAdded          int64             `json:"bytes_added"`
	ChangelogFilesAdded int               `json:"changelog_files_added"`
	SnapshotBefore      *int64            `json:"snapshot_before"`
	SnapshotAfter       *int64            `json:"snapshot_after"`
	CommitUser          *string           `json:"commit_user"`
	Attempts            int               `json:"attempts"`
	DurationMillis      int64             `json:"duration_ms"`
	Partitions          []compactedBucket `json:"partitions"`
	Lost                []lostBucket      `json:"lost"`
	Skipped             map[string]int    `json:"skipped"`
	LockedBy            *lock.Holder      `json:"locked_by"`
	Warnings            []string          `json:"warnings"`
	Error               *errorJSON        `json:"error"`
}

// compactedBucket is what a run did to one bucket.
type compactedBucket struct {
	Partition     map[string]any `json:"partition"`
	Bucket        int32          `json:"bucket"`
	FilesRemoved  int            `json:"files_removed"`
	FilesAdded    int            `json:"files_added"`
	FilesUpgraded int            `json:"files_upgraded"`
	RowsWritten   int64          `json:"rows_written"`
	BytesRemoved  int64          `json:"bytes_removed"`
	BytesAdded    int64          `json:"bytes_added"`
}

// lostBucket is a task that was given up, and why.
type lostBucket struct {
	Partition map[string]any `json:"partition"`
	Bucket    int32          `json:"bucket"`
	Message   string         `json:"message"`
}

const (
	statusCommitted = "committed"
	statusNothing   = "nothing_to_do"
	statusFailed    = "failed"
	statusUnknown   = "unknown"
)

// compactRun is what is known about a run, whatever becomes of it.
type compactRun struct {
	location string
	name     string       // of the table, where it is known although the table was not opened
	table    *table.Table // nil until it is open
	report   *compact.Report
	warnings []string        // beside those of the report, and logged already
	held     *lock.HeldError // who holds the table's lock, if another run does
}

func (r *compactRun) warn(a *app, warning string) {
	a.log.Warn(warning)
	r.warnings = append(r.warnings, warning)
}

func (a *app) runCompact(cmd *cobra.Command, args []string) error {
	// Nobody reading the output or the log any more must not kill the run half way.
	signal.Ignore(syscall.SIGPIPE)
	run := &compactRun{report: &compact.Report{}}
	err := withCause(cmd.Context(), a.compact(cmd, args, run))
	if err == nil && len(run.report.Lost) > 0 {
		err = &partlyError{lost: len(run.report.Lost), all: len(run.report.Plan.Tasks)}
	}
	return a.compactDone(run, err)
}

// compact is the run itself. What the user gave is checked first, as far as that
// needs no table; the table is opened once no other run holds its lock.
func (a *app) compact(cmd *cobra.Command, args []string, run *compactRun) error {
	var err error
	if run.location, err = a.config.location(args); err != nil {
		return err
	}
	options, overrides, err := a.compactOptions(cmd)
	if err != nil {
		return err
	}
	policy, err := a.lockPolicy()
	if err != nil {
		return err
	}
	release, err := a.lockTable(cmd.Context(), run, policy)
	if run.held != nil && policy.onLocked == lockedSkip {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	t, err := table.Load(cmd.Context(), a.files, run.location, overrides)
	if err != nil {
		return err
	}
	run.table = t
	if options.Filter, err = a.filter(cmd, t); err != nil {
		return err
	}
	options.OnEvent = func(e compact.Event) { a.logEvent(t, e) }
	a.log.Info("compacting", "table", t.Name(), "filter", options.Filter.String(), "strategy", options.Strategy, "memory", options.Memory)
	run.report, err = compact.Table(cmd.Context(), t, options)
	return err
}

// compactOptions checks everything that the user gave but the filter, which needs
// the table, and returns the table options for this run too.
func (a *app) compactOptions(cmd *cobra.Command) (compact.Options, map[string]string, error) {
	o := compact.Options{WriterVersion: version.Writer()}
	overrides, err := a.config.overrides(cmd)
	if err != nil {
		return o, nil, err
	}
	for k := range overrides {
		if !table.IsOption(k) {
			return o, nil, usageError(fmt.Errorf("table option %q: compaction knows no such option%s", k, suggestion(k, table.OptionNames())))
		}
	}
	if o.CommitUser = a.config.text("commit-user"); a.config.given("commit-user") {
		if err := checkCommitUser(o.CommitUser); err != nil {
			return o, nil, usageError(err)
		}
	}
	if o.Strategy = compact.Strategy(a.config.text("strategy")); o.Strategy != compact.Full && o.Strategy != compact.Minor {
		return o, nil, usageError(fmt.Errorf("--strategy %s: expected full or minor", o.Strategy))
	}
	if o.Parallelism, err = a.config.count("parallelism"); err != nil {
		return o, nil, err
	}
	if o.Verify, err = a.config.flag("verify"); err != nil {
		return o, nil, err
	}
	o.Memory = defaultMemory()
	if a.config.given("memory") {
		if o.Memory, err = parseMemory(a.config.text("memory")); err != nil {
			return o, nil, usageError(err)
		}
	}
	debug.SetMemoryLimit(o.Memory - o.Memory/16) // the rest is the program itself
	return o, overrides, nil
}

func (a *app) filter(cmd *cobra.Command, t *table.Table) (table.Filter, error) {
	var filter table.Filter
	for _, form := range []struct {
		flag  string
		parse func(*table.Schema, string) (table.Filter, error)
	}{{"where", table.ParseWhere}, {"filter-json", table.ParseFilterJSON}} {
		texts, err := a.config.list(cmd, form.flag)
		if err != nil {
			return filter, err
		}
		for _, text := range texts {
			f, err := form.parse(t.Schema, text)
			if err != nil {
				return filter, fmt.Errorf("--%s: %w", form.flag, err)
			}
			filter = filter.And(f)
		}
	}
	return filter, nil
}

// maxCommitUser leaves room in a file name of 255 bytes for what is put behind it.
const maxCommitUser = 200

// checkCommitUser wants one safe segment of a file name, as other clients do.
func checkCommitUser(user string) error {
	switch {
	case user == "", user == ".", user == "..", strings.TrimSpace(user) != user,
		strings.ContainsAny(user, `/\`), strings.ContainsFunc(user, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }),
		!utf8.ValidString(user):
		return fmt.Errorf("--commit-user %q: expected a name without blanks at its ends, slashes and control characters", user)
	case len(user) > maxCommitUser:
		return fmt.Errorf("--commit-user %.40s…: expected at most %d bytes", user, maxCommitUser)
	}
	return nil
}

// Without --memory a run may hold a quarter of what the process can have, since
// it shares the machine with the writers, and no more than it has use for.
const (
	defaultMemoryShare = 4
	defaultMemoryMax   = 1 << 30
	minMemory          = 64 << 20
)

func parseMemory(text string) (int64, error) {
	n, err := bytesize.Parse(text)
	if err == nil && n < minMemory {
		err = fmt.Errorf("%s is less than 64 mb", text)
	}
	if err != nil {
		return 0, fmt.Errorf("--memory: %w", err)
	}
	return n, nil
}

func defaultMemory() int64 {
	total, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if err != nil {
		return defaultMemoryMax // a machine that does not tell
	}
	return int64(min(max(total/defaultMemoryShare, minMemory), defaultMemoryMax))
}

func (a *app) logEvent(t *table.Table, e compact.Event) {
	switch {
	case e.Planned != nil:
		a.log.Info("planned", "table", t.Name(), "tasks", len(e.Planned.Tasks), "skipped", e.Planned.Skipped)
	case e.TaskDone != nil:
		a.log.Info("task done", "partition", t.PartitionName(e.TaskDone.Task.Partition), "bucket", e.TaskDone.Task.Bucket,
			"files_removed", len(e.TaskDone.Message.Replaced()), "files_added", len(e.TaskDone.Message.Created()),
			"done", e.TaskDone.Done, "total", e.TaskDone.Total)
	case e.Committing != nil:
		a.log.Info("publishing", "snapshot", e.Committing.SnapshotID)
	}
}

// compactDone prints the result, whatever it is, and passes the error on.
func (a *app) compactDone(run *compactRun, err error) error {
	result := newCompactResult(run, err)
	for _, w := range result.Warnings[len(run.warnings):] {
		a.log.Warn(w)
	}
	a.reported = true
	var writing error
	switch {
	case a.format == "json":
		writing = a.writeJSON(result)
	case result.Status != statusFailed && result.Status != statusUnknown && !a.quiet:
		_, writing = fmt.Fprintln(a.stdout, result.text(run.report))
	}
	if err != nil && a.format != "json" {
		for _, l := range run.report.Lost {
			fmt.Fprintf(a.stderr, "Given up: %s: %v\n", run.table.BucketName(l.Task.Partition, l.Task.Bucket), l.Err)
		}
		a.printError(err)
	}
	if writing != nil {
		// What happened to the table counts, not whether it could be told.
		fmt.Fprintf(a.stderr, "Error: the run is over (status %s), but its result could not be written: %v\n", result.Status, writing)
	}
	return err
}

func newCompactResult(run *compactRun, err error) compactResult {
	report := run.report
	r := compactResult{
		header: newHeader("CompactResult"), Table: cmp.Or(run.name, run.location), Status: statusNothing, Attempts: report.Attempts,
		DurationMillis: report.DurationMillis, Partitions: []compactedBucket{}, Lost: []lostBucket{}, Skipped: map[string]int{},
		Warnings: append(append([]string{}, run.warnings...), report.Warnings...), Error: newErrorJSON(err),
	}
	if run.table != nil {
		r.Table = run.table.Name()
	}
	if run.held != nil {
		r.LockedBy = run.held.By
		if err == nil {
			r.Skipped[skipLocked] = 1
		}
	}
	if report.Before != nil {
		r.SnapshotBefore = &report.Before.ID
	}
	if report.Plan != nil {
		for reason, n := range report.Plan.Skipped {
			r.Skipped[string(reason)] = n
		}
	}
	switch {
	case errors.Is(err, snapshot.ErrCommitUnknown):
		r.Status = statusUnknown
	case report.After != nil:
		r.Status = statusCommitted
	case err != nil:
		r.Status = statusFailed
	}
	for _, l := range report.Lost {
		r.Lost = append(r.Lost, lostBucket{partitionJSON(run.table, l.Task.Partition), l.Task.Bucket, l.Err.Error()})
	}
	for _, p := range compact.Leftovers(err) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s could not be removed", p))
	}
	if r.Status == statusCommitted || r.Status == statusUnknown { // the user can be looked for in the snapshots
		r.CommitUser = &report.CommitUser
	}
	if report.After != nil {
		r.SnapshotAfter = &report.After.ID
		r.addMessages(run.table, report.Messages)
	}
	return r
}

func (r *compactResult) addMessages(t *table.Table, messages []snapshot.CommitMessage) {
	r.Tasks = len(messages)
	for _, m := range messages {
		replaced, created := m.Replaced(), m.Created()
		b := compactedBucket{
			Partition: partitionJSON(t, m.Partition), Bucket: m.Bucket,
			FilesRemoved: len(replaced), FilesAdded: len(created), FilesUpgraded: len(m.CompactAfter) - len(created),
		}
		for _, f := range replaced {
			b.BytesRemoved += f.FileSize
		}
		for _, f := range created {
			b.BytesAdded += f.FileSize
			b.RowsWritten += f.RowCount
		}
		r.FilesRemoved += b.FilesRemoved
		r.FilesAdded += b.FilesAdded
		r.FilesUpgraded += b.FilesUpgraded
		r.RowsWritten += b.RowsWritten
		r.BytesRemoved += b.BytesRemoved
		r.BytesAdded += b.BytesAdded
		r.Partitions = mergeBucket(r.Partitions, b)
	}
}

// mergeBucket adds up tasks of the same bucket, which follow each other.
func mergeBucket(all []compactedBucket, b compactedBucket) []compactedBucket {
	if n := len(all); n > 0 && all[n-1].Bucket == b.Bucket && fmt.Sprint(all[n-1].Partition) == fmt.Sprint(b.Partition) {
		p := &all[n-1]
		p.FilesRemoved += b.FilesRemoved
		p.FilesAdded += b.FilesAdded
		p.FilesUpgraded += b.FilesUpgraded
		p.RowsWritten += b.RowsWritten
		p.BytesRemoved += b.BytesRemoved
		p.BytesAdded += b.BytesAdded
		return all
	}
	return append(all, b)
}

func (r compactResult) text(report *compact.Report) string {
	if r.Status == statusNothing {
		return fmt.Sprintf("%s: nothing to do (%s)", r.Table, r.why(report))
	}
	lifted := ""
	if r.FilesUpgraded > 0 {
		lifted = fmt.Sprintf(", %s lifted to a higher level", plural(r.FilesUpgraded, "file"))
	}
	s := fmt.Sprintf("%s: %s → %d (%s → %s)%s, snapshot %d → %d, %s", r.Table, plural(r.FilesRemoved, "file"), r.FilesAdded,
		humanize.IBytes(uint64(r.BytesRemoved)), humanize.IBytes(uint64(r.BytesAdded)), lifted, *r.SnapshotBefore, *r.SnapshotAfter,
		time.Duration(r.DurationMillis)*time.Millisecond)
	if r.FilesRemoved == 0 {
		return s
	}
	return s + fmt.Sprintf("\nthe replaced files (%d) stay on disk until the snapshots that use them expire", r.FilesRemoved)
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

var skipTexts = map[compact.Skip]string{
	compact.SkipLarge:    "large enough",
	compact.SkipTooFew:   "small, but too few together",
	compact.SkipBeyond:   "beyond compaction.file-num-limit",
	compact.SkipPostpone: "in postpone buckets",
	compact.SkipMerged:   "merged already",
	compact.SkipFewRuns:  "in too few sorted runs",
}

// why says in words what was left alone.
func (r compactResult) why(report *compact.Report) string {
	if r.Skipped[skipLocked] > 0 {
		if r.LockedBy == nil {
			return "another run holds the lock"
		}
		return fmt.Sprintf("another run holds the lock: %s", r.LockedBy)
	}
	if report.Before == nil {
		return "the table has no snapshot"
	}
	var parts []string
	for _, reason := range []compact.Skip{compact.SkipTooFew, compact.SkipLarge, compact.SkipBeyond, compact.SkipPostpone, compact.SkipMerged, compact.SkipFewRuns} {
		if n := report.Plan.Skipped[reason]; n > 0 {
			parts = append(parts, plural(n, "file")+" "+skipTexts[reason])
		}
	}
	if len(parts) == 0 {
		return "no live files are selected"
	}
	return strings.Join(slices.Clip(parts), ", ")
}
