package datafile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"tablectl/internal/datafile"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// Limits for a run over a damaged file of a few kilobytes.
const (
	damageTime   = 30 * time.Second
	damageMemory = 1 << 30 // bytes allocated in total
)

// discard is an output that is thrown away.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

const damagedName = "damaged.parquet"

// runDamaged rewrites a file that is not what it should be. Whatever is in there,
// the run ends, with moderate memory, and either with an error that names the file
// or with all rows. Their values may differ from the ones that were written: pages
// have checksums, but the Parquet library does not look at them.
func runDamaged(fields, target []types.Field, data []byte, rows int, workers int) error {
	spec := plainSpec(target)
	spec.Workers = workers
	var out int64
	err := runFiles(spec, []datafile.Input{input(damagedName, fields, data, rows)}, func(ctx context.Context, in []datafile.Input, spec datafile.Spec) ([]datafile.Output, error) {
		if err := datafile.Check(ctx, in[0], spec); err != nil {
			return nil, err
		}
		outputs, err := datafile.Concat(ctx, in, spec)
		for _, o := range outputs {
			out += o.Rows
		}
		if err == nil && out != int64(rows) {
			return nil, fmt.Errorf("%w: %d rows and no error, want %d", errBroken, out, rows)
		}
		return outputs, err
	})
	return err
}

var errBroken = errors.New("broken")

// runFiles runs f over a damaged file: it must end, with moderate memory, and an error
// that it returns must name the file.
func runFiles(spec datafile.Spec, in []datafile.Input, f func(context.Context, []datafile.Input, datafile.Spec) ([]datafile.Output, error)) error {
	spec = discarding(spec)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("%w: panic: %v", errBroken, p)
			}
		}()
		_, err := f(context.Background(), in, spec)
		done <- err
	}()
	select {
	case err := <-done:
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > damageMemory {
			return fmt.Errorf("%d bytes were allocated", used)
		}
		switch {
		case errors.Is(err, errBroken):
			return err
		case err != nil && !bytes.Contains([]byte(err.Error()), []byte(damagedName)):
			return fmt.Errorf("the error does not name the file: %w", err)
		}
		return nil
	case <-time.After(damageTime):
		return fmt.Errorf("no end after %v", damageTime)
	}
}

// damageFields has columns of every physical type and two levels of repetition.
func damageFields(t testing.TB) []types.Field {
	fields := tabletest.Columns(t, [2]string{"i", "INT"}, [2]string{"n", "BIGINT NOT NULL"}, [2]string{"s", "STRING"}, [2]string{"d", "DECIMAL(30, 2)"},
		[2]string{"b", "BOOLEAN"}, [2]string{"x", "DOUBLE"}, [2]string{"f", "FLOAT"}, [2]string{"t", "TIMESTAMP(9)"})
	text := types.Type{Kind: types.Varchar, Length: types.MaxLength}
	list := types.Type{Kind: types.Array, Element: &text}
	return append(fields, types.Field{ID: 8, Name: "m", Type: types.Type{Kind: types.Map, Key: &text, Element: &list}})
}

// evolvedFields has casts and columns that the file lacks.
func evolvedFields(fields []types.Field) []types.Field {
	evolved := slices.Clone(fields)
	evolved[0].Type = types.Type{Kind: types.BigInt}
	evolved[3].Type.Scale = 4
	evolved[6].Type.Kind = types.Double
	return append(evolved, types.Field{ID: 20, Name: "added", Type: types.Type{Kind: types.Int}})
}

func damageFile(t testing.TB, fields []types.Field, i int) ([]byte, int) {
	t.Helper()
	const rows = 60
	values := tabletest.Values{Rand: rand.New(rand.NewPCG(uint64(i), 2)), NullRate: 0.2, MaxText: 10}
	o := tabletest.FileOptions{
		Codec: []string{"none", "zstd", "snappy", "gzip", "lz4_raw", "brotli"}[i%6], PageVersion: 1 + i/2%2, PageSize: 256, RowGroupRows: 40,
		Dictionary: i%3 == 0, Delta: i%4 == 1,
	}
	data, err := tabletest.WriteFile(fields, values.Rows(fields, rows), o)
	if err != nil {
		t.Fatal(err)
	}
	return data, rows
}

// TestDamagedFiles flips bits and bytes, cuts files, and doubles and removes parts
// of them.
func TestDamagedFiles(t *testing.T) {
	fields := damageFields(t)
	evolved := evolvedFields(fields)
	rounds := 1500
	if testing.Short() {
		rounds = 200
	}
	var files [24][]byte
	rows := 0
	for i := range files {
		files[i], rows = damageFile(t, fields, i)
	}
	for i := range rounds {
		data := files[i%len(files)]
		r := rand.New(rand.NewPCG(uint64(i), 3))
		broken := damage(r, data)
		target := fields
		if i%3 == 1 {
			target = evolved
		}
		if err := runDamaged(fields, target, broken, rows, 1+i%2); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}

func damage(r *rand.Rand, data []byte) []byte {
	broken := slices.Clone(data)
	at := func() int {
		if r.IntN(2) == 0 { // the footer is small, but everything depends on it
			return max(0, len(broken)-1-r.IntN(2000))
		}
		return r.IntN(len(broken))
	}
	for range 1 + r.IntN(3) {
		switch r.IntN(8) {
		case 0:
			broken = broken[:r.IntN(len(broken))]
		case 1:
			broken = broken[r.IntN(len(broken)):]
		case 2:
			from := r.IntN(len(broken))
			n := min(r.IntN(100), len(broken)-from)
			broken = slices.Insert(broken, from, broken[from:from+n]...)
		case 3:
			from := at()
			broken = slices.Delete(broken, from, min(from+1+r.IntN(20), len(broken)))
		case 4, 5:
			broken[at()] ^= 1 << r.IntN(8)
		default:
			broken[at()] = byte(r.Uint32())
		}
		if len(broken) == 0 {
			return broken
		}
	}
	return broken
}

// FuzzConcat rewrites files that are made of valid ones.
func FuzzConcat(f *testing.F) {
	fields := damageFields(f)
	evolved := evolvedFields(fields)
	rows := 0
	for i := range 12 {
		var data []byte
		data, rows = damageFile(f, fields, i)
		f.Add(data, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, evolve bool) {
		target := fields
		if evolve {
			target = evolved
		}
		if err := runDamaged(fields, target, data, rows, 1); err != nil {
			t.Fatal(err)
		}
	})
}
