package datafile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tablectl/internal/datafile"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

func wantRows(t *testing.T, fields []types.Field, got, want [][]any) {
	t.Helper()
	if diff := tabletest.Diff(tabletest.TextLines(fields, got), tabletest.TextLines(fields, want)); diff != "" {
		t.Error(diff)
	}
}

// mixedFields are a column of every shape that moves differently.
func mixedFields(t *testing.T) []types.Field {
	fields := tabletest.Columns(t, [2]string{"id", "BIGINT NOT NULL"}, [2]string{"s", "STRING"}, [2]string{"d", "DECIMAL(25, 3)"},
		[2]string{"b", "BOOLEAN"}, [2]string{"x", "DOUBLE"})
	text := types.Type{Kind: types.Varchar, Length: types.MaxLength}
	list := types.Type{Kind: types.Array, Element: &text}
	return append(fields, types.Field{ID: 5, Name: "l", Type: list})
}

// numberedRows have their number in the first column.
func numberedRows(fields []types.Field, values tabletest.Values, from, n int) [][]any {
	rows := values.Rows(fields, n)
	for i := range rows {
		rows[i][0] = types.Value{Int: int64(from + i)}
	}
	return rows
}

// TestValuesAcrossPages has pages of a kilobyte and values of up to five, so that
// values span pages, and rows of lists do.
func TestValuesAcrossPages(t *testing.T) {
	fields := mixedFields(t)
	values := tabletest.Values{Rand: rand.New(rand.NewPCG(3, 1)), NullRate: 0.1, MaxText: 5000, MaxItems: 3}
	for version := 1; version <= 2; version++ {
		for _, dictionary := range []bool{false, true} {
			for workers := 1; workers <= 3; workers += 2 {
				rows := numberedRows(fields, values, 0, 300)
				o := tabletest.FileOptions{PageVersion: version, PageSize: 1 << 10, Dictionary: dictionary, RowGroupRows: 120}
				spec := plainSpec(fields)
				spec.PageSize, spec.Workers, spec.Dictionary = 1<<10, workers, dictionary
				_, _, got, err := concat(t.Context(), []datafile.Input{written(t, 0, fields, rows, o)}, spec)
				if err != nil {
					t.Fatalf("pages of version %d, dictionary %v, %d workers: %v", version, dictionary, workers, err)
				}
				wantRows(t, fields, got, rows)
			}
		}
	}
}

// TestLongLists has lists of more elements than the reader decodes at a time.
func TestLongLists(t *testing.T) {
	element := types.Type{Kind: types.Int}
	fields := []types.Field{{ID: 0, Name: "l", Type: types.Type{Kind: types.Array, Element: &element}}}
	rows := make([][]any, 0, 8)
	for i, n := range []int{0, 1, 4095, 4096, 4097, 10_000, 3, 8192} {
		list := tabletest.List{}
		for j := range n {
			list = append(list, types.Value{Int: int64(i*100_000 + j)})
		}
		rows = append(rows, []any{list})
	}
	for version := 1; version <= 2; version++ {
		in := written(t, 0, fields, rows, tabletest.FileOptions{PageVersion: version, PageSize: 1 << 10})
		_, _, got, err := concat(t.Context(), []datafile.Input{in, in}, plainSpec(fields))
		if err != nil {
			t.Fatal(err)
		}
		wantRows(t, fields, got, append(slices.Clone(rows), rows...))
	}
}

// TestManyRows moves more rows than a batch has, over several files.
func TestManyRows(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"id", "BIGINT NOT NULL"}, [2]string{"v", "INT"}, [2]string{"s", "VARCHAR(8)"})
	values := tabletest.Values{Rand: rand.New(rand.NewPCG(4, 1)), NullRate: 0.1, MaxText: 8}
	var inputs []datafile.Input
	var want [][]any
	for i, n := range []int{130_000, 1, 64_000, 7_000} {
		rows := numberedRows(fields, values, len(want), n)
		inputs = append(inputs, written(t, i, fields, rows, tabletest.FileOptions{PageSize: 64 << 10}))
		want = append(want, rows...)
	}
	spec := plainSpec(fields)
	spec.TargetSize, spec.RowGroupSize, spec.Workers = 700<<10, 300<<10, 2
	done, _, got, err := concat(t.Context(), inputs, spec)
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, fields, got, want)
	if len(done) < 2 {
		t.Errorf("%d outputs, want several", len(done))
	}
	for i, o := range done[:len(done)-1] {
		if o.Rows%1000 != 0 || o.Size < spec.TargetSize/2 || o.Size > spec.TargetSize*2 {
			t.Errorf("output %d has %d rows and %d bytes, the target is %d", i, o.Rows, o.Size, spec.TargetSize)
		}
	}
}

// TestRolling has inputs that end at, just before and just behind a row at which
// a file may roll, and a target that every one of these reaches.
func TestRolling(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"id", "BIGINT NOT NULL"}, [2]string{"s", "STRING"})
	values := tabletest.Values{Rand: rand.New(rand.NewPCG(5, 1))}
	for _, counts := range [][]int{
		{1000},
		{999},
		{1001},
		{2000},
		{1999},
		{2001},
		{1000, 1000},
		{999, 1},
		{999, 1, 1},
		{1, 999, 1000},
		{500, 500, 500},
		{3000, 1},
		{0, 1000, 0},
		{1, 1, 1},
	} {
		var inputs []datafile.Input
		var want [][]any
		for i, n := range counts {
			rows := numberedRows(fields, values, len(want), n)
			inputs = append(inputs, written(t, i, fields, rows, tabletest.FileOptions{RowGroupRows: 333}))
			want = append(want, rows...)
		}
		spec := plainSpec(fields)
		spec.TargetSize = 1
		done, _, got, err := concat(t.Context(), inputs, spec)
		if err != nil {
			t.Fatalf("%v: %v", counts, err)
		}
		wantRows(t, fields, got, want)
		var sizes []int64
		for left := int64(len(want)); left > 0; left -= 1000 {
			sizes = append(sizes, min(left, 1000))
		}
		var gotSizes []int64
		for _, o := range done {
			gotSizes = append(gotSizes, o.Rows)
		}
		if !slices.Equal(gotSizes, sizes) {
			t.Errorf("%v: outputs of %v rows, want %v", counts, gotSizes, sizes)
		}
	}
}

// TestAbsorbTail has a last input that would be a small file on its own.
func TestAbsorbTail(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"id", "BIGINT NOT NULL"})
	var inputs []datafile.Input
	var want [][]any
	var bytes int64
	for i, n := range []int{2000, 10} {
		rows := numberedRows(fields, tabletest.Values{Rand: rand.New(rand.NewPCG(6, 1))}, len(want), n)
		inputs = append(inputs, written(t, i, fields, rows, tabletest.FileOptions{}))
		want = append(want, rows...)
		f, err := inputs[i].Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bytes += f.Size()
	}
	spec := plainSpec(fields)
	spec.TargetSize, spec.InputBytes = 1, bytes
	for absorb, outputs := range map[int64]int{0: 3, bytes + 1: 1} {
		spec.AbsorbTail = absorb
		done, _, got, err := concat(t.Context(), inputs, spec)
		if err != nil {
			t.Fatal(err)
		}
		wantRows(t, fields, got, want)
		if len(done) != outputs {
			t.Errorf("absorbing tails below %d: %d outputs, want %d", absorb, len(done), outputs)
		}
	}
}

// TestAbsorbTailOfWhatShrinks has inputs that are a hundred times as large as the
// output: what is left of them is a small tail long before it looks like one.
func TestAbsorbTailOfWhatShrinks(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"s", "STRING NOT NULL"})
	var rows [][]any
	for range 4000 {
		rows = append(rows, []any{types.Value{Bytes: []byte(strings.Repeat("the same ", 100))}})
	}
	in := written(t, 0, fields, rows, tabletest.FileOptions{Codec: "none"})
	f, err := in.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spec := plainSpec(fields)
	spec.Compression, spec.ZstdLevel = "zstd", 1
	spec.TargetSize, spec.InputBytes, spec.AbsorbTail = 1, f.Size(), f.Size()/2
	done, _, got, err := concat(t.Context(), []datafile.Input{in}, spec)
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, fields, got, rows)
	if len(done) != 1 {
		t.Errorf("%d outputs, want 1", len(done))
	}
}

// TestNoRows has inputs without rows: nothing is created.
func TestNoRows(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"id", "INT"})
	in := written(t, 0, fields, nil, tabletest.FileOptions{})
	for _, inputs := range [][]datafile.Input{nil, {in}, {in, in}} {
		done, _, _, err := concat(t.Context(), inputs, plainSpec(fields))
		if err != nil || len(done) > 0 {
			t.Errorf("%d inputs: %d outputs, %v", len(inputs), len(done), err)
		}
	}
}

// TestRowCountMismatch has manifests that promise other rows than there are.
func TestRowCountMismatch(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"id", "INT"})
	rows := [][]any{{types.Value{Int: 1}}, {nil}, {types.Value{Int: 3}}}
	for _, promised := range []int64{0, 2, 4, -1, 1 << 40} {
		in := written(t, 0, fields, rows, tabletest.FileOptions{})
		in.Rows = promised
		for what, run := range map[string]func() error{
			"Concat": func() error { _, _, _, err := concat(t.Context(), []datafile.Input{in}, plainSpec(fields)); return err },
			"Check":  func() error { return datafile.Check(t.Context(), in, plainSpec(fields)) },
		} {
			err := run()
			if err == nil || !strings.Contains(err.Error(), in.Name) || !strings.Contains(err.Error(), "3 rows") {
				t.Errorf("%s of a file of 3 rows where %d are promised: %v", what, promised, err)
			}
		}
	}
}

// TestInputsAreClosed counts open files after good and bad runs.
func TestInputsAreClosed(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"id", "INT"})
	data, err := tabletest.WriteFile(fields, [][]any{{nil}, {types.Value{Int: 1}}}, tabletest.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	for name, content := range map[string][]byte{"good": data, "empty": nil, "no footer": data[:20], "footer only": data[len(data)-40:]} {
		for _, rows := range []int64{2, 3} {
			in := datafile.Input{Name: name, Fields: fields, Rows: rows, Open: func(context.Context) (datafile.File, error) {
				open++
				return memFile{bytes.NewReader(content), &open}, nil
			}}
			_, _, _, err := concat(t.Context(), []datafile.Input{in, in}, plainSpec(fields))
			checked := datafile.Check(t.Context(), in, plainSpec(fields))
			if good := name == "good" && rows == 2; (err == nil) != good || (checked == nil) != good {
				t.Errorf("%s, %d rows: Concat %v, Check %v", name, rows, err, checked)
			}
			if open != 0 {
				t.Errorf("%s, %d rows: %d files are open", name, rows, open)
			}
		}
	}
}

// failingWriter fails after some bytes, or when it is closed.
type failingWriter struct {
	left   int
	closed *int
}

var errDisk = errors.New("no space")

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		n := w.left
		w.left = 0
		return n, errDisk
	}
	w.left -= len(p)
	return len(p), nil
}

func (w *failingWriter) Close() error {
	*w.closed++
	if w.left == 0 {
		return errDisk
	}
	return nil
}

// TestOutputFails fails at many places of an output: the error is that of the
// writer and not about the input, and the output is closed once.
func TestOutputFails(t *testing.T) {
	fields := mixedFields(t)
	rows := numberedRows(fields, tabletest.Values{Rand: rand.New(rand.NewPCG(7, 1)), NullRate: 0.1}, 0, 50)
	in := written(t, 0, fields, rows, tabletest.FileOptions{})
	spec := plainSpec(fields)
	spec.RowGroupSize, spec.PageSize = 1, 64
	done, _, _, err := concat(t.Context(), []datafile.Input{in}, spec)
	if err != nil {
		t.Fatal(err)
	}
	if len(done) != 1 {
		t.Fatalf("%d outputs, want 1", len(done))
	}
	for limit := 0; limit <= int(done[0].Size); limit += 1 + limit/50 {
		closed := 0
		spec.Workers = 1 + limit%2
		spec.Create = func(context.Context) (string, io.WriteCloser, error) {
			return "out", &failingWriter{limit, &closed}, nil
		}
		outputs, err := datafile.Concat(t.Context(), []datafile.Input{in}, spec)
		if !errors.Is(err, errDisk) || strings.Contains(err.Error(), in.Name) || strings.Count(err.Error(), errDisk.Error()) != 1 {
			t.Fatalf("no space after %d bytes: error %v", limit, err)
		}
		if closed != 1 || len(outputs) != 1 || outputs[0].Name != "out" {
			t.Fatalf("no space after %d bytes: closed %d times, outputs %+v", limit, closed, outputs)
		}
	}
	spec.Create = func(context.Context) (string, io.WriteCloser, error) { return "", nil, errDisk }
	if outputs, err := datafile.Concat(t.Context(), []datafile.Input{in}, spec); !errors.Is(err, errDisk) || len(outputs) > 0 {
		t.Errorf("an output that cannot be created: %d outputs, %v", len(outputs), err)
	}
}

// TestCancelled stops between batches.
func TestCancelled(t *testing.T) {
	fields := tabletest.Columns(t, [2]string{"id", "BIGINT NOT NULL"})
	rows := numberedRows(fields, tabletest.Values{Rand: rand.New(rand.NewPCG(8, 1))}, 0, 5000)
	in := written(t, 0, fields, rows, tabletest.FileOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	spec := plainSpec(fields)
	spec.TargetSize = 1
	created := 0
	spec.Create = func(context.Context) (string, io.WriteCloser, error) {
		if created++; created == 3 {
			cancel()
		}
		return fmt.Sprint(created), &buffer{}, nil
	}
	outputs, err := datafile.Concat(ctx, []datafile.Input{in}, spec)
	if !errors.Is(err, context.Canceled) || len(outputs) != 3 {
		t.Errorf("%d outputs, %v", len(outputs), err)
	}
}

// recorder is an index that keeps what it is given.
type recorder struct {
	column int
	values []types.Value
}

func (r *recorder) Column() int { return r.column }

func (r *recorder) Add(v types.Value) error {
	v.Bytes = bytes.Clone(v.Bytes)
	r.values = append(r.values, v)
	return nil
}

// TestIndexes shows that the indexes of every output are given all values of
// their columns, nulls too, in order.
func TestIndexes(t *testing.T) {
	fields := mixedFields(t)
	values := tabletest.Values{Rand: rand.New(rand.NewPCG(9, 1)), NullRate: 0.2}
	rows := numberedRows(fields, values, 0, 3500)
	target := slices.Clone(fields)
	target[4].Type.Kind = types.Double
	added := types.Field{ID: 9, Name: "added", Type: types.Type{Kind: types.Int}}
	target = append(target, added)
	spec := plainSpec(target)
	spec.TargetSize, spec.Workers = 1, 2
	spec.NewIndex = func() []datafile.IndexBuilder {
		return []datafile.IndexBuilder{&recorder{column: 1}, &recorder{column: 2}, &recorder{column: 1}, &recorder{column: 6}}
	}
	inputs := []datafile.Input{
		written(t, 0, fields, rows[:1700], tabletest.FileOptions{PageSize: 1 << 10}),
		written(t, 1, fields, rows[1700:], tabletest.FileOptions{Dictionary: true}),
	}
	done, _, _, err := concat(t.Context(), inputs, spec)
	if err != nil {
		t.Fatal(err)
	}
	from := 0
	for i, o := range done {
		for _, ix := range o.Indexes {
			r := ix.(*recorder)
			if int64(len(r.values)) != o.Rows {
				t.Fatalf("output %d: the index of column %d has %d values of %d rows", i, r.column, len(r.values), o.Rows)
			}
			for j, v := range r.values {
				var want any
				if r.column < len(fields) {
					want = rows[from+j][r.column]
				}
				if w, ok := want.(types.Value); v.Null == ok || ok && types.Compare(fields[r.column].Type.Kind, v, w) != 0 {
					t.Fatalf("output %d, row %d, column %d: %+v, want %+v", i, j, r.column, v, want)
				}
			}
		}
		from += int(o.Rows)
	}
}
