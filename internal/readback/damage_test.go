package readback_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tablectl/internal/readback"
	"tablectl/internal/tabletest"
	"tablectl/internal/types"
)

// damageMemory is how much may be allocated for a damaged file of a few kilobytes.
const damageMemory = 1 << 30

// damageFields has columns of every physical type and two levels of repetition.
func damageFields(t testing.TB) []types.Field {
	fields := tabletest.Columns(t, [2]string{"i", "INT"}, [2]string{"n", "BIGINT NOT NULL"}, [2]string{"s", "STRING"}, [2]string{"d", "DECIMAL(30, 2)"},
		[2]string{"b", "BOOLEAN"}, [2]string{"x", "DOUBLE"}, [2]string{"f", "FLOAT"}, [2]string{"t", "TIMESTAMP(9)"})
	text := types.Type{Kind: types.Varchar, Length: types.MaxLength}
	list := types.Type{Kind: types.Array, Element: &text}
	return append(fields, types.Field{ID: 8, Name: "m", Type: types.Type{Kind: types.Map, Key: &text, Element: &list}})
}

func damageFile(t testing.TB, fields []types.Field, i int) []byte {
	t.Helper()
	values := tabletest.Values{Rand: rand.New(rand.NewPCG(uint64(i), 2)), NullRate: 0.2, MaxText: 10}
	rows := values.Rows(fields, 60)
	data, err := tabletest.WriteFile(fields, rows, tabletest.FileOptions{
		Codec: []string{"none", "zstd", "snappy", "gzip", "lz4_raw", "brotli"}[i%6], PageVersion: 1 + i/2%2, PageSize: 256, RowGroupRows: 40,
		Dictionary: i%3 == 0, Delta: i%4 == 1,
	})
	if err == nil && i%5 == 4 {
		data, err = rewritten(data, fields, len(rows), []string{"lz4", "zstd", "none"}[i%3])
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readDamaged reads a file that is not what it should be: to its end, or to an error
// that names it, with moderate memory.
func readDamaged(fields []types.Field, data []byte) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const name = "damaged.parquet"
	r, err := readback.New(bytes.NewReader(data), int64(len(data)), name, fields)
	rows := int64(0)
	for err == nil {
		if _, err = r.Next(); err == nil {
			rows++
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > damageMemory {
		return fmt.Errorf("%d bytes were allocated for a file of %d", used, len(data))
	}
	switch {
	case errors.Is(err, io.EOF) && r != nil && rows == r.Rows():
		return nil
	case !strings.Contains(err.Error(), name):
		return fmt.Errorf("the error does not name the file: %w", err)
	}
	return nil
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
			from := r.IntN(len(broken))
			n := min(r.IntN(100), len(broken)-from)
			broken = slices.Insert(broken, from, broken[from:from+n]...)
		case 2:
			from := at()
			broken = slices.Delete(broken, from, min(from+1+r.IntN(20), len(broken)))
		case 3, 4:
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

// TestDamaged flips bits and bytes, cuts files, and doubles and removes parts of them.
func TestDamaged(t *testing.T) {
	fields := damageFields(t)
	rounds := 3000
	if testing.Short() {
		rounds = 500
	}
	var files [30][]byte
	for i := range files {
		files[i] = damageFile(t, fields, i)
		if _, err := identities(files[i], fields); err != nil {
			t.Fatal(err)
		}
	}
	for i := range rounds {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		if err := readDamaged(fields, damage(r, files[i%len(files)])); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}

// TestTruncated cuts a file at every byte; no part of it is a file.
func TestTruncated(t *testing.T) {
	fields := damageFields(t)
	data := damageFile(t, fields, 1)
	for n := range data {
		if _, err := identities(data[:n], fields); err == nil {
			t.Fatalf("no error for %d of %d bytes", n, len(data))
		}
	}
}

// FuzzReadback reads files that are made of valid ones.
func FuzzReadback(f *testing.F) {
	fields := damageFields(f)
	for i := range 12 {
		f.Add(damageFile(f, fields, i))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := readDamaged(fields, data); err != nil {
			t.Fatal(err)
		}
	})
}
