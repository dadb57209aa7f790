package tabletest

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"tablectl/internal/types"
)

// Chooser picks one of n possibilities, from 0; the first ones are the simplest.
// It is rand.IntN, or a generator of a property test that can shrink.
type Chooser func(n int) int

// Schemas makes up columns. Its zero value, but for Choose, is ready to use; ids
// count up, so that columns that are made later have new ones.
type Schemas struct {
	Choose Chooser
	NextID int
}

var names = []string{"c", "a.b", "Ü", "x y", "日本", "a", "key", "list.element", "`q\"", "_"}

// Fields makes up n columns, nested up to depth.
func (s *Schemas) Fields(n, depth int) []types.Field {
	fields := make([]types.Field, n)
	for i := range fields {
		fields[i] = s.Field(depth)
	}
	return fields
}

// Field makes up one column.
func (s *Schemas) Field(depth int) types.Field {
	f := types.Field{ID: s.NextID}
	s.NextID++
	f.Name = fmt.Sprintf("%s%d", names[s.Choose(len(names))], f.ID)
	f.Type = s.Type(depth)
	return f
}

// Type makes up a type that is nested up to depth.
func (s *Schemas) Type(depth int) types.Type {
	t := s.bare(depth)
	t.NotNull = s.Choose(4) == 3
	return t
}

func (s *Schemas) bare(depth int) types.Type {
	part := func() *types.Type {
		t := s.Type(depth - 1)
		return &t
	}
	if depth > 0 {
		switch s.Choose(8) {
		case 4:
			return types.Type{Kind: types.Array, Element: part()}
		case 5:
			return types.Type{Kind: types.Row, Fields: s.Fields(1+s.Choose(3), depth-1)}
		case 6:
			key := s.Type((depth - 1) * s.Choose(2))
			return types.Type{Kind: types.Map, Key: &key, Element: part()}
		case 7:
			return types.Type{Kind: types.Multiset, Element: part()}
		}
	}
	return s.Scalar()
}

// Scalar makes up a scalar type, or VARIANT.
func (s *Schemas) Scalar() types.Type {
	pick := func(choices ...int) int { return choices[s.Choose(len(choices))] }
	switch s.Choose(18) {
	case 1:
		return types.Type{Kind: types.Varchar, Length: types.MaxLength}
	case 2:
		return types.Type{Kind: types.BigInt}
	case 3:
		return types.Type{Kind: types.Double}
	case 4:
		p := pick(1, 9, 10, 18, 19, 25, 38)
		return types.Type{Kind: types.Decimal, Precision: p, Scale: s.Choose(p + 1)}
	case 5:
		return types.Type{Kind: types.Boolean}
	case 6:
		return types.Type{Kind: types.Float}
	case 7:
		return types.Type{Kind: types.Timestamp, Precision: pick(6, 3, 0, 9)}
	case 8:
		return types.Type{Kind: types.TimestampLTZ, Precision: pick(6, 3, 0, 9)}
	case 9:
		return types.Type{Kind: types.Date}
	case 10:
		return types.Type{Kind: types.Time, Precision: pick(0, 3)}
	case 11:
		return types.Type{Kind: types.TinyInt}
	case 12:
		return types.Type{Kind: types.SmallInt}
	case 13:
		return types.Type{Kind: types.Char, Length: pick(1, 5)}
	case 14:
		return types.Type{Kind: types.Varchar, Length: pick(1, 20)}
	case 15:
		return types.Type{Kind: types.Binary, Length: pick(1, 4)}
	case 16:
		return types.Type{Kind: types.Varbinary, Length: pick(types.MaxLength, 10)}
	case 17:
		return types.Type{Kind: types.Variant}
	}
	return types.Type{Kind: types.Int}
}

// Values makes up cells. Rates are from 0 to 1.
type Values struct {
	*rand.Rand
	NullRate float64
	MaxText  int // characters of a text, bytes of a binary; 0 is 30
	MaxItems int // of a list or map; 0 is 4
}

// Rows makes up n rows. Some columns have few distinct values.
func (g Values) Rows(fields []types.Field, n int) [][]any {
	pools := make([][]any, len(fields))
	for i, f := range fields {
		if g.Float64() < 0.3 {
			for range 1 + g.IntN(5) {
				pools[i] = append(pools[i], g.Cell(f.Type))
			}
		}
	}
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = make([]any, len(fields))
		for j, f := range fields {
			if pools[j] != nil {
				rows[i][j] = pools[j][g.IntN(len(pools[j]))]
			} else {
				rows[i][j] = g.Cell(f.Type)
			}
		}
	}
	return rows
}

// Cell makes up one value.
func (g Values) Cell(t types.Type) any {
	if !t.NotNull && g.Float64() < g.NullRate {
		return nil
	}
	switch t.Kind {
	case types.Array:
		list := List{}
		for range g.items() {
			list = append(list, g.Cell(*t.Element))
		}
		return list
	case types.Map, types.Multiset:
		key, value := MapTypes(t)
		key.NotNull = true
		m := Map{}
		for range g.items() {
			m = append(m, Pair{g.Cell(key), g.Cell(value)})
		}
		return m
	case types.Row:
		s := make(Struct, len(t.Fields))
		for i, f := range t.Fields {
			s[i] = g.Cell(f.Type)
		}
		return s
	case types.Variant:
		values := [][]byte{{0x00}, {0x04}, {0x08}, {0x0c, byte(g.IntN(256))}, {0x0d, 'a', 'b', 'c'}, {0x01}}
		return Variant{Value: values[g.IntN(len(values))], Metadata: []byte{1, 0, 0}}
	}
	return g.scalar(t)
}

func (g Values) items() int {
	if g.IntN(3) == 0 {
		return 0
	}
	most := g.MaxItems
	if most == 0 {
		most = 4
	}
	return g.IntN(most + 1)
}

func (g Values) scalar(t types.Type) types.Value {
	switch t.Kind {
	case types.Boolean:
		return types.Bool(g.IntN(2) == 0)
	case types.TinyInt:
		return types.Value{Int: int64(int8(g.integer()))}
	case types.SmallInt:
		return types.Value{Int: int64(int16(g.integer()))}
	case types.Int, types.Date:
		return types.Value{Int: int64(int32(g.integer()))}
	case types.BigInt:
		return types.Value{Int: g.integer()}
	case types.Float:
		return types.Value{Float: float64(float32(g.float(math.Float32frombits)))}
	case types.Double:
		return types.Value{Float: g.float(nil)}
	case types.Decimal:
		return types.Value{Unscaled: g.decimal(t.Precision)}
	case types.Time:
		n := g.Int64N(24 * 60 * 60 * 1000)
		if t.Precision == 0 {
			n -= n % 1000
		}
		return types.Value{Int: n}
	case types.Timestamp, types.TimestampLTZ:
		return g.timestamp(t.Precision)
	case types.Char, types.Varchar:
		return types.Value{Bytes: g.text(min(t.Length, max(g.MaxText, 1)+29*btoi(g.MaxText == 0)))}
	case types.Binary, types.Varbinary:
		most := g.MaxText
		if most == 0 {
			most = 30
		}
		b := make([]byte, g.IntN(min(t.Length, most)+1))
		for i := range b {
			b[i] = byte(g.Uint32())
		}
		return types.Value{Bytes: b}
	}
	panic(fmt.Sprintf("no values of type %s", t))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// integer is small, or extreme for one of the widths, or anything.
func (g Values) integer() int64 {
	switch g.IntN(4) {
	case 0:
		extremes := []int64{
			0, -1, math.MinInt8, math.MaxInt8, math.MinInt16, math.MaxInt16, math.MinInt32, math.MaxInt32, math.MinInt64, math.MaxInt64,
		}
		return extremes[g.IntN(len(extremes))]
	case 1:
		return int64(g.Uint64())
	}
	return g.Int64N(201) - 100
}

func (g Values) float(narrow func(uint32) float32) float64 {
	switch g.IntN(4) {
	case 0:
		special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat32, math.MaxFloat32}
		return special[g.IntN(len(special))]
	case 1:
		if narrow != nil {
			return float64(narrow(g.Uint32()))
		}
		return math.Float64frombits(g.Uint64())
	}
	return float64(g.IntN(2001)-1000) / 8
}

func (g Values) decimal(precision int) *big.Int {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(1+g.IntN(precision))), nil)
	n := new(big.Int).Sub(limit, big.NewInt(1))
	if g.IntN(4) > 0 {
		bytes := make([]byte, len(limit.Bytes())+1)
		for i := range bytes {
			bytes[i] = byte(g.Uint32())
		}
		n.Mod(n.SetBytes(bytes), limit)
	}
	if g.IntN(2) == 0 {
		n.Neg(n)
	}
	return n
}

// timestamp is in a range that microseconds and INT96 can hold.
func (g Values) timestamp(precision int) types.Value {
	const far = 1_000_000_000_000_000
	v := types.Value{Int: g.Int64N(2*far) - far, Nanos: int32(g.IntN(1_000_000))}
	if g.IntN(2) == 0 {
		v.Int = g.Int64N(4001) - 2000
	}
	switch {
	case precision == 0:
		v.Int, v.Nanos = v.Int/1000*1000, 0
	case precision <= 3:
		v.Nanos = 0
	case precision <= 6:
		v.Nanos -= v.Nanos % 1000
	}
	return v
}

var chars = []rune("aaabcXYZ 09_é\x00\"\\\nßñ日本語\ud7ff\ue000\ufffd😀\U0010ffff")

func (g Values) text(most int) []byte {
	n := g.IntN(most + 1)
	b := make([]rune, n)
	for i := range b {
		b[i] = chars[g.IntN(len(chars))]
	}
	return []byte(string(b))
}
