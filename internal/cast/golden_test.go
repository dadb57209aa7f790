package cast

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tablectl/internal/types"
)

// golden is a line of testdata/casts.jsonl.gz: one value that Paimon 1.4.2 cast
// on Java 17, in the time zone UTC. In and Out are spelled by formatCell. FLOAT
// and DOUBLE that Java 17 writes with too many digits are there as STRING, not as
// text that was cut.
type golden struct {
	From        string  `json:"from"`
	To          string  `json:"to"`
	In          string  `json:"in"`
	Out         *string `json:"out"` // nil is null
	Error       bool    `json:"error"`
	Unsupported bool    `json:"unsupported"` // the reference has no rule for the two types
}

func readGoldens(t *testing.T) []golden {
	t.Helper()
	f, err := os.Open("testdata/casts.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var goldens []golden
	for lines := bufio.NewScanner(z); lines.Scan(); {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		goldens = append(goldens, g)
	}
	if len(goldens) < 15_000 {
		t.Fatalf("only %d golden values", len(goldens))
	}
	return goldens
}

func mustType(t testing.TB, s string) types.Type {
	t.Helper()
	parsed, err := types.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

const timestampLayout = "2006-01-02T15:04:05.000000000"

// parseCell reads a value as formatCell writes it.
func parseCell(typ types.Type, s string) (types.Value, error) {
	switch typ.Kind {
	case types.Char, types.Varchar:
		return types.Value{Bytes: []byte(s)}, nil
	case types.Binary, types.Varbinary:
		b, err := hex.DecodeString(s)
		return types.Value{Bytes: b}, err
	case types.Boolean:
		b, err := strconv.ParseBool(s)
		return types.Bool(b), err
	case types.Float:
		f, err := strconv.ParseFloat(s, 32)
		return types.Value{Float: f}, err
	case types.Double:
		f, err := strconv.ParseFloat(s, 64)
		return types.Value{Float: f}, err
	case types.Decimal:
		whole, fraction, _ := strings.Cut(s, ".")
		n, ok := new(big.Int).SetString(whole+fraction, 10)
		if !ok || len(fraction) != typ.Scale {
			return types.Value{}, fmt.Errorf("%q is not a %s", s, typ)
		}
		return types.Value{Unscaled: n}, nil
	}
	if n, ok := strings.CutPrefix(s, "days:"); ok {
		days, err := strconv.ParseInt(n, 10, 64)
		return types.Value{Int: days}, err
	}
	if n, ok := strings.CutPrefix(s, "ms:"); ok {
		n, nanos, _ := strings.Cut(n, "+")
		millis, err := strconv.ParseInt(n, 10, 64)
		v := types.Value{Int: millis}
		if nanos != "" && err == nil {
			_, err = fmt.Sscan(nanos, &v.Nanos)
		}
		return v, err
	}
	switch typ.Kind {
	case types.Date:
		d, err := time.Parse(time.DateOnly, s)
		return types.Value{Int: d.Unix() / 86400}, err
	case types.Time:
		d, err := time.Parse("15:04:05.000", s)
		midnight := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
		return types.Value{Int: d.Sub(midnight).Milliseconds()}, err
	case types.Timestamp, types.TimestampLTZ:
		d, err := time.Parse(timestampLayout, strings.TrimSuffix(s, "Z"))
		return types.Value{Int: d.UnixMilli(), Nanos: int32(d.Nanosecond() % 1e6)}, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return types.Value{Int: n}, err
}

// formatCell spells a value the way the golden file does, which leaves nothing
// out: FLOAT and DOUBLE as Go's shortest 'e' form, bytes in hexadecimal, every
// digit of a time; what is outside of the years 0 to 9999 or of the day as the
// bare number.
func formatCell(typ types.Type, v types.Value) string {
	switch typ.Kind {
	case types.Char, types.Varchar:
		return string(v.Bytes)
	case types.Binary, types.Varbinary:
		return hex.EncodeToString(v.Bytes)
	case types.Boolean:
		return strconv.FormatBool(v.Int == 1)
	case types.Float:
		if v.Float == float64(float32(v.Float)) || v.Float != v.Float {
			return strconv.FormatFloat(v.Float, 'e', -1, 32)
		}
		return "not a FLOAT"
	case types.Double:
		return strconv.FormatFloat(v.Float, 'e', -1, 64)
	case types.Decimal:
		return new(big.Rat).SetFrac(v.Unscaled, pow10(typ.Scale)).FloatString(typ.Scale)
	case types.Date:
		d := time.Unix(v.Int*86400, 0).UTC()
		if !plainYear(d) {
			return fmt.Sprintf("days:%d", v.Int)
		}
		return d.Format(time.DateOnly)
	case types.Time:
		if v.Int < 0 || v.Int >= 86_400_000 {
			return fmt.Sprintf("ms:%d", v.Int)
		}
		return time.UnixMilli(v.Int).UTC().Format("15:04:05.000")
	case types.Timestamp, types.TimestampLTZ:
		d := time.UnixMilli(v.Int).Add(time.Duration(v.Nanos)).UTC()
		if !plainYear(d) {
			return fmt.Sprintf("ms:%d+%d", v.Int, v.Nanos)
		}
		s := d.Format(timestampLayout)
		if typ.Kind == types.TimestampLTZ {
			s += "Z"
		}
		return s
	}
	return strconv.FormatInt(v.Int, 10)
}

func plainYear(d time.Time) bool { return d.Year() >= 0 && d.Year() <= 9999 }
