// Package cast converts scalar values from the type that a column had when a
// file was written to the type that it has now, as Paimon's readers do on every
// read (reference: CastExecutors and its rules, release 1.4.2).
//
// A cast goes in one step from the file's type to the current one. Three things
// are deliberate: casts whose result depends on the time zone of the reading
// process are refused, since a rewritten file would fix one zone for ever;
// a decimal overflow gives null, as reads show it; and the text of FLOAT and
// DOUBLE is the shortest that reads back, as Java prints it since version 19.
package cast

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tablectl/internal/types"
)

// Func converts one value that is not null. The result may be null.
type Func func(types.Value) (types.Value, error)

// Identity leaves values as they are.
func Identity(v types.Value) (types.Value, error) { return v, nil }

// Resolve returns the cast between two scalar types. The error says why there
// is none; nullability matters only where the reference makes it matter.
func Resolve(from, to types.Type) (Func, error) {
	if from.Same(to) {
		return Identity, nil
	}
	if !from.Scalar() || !to.Scalar() {
		return nil, fmt.Errorf("no cast from %s to %s", from, to)
	}
	if f := resolve(from, to); f != nil {
		return func(v types.Value) (types.Value, error) {
			r, err := f(v)
			if err != nil {
				return r, fmt.Errorf("cast %q from %s to %s: %w", types.Format(from, v), from, to, err)
			}
			return r, nil
		}, nil
	}
	if (from.Kind == types.TimestampLTZ) != (to.Kind == types.TimestampLTZ) {
		return nil, fmt.Errorf("the cast from %s to %s depends on the time zone of the reader, or does not exist", from, to)
	}
	return nil, fmt.Errorf("no cast from %s to %s", from, to)
}

func integer(k types.Kind) bool { return k >= types.TinyInt && k <= types.BigInt }

func floating(k types.Kind) bool { return k == types.Float || k == types.Double }

func text(k types.Kind) bool { return k == types.Char || k == types.Varchar }

func binary(k types.Kind) bool { return k == types.Binary || k == types.Varbinary }

// resolve returns nil where the reference has no rule, or one that depends on a zone.
func resolve(from, to types.Type) Func {
	f, t := from.Kind, to.Kind
	switch {
	case text(f):
		return fromText(to)
	case text(t):
		return toText(from, to)
	case binary(f) && binary(t):
		return func(v types.Value) (types.Value, error) { return fitBytes(v.Bytes, to), nil }
	case t == types.Decimal:
		return toDecimal(from, to)
	case integer(t) || floating(t):
		return toNumber(from, to)
	case t == types.Boolean && integer(f):
		return func(v types.Value) (types.Value, error) { return types.Bool(v.Int != 0), nil }
	}
	return toTemporal(from, to)
}

// wrap keeps the low bits that an integer type has.
func wrap(n int64, k types.Kind) types.Value {
	switch k {
	case types.TinyInt:
		n = int64(int8(n))
	case types.SmallInt:
		n = int64(int16(n))
	case types.Int:
		n = int64(int32(n))
	}
	return types.Value{Int: n}
}

func toNumber(from, to types.Type) Func {
	f, t := from.Kind, to.Kind
	switch {
	case f == types.Boolean || integer(f):
		return func(v types.Value) (types.Value, error) {
			switch t {
			case types.Float:
				return types.Value{Float: float64(float32(v.Int))}, nil
			case types.Double:
				return types.Value{Float: float64(v.Int)}, nil
			}
			return wrap(v.Int, t), nil
		}
	case floating(f):
		return func(v types.Value) (types.Value, error) {
			switch t {
			case types.Float:
				return types.Value{Float: float64(float32(v.Float))}, nil
			case types.Double:
				return v, nil
			}
			return floatToInteger(v.Float, t), nil
		}
	case f == types.Decimal:
		return func(v types.Value) (types.Value, error) {
			if floating(t) {
				d := decimalToDouble(v.Unscaled, from)
				if t == types.Float {
					d = float64(float32(d))
				}
				return types.Value{Float: d}, nil
			}
			whole := new(big.Int).Quo(v.Unscaled, pow10(from.Scale))
			return wrap(lowBits(whole), t), nil
		}
	case (f == types.Timestamp || f == types.TimestampLTZ) && (t == types.Int || t == types.BigInt):
		return func(v types.Value) (types.Value, error) { return wrap(v.Int/1000, t), nil }
	}
	return nil
}

// floatToInteger is Java's narrowing: toward zero, saturating to the range of
// INT or BIGINT, with NaN as zero; smaller types keep the low bits of the INT.
func floatToInteger(f float64, k types.Kind) types.Value {
	low, high := float64(math.MinInt32), float64(math.MaxInt32)
	if k == types.BigInt {
		low, high = math.MinInt64, math.MaxInt64
	}
	var n int64
	switch {
	case math.IsNaN(f):
	case f <= low:
		n = int64(low)
	case f >= high:
		n = math.MaxInt32
		if k == types.BigInt {
			n = math.MaxInt64
		}
	default:
		n = int64(f)
	}
	return wrap(n, k)
}

// lowBits is the low 64 bits of the two's complement.
func lowBits(n *big.Int) int64 {
	mask := new(big.Int).SetUint64(math.MaxUint64)
	return int64(new(big.Int).And(n, mask).Uint64())
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func decimalToDouble(unscaled *big.Int, t types.Type) float64 {
	if t.Precision <= 18 {
		return float64(unscaled.Int64()) / math.Pow10(t.Scale)
	}
	f, _ := strconv.ParseFloat(types.FormatDecimal(unscaled, t.Scale), 64)
	return f
}

func toDecimal(from, to types.Type) Func {
	switch f := from.Kind; {
	case f == types.Boolean || integer(f):
		return func(v types.Value) (types.Value, error) { return rescale(big.NewInt(v.Int), 0, to), nil }
	case f == types.Decimal:
		return func(v types.Value) (types.Value, error) { return rescale(v.Unscaled, from.Scale, to), nil }
	case floating(f):
		return func(v types.Value) (types.Value, error) {
			if math.IsNaN(v.Float) || math.IsInf(v.Float, 0) {
				return types.Value{}, errBad
			}
			// The decimal value of the shortest text, as in Java's BigDecimal.valueOf.
			unscaled, scale, _ := parseBigDecimal(strconv.FormatFloat(v.Float, 'e', -1, 64))
			return rescale(unscaled, scale, to), nil
		}
	}
	return nil
}

// rescale rounds half up (ties away from zero) to the scale of the type; what has
// too many digits then is null.
func rescale(unscaled *big.Int, scale int, to types.Type) types.Value {
	n := new(big.Int).Set(unscaled)
	switch d := to.Scale - scale; {
	case d >= 0:
		if n.Sign() != 0 && d > 400 {
			return types.NullValue // far beyond any precision
		}
		n.Mul(n, pow10(min(d, 400)))
	case -d > len(n.String())+1:
		n.SetInt64(0)
	default:
		unit := pow10(-d)
		rest := new(big.Int)
		n.QuoRem(n, unit, rest)
		if rest.Abs(rest).Lsh(rest, 1).Cmp(unit) >= 0 {
			n.Add(n, big.NewInt(int64(unscaled.Sign())))
		}
	}
	if new(big.Int).Abs(n).Cmp(pow10(to.Precision)) >= 0 {
		return types.NullValue
	}
	return types.Value{Unscaled: n}
}

// fitText cuts text to the length of a CHAR or VARCHAR, in characters, and pads
// CHAR with blanks.
func fitText(s string, to types.Type) types.Value {
	if n := utf8.RuneCountInString(s); n > to.Length {
		seen := 0
		for i := range s {
			if seen == to.Length {
				s = s[:i]
				break
			}
			seen++
		}
	} else if to.Kind == types.Char {
		s += strings.Repeat(" ", to.Length-n)
	}
	return types.Value{Bytes: []byte(s)}
}

// fitBytes cuts bytes to the length of the type and pads BINARY with zeros.
func fitBytes(b []byte, to types.Type) types.Value {
	if len(b) > to.Length {
		b = b[:to.Length]
	} else if to.Kind == types.Binary && len(b) < to.Length {
		b = append(append(make([]byte, 0, to.Length), b...), make([]byte, to.Length-len(b))...)
	}
	return types.Value{Bytes: b}
}

func toText(from, to types.Type) Func {
	nullableString := to.Kind == types.Varchar && to.Length == types.MaxLength && !to.NotNull
	as := func(format func(types.Value) string) Func {
		return func(v types.Value) (types.Value, error) { return fitText(format(v), to), nil }
	}
	switch f := from.Kind; {
	case binary(f):
		return Identity // neither cut nor padded nor checked
	case f == types.Boolean || integer(f) || f == types.Decimal:
		return as(func(v types.Value) string { return types.Format(from, v) })
	case f == types.Float:
		return as(func(v types.Value) string { return types.JavaFloat(v.Float, 32) })
	case f == types.Double:
		return as(func(v types.Value) string { return types.JavaFloat(v.Float, 64) })
	case !nullableString:
		return nil
	case f == types.Date:
		return as(func(v types.Value) string { return dateText(v.Int) })
	case f == types.Time:
		return as(func(v types.Value) string { return timeText(v.Int, from.Precision) })
	case f == types.Timestamp:
		return as(func(v types.Value) string { return timestampText(v, from.Precision) })
	}
	return nil
}

func timeText(millis int64, precision int) string {
	for millis < 0 {
		millis += millisPerDay
	}
	s := types.FormatTime(millis%(100*60*60*1000), 0)
	for rest := millis % 1000; precision > 0; precision-- {
		if !strings.Contains(s, ".") {
			s += "."
		}
		s += strconv.FormatInt(rest/100, 10)
		if rest = rest % 100 * 10; rest == 0 {
			break
		}
	}
	return s
}

// dateText writes four digits of the year, like the reference: those that a year
// beyond 9999 has more are missing, and of a negative year none is a digit.
func dateText(days int64) string {
	year, month, day := time.Unix(days*24*60*60, 0).UTC().Date()
	var digits [4]byte
	for i := range digits {
		digits[3-i] = byte('0' + year%10)
		year /= 10
	}
	return fmt.Sprintf("%s-%02d-%02d", digits, int(month), day)
}

func timestampText(v types.Value, precision int) string {
	_, clock, _ := strings.Cut(types.FormatTimestamp(v, 9), " ")
	days := v.Int / millisPerDay
	if v.Int%millisPerDay < 0 {
		days--
	}
	return dateText(days) + " " + trimFraction(clock, precision)
}

// trimFraction drops trailing zeros of the second's fraction, but leaves at least
// least digits.
func trimFraction(s string, least int) string {
	head, fraction, _ := strings.Cut(s, ".")
	for len(fraction) > least && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	if fraction == "" {
		return head
	}
	return head + "." + fraction
}

const millisPerDay = 24 * 60 * 60 * 1000

func toTemporal(from, to types.Type) Func {
	zoned := from.Kind == types.TimestampLTZ
	switch f, t := from.Kind, to.Kind; {
	case f == t && (f == types.Timestamp || f == types.TimestampLTZ):
		if to.Precision >= from.Precision {
			return Identity
		}
		return func(v types.Value) (types.Value, error) { return cutPrecision(v, to.Precision), nil }
	case zoned || t == types.TimestampLTZ:
		if f == types.Time {
			return Identity // the same instant in every zone
		}
		return nil
	case t == types.Timestamp:
		switch f {
		case types.Date:
			return func(v types.Value) (types.Value, error) { return types.Value{Int: v.Int * millisPerDay}, nil }
		case types.Time:
			return Identity
		case types.Int, types.BigInt:
			return func(v types.Value) (types.Value, error) { return types.Value{Int: v.Int * 1000}, nil }
		}
	case f == types.Timestamp && t == types.Date:
		return func(v types.Value) (types.Value, error) { return types.Value{Int: v.Int / millisPerDay}, nil }
	case f == types.Timestamp && t == types.Time:
		return func(v types.Value) (types.Value, error) { return types.Value{Int: v.Int % millisPerDay}, nil }
	}
	return nil
}

// cutPrecision lowers the precision of a timestamp the way the reference does,
// which before 1970 rounds toward zero.
func cutPrecision(v types.Value, precision int) types.Value {
	nanoOfSecond := (v.Int%1000+1000)%1000*1e6 + int64(v.Nanos)
	if len(strconv.FormatInt(nanoOfSecond, 10)) <= precision {
		return v
	}
	if precision <= 3 {
		unit := int64(math.Pow10(3 - precision))
		return types.Value{Int: v.Int / unit * unit}
	}
	unit := int32(math.Pow10(9 - precision))
	v.Nanos = v.Nanos / unit * unit
	return v
}
