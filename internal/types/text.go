package types

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

const (
	millisPerDay = 24 * 60 * 60 * 1000
	dateLayout   = "2006-01-02"
)

// ParseLiteral reads a literal typed by t, as filters write it: numbers in
// decimal, DATE as 2024-02-29, TIME as 23:59:59[.fff], TIMESTAMP as
// "2024-02-29 23:59:59[.f…]" (a T between date and time and a bare date are
// accepted), DECIMAL with no more digits than the type has, BOOLEAN as true or
// false, BINARY as hexadecimal digits. What does not fit the type exactly is an
// error.
func ParseLiteral(t Type, s string) (Value, error) {
	v, err := parseLiteral(t, s)
	if err != nil {
		return Value{}, fmt.Errorf("%q is not a %s: %w", s, t.bare(), err)
	}
	return v, nil
}

func parseLiteral(t Type, s string) (Value, error) {
	switch t.Kind {
	case Char, Varchar:
		return Value{Bytes: []byte(s)}, nil
	case Binary, Varbinary:
		b, err := hex.DecodeString(s)
		if err != nil {
			return Value{}, errors.New("expected hexadecimal digits")
		}
		return Value{Bytes: b}, nil
	case Boolean:
		switch strings.ToLower(s) {
		case "true":
			return Bool(true), nil
		case "false":
			return Bool(false), nil
		}
		return Value{}, errors.New("expected true or false")
	case TinyInt, SmallInt, Int, BigInt:
		bits := map[Kind]int{TinyInt: 8, SmallInt: 16, Int: 32, BigInt: 64}[t.Kind]
		n, err := strconv.ParseInt(s, 10, bits)
		if errors.Is(err, strconv.ErrRange) {
			return Value{}, errors.New("out of range")
		} else if err != nil {
			return Value{}, errors.New("expected an integer")
		}
		return Value{Int: n}, nil
	case Float, Double:
		bits := map[Kind]int{Float: 32, Double: 64}[t.Kind]
		f, err := strconv.ParseFloat(s, bits)
		if err != nil || strings.Contains(s, "_") {
			return Value{}, errors.New("expected a number in range")
		}
		return Value{Float: f}, nil
	case Decimal:
		return parseDecimal(t, s)
	case Date:
		d, err := time.Parse(dateLayout, s)
		if err != nil {
			return Value{}, errors.New("expected yyyy-mm-dd")
		}
		return Value{Int: floorDiv(d.Unix(), 24*60*60)}, nil
	case Time:
		d, err := time.Parse("15:04:05.999", s)
		if err != nil || strings.Contains(s, ",") {
			return Value{}, errors.New("expected hh:mm:ss")
		}
		if !fractionFits(s, min(t.Precision, 3)) {
			return Value{}, errors.New("more digits of a second's fraction than the type has")
		}
		return Value{Int: d.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds()}, nil
	case Timestamp, TimestampLTZ:
		return parseTimestamp(t, s)
	}
	return Value{}, errors.New("values of this type cannot be written as literals")
}

func parseDecimal(t Type, s string) (Value, error) {
	digits, neg := s, false
	if rest, ok := strings.CutPrefix(digits, "-"); ok {
		digits, neg = rest, true
	}
	whole, frac, _ := strings.Cut(digits, ".")
	frac = strings.TrimRight(frac, "0")
	if whole+frac == "" && !strings.Contains(digits, "0") || strings.Trim(whole+frac, "0123456789") != "" {
		return Value{}, errors.New("expected a decimal number")
	}
	if len(frac) > t.Scale {
		return Value{}, errors.New("too many digits after the point")
	}
	all := strings.TrimLeft(whole+frac+strings.Repeat("0", t.Scale-len(frac)), "0")
	if len(all) > t.Precision {
		return Value{}, errors.New("out of range")
	}
	n := new(big.Int)
	if all != "" {
		n.SetString(all, 10)
	}
	if neg {
		n.Neg(n)
	}
	return Value{Unscaled: n}, nil
}

// fractionFits reports whether a second's fraction has no more digits than precision,
// not counting trailing zeros. The time package drops those beyond nine.
func fractionFits(s string, precision int) bool {
	_, fraction, _ := strings.Cut(s, ".")
	return len(strings.TrimRight(fraction, "0")) <= precision
}

func parseTimestamp(t Type, s string) (Value, error) {
	text := strings.Replace(s, "T", " ", 1)
	for _, layout := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", dateLayout} {
		d, err := time.Parse(layout, text)
		if err != nil || strings.Contains(s, ",") {
			continue
		}
		nanos := d.Nanosecond()
		if !fractionFits(s, t.Precision) {
			return Value{}, errors.New("more digits of a second's fraction than the type has")
		}
		return Value{Int: d.Unix()*1000 + int64(nanos/1e6), Nanos: int32(nanos % 1e6)}, nil
	}
	return Value{}, errors.New("expected yyyy-mm-dd hh:mm:ss")
}

// Format writes a cell for people: strings as they are, numbers in decimal,
// dates and times in ISO form, TIMESTAMP_LTZ in UTC, bytes as hexadecimal
// digits. A null is the word null.
func Format(t Type, v Value) string {
	if v.Null {
		return "null"
	}
	switch t.Kind {
	case Char, Varchar:
		return string(v.Bytes)
	case Binary, Varbinary:
		return hex.EncodeToString(v.Bytes)
	case Boolean:
		return strconv.FormatBool(v.Int != 0)
	case Float:
		return strconv.FormatFloat(v.Float, 'g', -1, 32)
	case Double:
		return strconv.FormatFloat(v.Float, 'g', -1, 64)
	case Decimal:
		return FormatDecimal(v.Unscaled, t.Scale)
	case Date:
		return FormatDate(v.Int)
	case Time:
		return FormatTime(v.Int, t.Precision)
	case Timestamp:
		return FormatTimestamp(v, t.Precision)
	case TimestampLTZ:
		return FormatTimestamp(v, t.Precision) + "Z"
	}
	return strconv.FormatInt(v.Int, 10)
}

// FormatDecimal writes unscaled × 10^-scale with exactly scale digits after the point.
func FormatDecimal(unscaled *big.Int, scale int) string {
	s := new(big.Int).Abs(unscaled).String()
	if len(s) <= scale {
		s = strings.Repeat("0", scale-len(s)+1) + s
	}
	if scale > 0 {
		s = s[:len(s)-scale] + "." + s[len(s)-scale:]
	}
	if unscaled.Sign() < 0 {
		s = "-" + s
	}
	return s
}

// FormatDate writes days since 1970-01-01 as yyyy-mm-dd.
func FormatDate(days int64) string { return isoDate(time.Unix(days*24*60*60, 0).UTC()) }

// isoDate writes years as Java's LocalDate does: at least four digits, a sign
// where there are more or the year is negative.
func isoDate(d time.Time) string {
	year, month, day := d.Date()
	y := fmt.Sprintf("%04d", year)
	switch {
	case year < 0:
		y = fmt.Sprintf("-%04d", -year)
	case year > 9999:
		y = fmt.Sprintf("+%d", year)
	}
	return fmt.Sprintf("%s-%02d-%02d", y, int(month), day)
}

// FormatTime writes milliseconds of the day as hh:mm:ss with precision digits
// (at most three) of the second's fraction.
func FormatTime(millis int64, precision int) string {
	s := fmt.Sprintf("%02d:%02d:%02d", millis/3600000, millis/60000%60, millis/1000%60)
	if p := min(precision, 3); p > 0 {
		s += "." + fmt.Sprintf("%03d", millis%1000)[:p]
	}
	return s
}

// FormatTimestamp writes yyyy-mm-dd hh:mm:ss with precision digits of the second's fraction.
func FormatTimestamp(v Value, precision int) string {
	days := floorDiv(v.Int, millisPerDay)
	millis := v.Int - days*millisPerDay
	s := FormatDate(days) + " " + FormatTime(millis, 0)
	if precision > 0 {
		s += "." + fmt.Sprintf("%03d%06d", millis%1000, v.Nanos)[:precision]
	}
	return s
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// JavaFloat writes a number as Java's Float.toString and Double.toString do
// since version 19: the shortest digits that read back, plain from 10^-3 to 10^7,
// else with an exponent, always with a digit after the point. bits is 32 or 64.
func JavaFloat(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0 || math.Abs(f) >= 1e-3 && math.Abs(f) < 1e7:
		s := strconv.FormatFloat(f, 'f', -1, bits)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	shortest := strconv.FormatFloat(f, 'e', -1, bits)
	if !strings.Contains(shortest, ".") {
		// Two digits are as good as one, and may be nearer: 4.9E-324, not 5.0E-324.
		two := strconv.FormatFloat(f, 'e', 1, bits)
		if back, err := strconv.ParseFloat(two, bits); err == nil && back == f {
			shortest = two
		}
	}
	mantissa, exponent, _ := strings.Cut(shortest, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}
