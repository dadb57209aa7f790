//go:build bench

package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A benchTable is a table that the Java peer generates for TestBench.
type benchTable struct {
	name    string
	rows    int
	commits int
	parts   int // partitions; each commit writes a file to every one
	keys    int // distinct primary keys, 0 for an append table; each commit is a sorted run
	columns int // of tables with keys
	options string
}

var benchTables = []benchTable{
	{name: "1M rows, 10 files", rows: 1_000_000, commits: 10},
	{name: "4M rows, 40 files", rows: 4_000_000, commits: 40},
	{name: "10M rows, 100 files", rows: 10_000_000, commits: 100},
	{name: "10k files", rows: 1_000_000, commits: 100, parts: 100},
	{name: "deduplicate, 8 runs", rows: 4_000_000, commits: 8, keys: 2_000_000, columns: 10},
	{name: "deduplicate, 10 runs", rows: 10_000_000, commits: 10, keys: 6_000_000, columns: 20},
	{
		name: "partial-update, 10 runs", rows: 10_000_000, commits: 10, keys: 6_000_000, columns: 20,
		options: `,"merge-engine":"partial-update"`,
	},
	{name: "deduplicate, 4 runs", rows: 1_000_000, commits: 4, keys: 600_000, columns: 20},
	{name: "deduplicate, 16 runs", rows: 1_000_000, commits: 16, keys: 600_000, columns: 20},
	{name: "deduplicate, 64 runs", rows: 1_000_000, commits: 64, keys: 600_000, columns: 20},
}

// keyedSpec is a table with a primary key and, beside it, columns of all frequent types.
func keyedSpec(b benchTable) string {
	types := []string{"BIGINT", "INT", "STRING", "DECIMAL(12, 2)", "DOUBLE", "TIMESTAMP(6)", "DATE", "BOOLEAN", "STRING"}
	var fields strings.Builder
	for i := 1; i < b.columns; i++ {
		fmt.Fprintf(&fields, `,{"name":"c%d","type":"%s"}`, i, types[i%len(types)])
	}
	return fmt.Sprintf(`{"fields":[{"name":"id","type":"BIGINT NOT NULL"}%s],"primaryKeys":["id"],
 "options":{"write-only":"true","bucket":"1"%s}}`, fields.String(), b.options)
}

const benchSpec = `{"fields":[{"name":"id","type":"BIGINT"},{"name":"k","type":"INT"},{"name":"name","type":"STRING"},
 {"name":"city","type":"STRING"},{"name":"amount","type":"DECIMAL(12, 2)"},{"name":"score","type":"DOUBLE"},
 {"name":"ts","type":"TIMESTAMP(6)"},{"name":"d","type":"DATE"},{"name":"flag","type":"BOOLEAN"},{"name":"note","type":"STRING"}%s],
 %s"options":{"write-only":"true"}}`

// measured is what one run of a compaction took.
type measured struct {
	plan, rewrite, commit, wall, cpu time.Duration
	peak                             int64 // bytes
	bytesIn                          int64
}

// TestBench compacts generated tables with tablectl and with the Java peer, each from a fresh process
// on a fresh copy, and prints what each took. It asserts nothing: machines differ; the ratio counts.
func TestBench(t *testing.T) {
	for _, b := range benchTables {
		t.Run(b.name, func(t *testing.T) {
			dir := t.TempDir()
			source := filepath.Join(dir, "source", "wh.db", "t")
			generate(t, b, source)
			ours := benchTablectl(t, copyBench(t, source, filepath.Join(dir, "ours")))
			java := benchJava(t, copyBench(t, source, filepath.Join(dir, "java")))
			report(t, "tablectl", b, ours)
			report(t, "Java", b, java)
			t.Logf("tablectl/Java: wall %.2f, CPU %.2f, peak memory %.2f", ratio(ours.wall, java.wall), ratio(ours.cpu, java.cpu),
				float64(ours.peak)/float64(java.peak))
		})
	}
}

func ratio(a, b time.Duration) float64 { return a.Seconds() / b.Seconds() }

func report(t *testing.T, who string, b benchTable, m measured) {
	t.Helper()
	t.Logf("%-8s plan %6.2fs  rewrite %6.2fs  commit %6.2fs  process %6.2fs  CPU %6.2fs  peak %5d MB  %6.1f MB/s  %.2fM rows/s", who,
		m.plan.Seconds(), m.rewrite.Seconds(), m.commit.Seconds(), m.wall.Seconds(), m.cpu.Seconds(), m.peak>>20,
		float64(m.bytesIn)/1e6/m.rewrite.Seconds(), float64(b.rows)/1e6/m.rewrite.Seconds())
}

func generate(t *testing.T, b benchTable, path string) {
	t.Helper()
	spec := filepath.Join(t.TempDir(), "spec.json")
	fields, partitions := "", ""
	args := []string{"gen", "--table", path, "--spec", spec, "--rows", fmt.Sprint(b.rows), "--files", fmt.Sprint(b.commits), "--seed", "1"}
	if b.parts > 0 {
		fields, partitions = `,{"name":"p","type":"INT"}`, `"partitionKeys":["p"],`
		args = append(args, "--parts", fmt.Sprint(b.parts))
	}
	text := fmt.Sprintf(benchSpec, fields, partitions)
	if b.keys > 0 {
		text = keyedSpec(b)
		args = append(args, "--keys", fmt.Sprint(b.keys))
	}
	if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join("java", "peer.sh"), args...).CombinedOutput(); err != nil {
		t.Fatalf("generating %s: %v\n%s", b.name, err, out)
	}
}

func copyBench(t *testing.T, source, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "wh.db", "t")
	if err := os.CopyFS(path, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	return path
}

// runMeasured runs a command and tells what the process took.
func runMeasured(t *testing.T, cmd *exec.Cmd) (stdout, stderr []byte, m measured) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	start := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("running %s: %v\n%s", cmd, err, errOut.String())
	}
	m.wall = time.Since(start)
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	m.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	m.peak = usage.Maxrss << 10
	return out.Bytes(), errOut.Bytes(), m
}

// benchTablectl takes the times of the phases from the log.
func benchTablectl(t *testing.T, path string) measured {
	t.Helper()
	start := time.Now()
	out, log, m := runMeasured(t, exec.Command(tablectlBinary, "compact", path, "-o", "json", "-v", "--log-format", "json"))
	var result struct {
		BytesRemoved int64 `json:"bytes_removed"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatal(err)
	}
	m.bytesIn = result.BytesRemoved
	at := map[string]time.Time{}
	for lines := bufio.NewScanner(bytes.NewReader(log)); lines.Scan(); {
		var line struct {
			Time time.Time `json:"time"`
			Msg  string    `json:"msg"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			at[line.Msg] = line.Time
		}
	}
	end := start.Add(m.wall)
	m.plan, m.rewrite, m.commit = at["planned"].Sub(start), at["task done"].Sub(at["planned"]), end.Sub(at["task done"])
	return m
}

func benchJava(t *testing.T, path string) measured {
	t.Helper()
	cmd := exec.Command(filepath.Join("java", "peer.sh"), "compact", "--table", path, "--full", "--no-expire")
	cmd.Env = append(os.Environ(), "JAVA_OPTS=-Xmx4g") // it needs more than 1 GB to merge 20 columns
	out, _, m := runMeasured(t, cmd)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var result struct {
		PlanMillis   int64 `json:"plan_ms"`
		RunMillis    int64 `json:"run_ms"`
		CommitMillis int64 `json:"commit_ms"`
		BytesIn      int64 `json:"bytes_in"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
		t.Fatal(err)
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	m.plan, m.rewrite, m.commit, m.bytesIn = ms(result.PlanMillis), ms(result.RunMillis), ms(result.CommitMillis), result.BytesIn
	return m
}
