package fileindex

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"tablectl/internal/types"
)

// golden is a line of testdata/indexes.jsonl.gz, which Paimon 1.4.2 wrote. Which
// members are set tells its sort.
type golden struct {
	// A bloom hash: the type, and a value if the type can be hashed.
	Hash  string `json:"hash"`
	Value string `json:"value"`
	H     int64  `json:"h,string"`

	// One index on one column.
	Index   string            `json:"index"`
	Type    string            `json:"type"`
	Options map[string]string `json:"options"`
	Values  []*string         `json:"values"` // as ParseLiteral reads them
	Formula *formula          `json:"formula"`
	Length  int               `json:"len"` // of a payload that is not in Hex
	SHA256  string            `json:"sha256"`

	// A container of given payloads.
	Container []struct {
		Column string  `json:"column"`
		Index  string  `json:"index"`
		Hex    *string `json:"hex"`
	} `json:"container"`

	// A table: the columns, Options and the rows.
	Table string   `json:"e2e"`
	Rows  []string `json:"rows"`
	None  string   `json:"result"` // set if the table has no index

	Hex   string `json:"hex"`
	Error string `json:"error"`
}

// formula describes the values of many rows.
type formula struct {
	N, Mul, Mod, Div, Sub, NullEvery int64
}

func readGoldens(t *testing.T, wanted func(golden) bool) []golden {
	t.Helper()
	f, err := os.Open("testdata/indexes.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var goldens []golden
	lines := bufio.NewScanner(z)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatalf("%.200s: %v", lines.Bytes(), err)
		}
		if wanted(g) {
			goldens = append(goldens, g)
		}
	}
	if err := lines.Err(); err != nil || len(goldens) == 0 {
		t.Fatalf("%d goldens: %v", len(goldens), err)
	}
	return goldens
}

func (g golden) String() string {
	if g.Formula != nil {
		return fmt.Sprintf("%s %v on %s of %+v", g.Index, g.Options, g.Type, *g.Formula)
	}
	values := make([]string, len(g.Values))
	for i, v := range g.Values {
		if values[i] = "null"; v != nil {
			values[i] = *v
		}
	}
	return fmt.Sprintf("%s %v on %s of %.200q", g.Index, g.Options, g.Type, values)
}

// checkPayload compares a payload byte for byte.
func (g golden) checkPayload(t *testing.T, got []byte) {
	t.Helper()
	switch sum := sha256.Sum256(got); {
	case g.SHA256 != "" && (len(got) != g.Length || hex.EncodeToString(sum[:]) != g.SHA256):
		t.Errorf("%v: %d bytes with the SHA-256 %x, want %d with %s", g, len(got), sum, g.Length, g.SHA256)
	case g.SHA256 == "" && hex.EncodeToString(got) != g.Hex:
		t.Errorf("%v:\n got %x\nwant %s", g, got, g.Hex)
	}
}

// goldenType parses a type as the goldens spell it, containers by their bare name.
func goldenType(t testing.TB, s string) types.Type {
	t.Helper()
	elem := &types.Type{Kind: types.Int}
	switch s {
	case "ARRAY":
		return types.Type{Kind: types.Array, Element: elem}
	case "MAP":
		return types.Type{Kind: types.Map, Key: &types.Type{Kind: types.Varchar, Length: types.MaxLength}, Element: elem}
	case "ROW":
		return types.Type{Kind: types.Row, Fields: []types.Field{{Name: "f0", Type: *elem}}}
	}
	parsed, err := types.Parse(strings.Replace(s, "LTZ", "TIMESTAMP_LTZ", 1))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func (g golden) values(t *testing.T, typ types.Type) []types.Value {
	t.Helper()
	if g.Formula != nil {
		return g.Formula.values(t, typ)
	}
	var values []types.Value
	for _, s := range g.Values {
		values = append(values, literal(t, typ, s))
	}
	return values
}

func literal(t *testing.T, typ types.Type, s *string) types.Value {
	t.Helper()
	if s == nil {
		return types.NullValue
	}
	v, err := types.ParseLiteral(typ, *s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (f formula) values(t *testing.T, typ types.Type) []types.Value {
	t.Helper()
	values := make([]types.Value, f.N)
	for i := range f.N {
		if f.NullEvery > 0 && i%f.NullEvery == 0 {
			values[i] = types.NullValue
			continue
		}
		n := i*f.Mul%f.Mod/f.Div - f.Sub
		switch typ.Kind {
		case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Date, types.Time:
			values[i].Int = n
		case types.Float, types.Double:
			values[i].Float = float64(n) * 0.5
		case types.Decimal:
			values[i].Unscaled = big.NewInt(n)
		case types.Varchar, types.Varbinary:
			values[i].Bytes = fmt.Appendf(nil, "s%d", n)
		case types.Timestamp, types.TimestampLTZ:
			micros := n * 1_000_001
			millis := (micros - (micros%1000+1000)%1000) / 1000
			values[i] = types.Value{Int: millis, Nanos: int32(micros-millis*1000) * 1000}
		default:
			t.Fatalf("no values of %s", typ)
		}
	}
	return values
}
