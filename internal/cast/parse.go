package cast

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"tablectl/internal/types"
)

var errBad = errors.New("not a value of that type")

// fromText parses text as the reference's rules do, which are looser than SQL
// in places; see the patterns.
func fromText(to types.Type) Func {
	parse := func(f func(string) (types.Value, error)) Func {
		return func(v types.Value) (types.Value, error) { return f(string(v.Bytes)) }
	}
	switch t := to.Kind; {
	case text(t):
		return parse(func(s string) (types.Value, error) { return fitText(s, to), nil })
	case binary(t):
		return func(v types.Value) (types.Value, error) { return fitBytes(v.Bytes, to), nil }
	case t == types.Boolean:
		return parse(parseBoolean)
	case integer(t):
		return parse(func(s string) (types.Value, error) { return parseInteger(s, t) })
	case floating(t):
		return parse(func(s string) (types.Value, error) { return parseFloat(s, t) })
	case t == types.Decimal:
		return parse(func(s string) (types.Value, error) {
			unscaled, scale, err := parseBigDecimal(s)
			if err != nil {
				return types.Value{}, err
			}
			return rescale(unscaled, scale, to), nil
		})
	case t == types.Date:
		return parse(parseDate)
	case t == types.Time:
		return parse(parseTime)
	case t == types.Timestamp:
		return parse(func(s string) (types.Value, error) { return parseTimestamp(s, to.Precision) })
	}
	return nil // TIMESTAMP_LTZ depends on the zone
}

func parseBoolean(s string) (types.Value, error) {
	switch strings.ToLower(s) {
	case "t", "true", "y", "yes", "1":
		return types.Bool(true), nil
	case "f", "false", "n", "no", "0":
		return types.Bool(false), nil
	}
	return types.Value{}, errBad
}

// A fraction is allowed and dropped, and digits may be missing on either side
// of the point.
var integerText = regexp.MustCompile(`^([+-]?)([0-9]*)(\.[0-9]*)?$`)

func parseInteger(s string, k types.Kind) (types.Value, error) {
	m := integerText.FindStringSubmatch(s)
	if m == nil || m[2] == "" && m[3] == "" {
		return types.Value{}, errBad
	}
	digits := strings.TrimPrefix(m[1], "+") + "0" + m[2]
	bits := map[types.Kind]int{types.TinyInt: 8, types.SmallInt: 16, types.Int: 32, types.BigInt: 64}[k]
	n, err := strconv.ParseInt(digits, 10, bits)
	if err != nil {
		return types.Value{}, errBad
	}
	return types.Value{Int: n}, nil
}

// trim is Java's String.trim.
func trim(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

var floatText = regexp.MustCompile(`^([+-]?)(?:(NaN|Infinity)|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)$`)

func parseFloat(s string, k types.Kind) (types.Value, error) {
	m := floatText.FindStringSubmatch(trim(s))
	if m == nil {
		return types.Value{}, errBad
	}
	bits := 64
	if k == types.Float {
		bits = 32
	}
	number := m[3]
	if m[2] != "" {
		number = m[2]
	}
	f, err := strconv.ParseFloat(number, bits)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return types.Value{}, errBad
	}
	if m[1] == "-" {
		f = -f
	}
	return types.Value{Float: f}, nil
}

var decimalText = regexp.MustCompile(`^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$`)

// parseBigDecimal reads Java's BigDecimal syntax: value = unscaled × 10^-scale.
func parseBigDecimal(s string) (unscaled *big.Int, scale int, err error) {
	m := decimalText.FindStringSubmatch(asciiDigits(s))
	if m == nil || m[2]+m[3] == "" {
		return nil, 0, errBad
	}
	exponent := int64(0)
	if m[4] != "" {
		if exponent, err = strconv.ParseInt(m[4], 10, 32); err != nil {
			return nil, 0, errBad
		}
	}
	n, ok := new(big.Int).SetString(m[2]+m[3], 10)
	if !ok {
		return nil, 0, errBad
	}
	if m[1] == "-" {
		n.Neg(n)
	}
	return n, len(m[3]) - int(exponent), nil
}

// asciiDigits replaces the decimal digits of other scripts, which BigDecimal reads too.
func asciiDigits(s string) string {
	return strings.Map(func(r rune) rune {
		for _, digits := range unicode.Nd.R16 {
			if rune(digits.Lo) <= r && r <= rune(digits.Hi) {
				return '0' + (r-rune(digits.Lo))%10
			}
		}
		return r
	}, s)
}

var onlyDigits = regexp.MustCompile(`^-?[0-9]+$`)

// digits reads a trimmed run of ASCII digits.
func digits(s string) (int, error) {
	s = trim(s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, errBad
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return int(n), err
}

// parseDate reads an epoch day, or a year with optional month and day.
func parseDate(s string) (types.Value, error) {
	if onlyDigits.MatchString(s) {
		return parseInteger(s, types.Int)
	}
	if i := strings.IndexByte(s, ' '); i > 0 {
		s = s[:i]
	}
	date := [3]int{0, 1, 1}
	for i, part := range strings.SplitN(s, "-", 3) {
		n, err := digits(part)
		if err != nil {
			return types.Value{}, errBad
		}
		date[i] = n
	}
	d := time.Date(date[0], time.Month(date[1]), date[2], 0, 0, 0, 0, time.UTC)
	if date[0] > 9999 || date[1] < 1 || date[1] > 12 || d.Day() != date[2] {
		return types.Value{}, errBad
	}
	return types.Value{Int: d.Unix() / (24 * 60 * 60)}, nil
}

// parseTime reads milliseconds of the day, or h[:m[:s[.f]]] with an optional
// offset at the end, which is added. Nothing is checked for its range.
func parseTime(s string) (types.Value, error) {
	if onlyDigits.MatchString(s) {
		return parseInteger(s, types.Int)
	}
	sign := int32(1)
	var offset string
	hasOffset := true
	if i := strings.IndexByte(s, '-'); i >= 0 {
		sign, offset, s = -1, s[i+1:], s[:i]
	} else if i := strings.IndexByte(s, '+'); i >= 0 {
		offset, s = s[i+1:], s[:i]
	} else {
		hasOffset = false
	}
	var part [4]int32 // hours, minutes, seconds, milliseconds
	rest, fraction, hasFraction := s, "", false
	if pieces := strings.SplitN(s, ":", 3); len(pieces) == 3 {
		pieces[2], fraction, hasFraction = strings.Cut(pieces[2], ".")
		rest = strings.Join(pieces, ":")
	}
	for i, p := range strings.SplitN(rest, ":", 3) {
		n, err := digits(p)
		if err != nil {
			return types.Value{}, errBad
		}
		part[i] = int32(n)
	}
	if hasFraction {
		part[3] = fractionMillis(trim(fraction))
	}
	if hasOffset {
		h, m, hasMinutes := strings.Cut(offset, ":")
		hours, err := digits(h)
		if err != nil {
			return types.Value{}, errBad
		}
		part[0] += sign * int32(hours)
		if hasMinutes {
			minutes, err := digits(m)
			if err != nil || strings.Count(s, ":") < 2 { // the reference takes the first colons for the time's
				return types.Value{}, errBad
			}
			part[1] += sign * int32(minutes)
		}
	}
	return types.Value{Int: int64(part[0]*3600000 + part[1]*60000 + part[2]*1000 + part[3])}, nil
}

// fractionMillis takes three digits, rounding up at a fourth character from '5' on;
// what is not a digit counts as zero. Characters are Java's, of 16 bits.
func fractionMillis(text string) int32 {
	s := utf16.Encode([]rune(text))
	var millis int32
	for i := range 3 {
		millis *= 10
		if i < len(s) && s[i] >= '0' && s[i] <= '9' {
			millis += int32(s[i] - '0')
		}
	}
	if len(s) > 3 && s[3] >= '5' {
		millis++
	}
	return millis
}

var dateTimeText = regexp.MustCompile(`^(\d{4}|\+\d{5,9})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{0,9}))?)?$`)

// parseTimestamp reads an epoch number in the unit of the precision, or a date
// with an optional time.
func parseTimestamp(s string, precision int) (types.Value, error) {
	if onlyDigits.MatchString(s) {
		return parseEpoch(s, precision)
	}
	m := dateTimeText.FindStringSubmatch(s)
	if m == nil {
		return types.Value{}, errBad
	}
	var n [6]int
	for i := range n {
		if m[i+1] != "" {
			n[i], _ = strconv.Atoi(m[i+1])
		}
	}
	endOfDay := n[3] == 24 && n[4] == 0 && n[5] == 0 && strings.Trim(m[7], "0") == ""
	if n[0] == 0 || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 || n[3] > 23 && !endOfDay || n[4] > 59 || n[5] > 59 {
		return types.Value{}, errBad
	}
	monthEnd := time.Date(n[0], time.Month(n[1])+1, 0, 0, 0, 0, 0, time.UTC).Day()
	d := time.Date(n[0], time.Month(n[1]), min(n[2], monthEnd), n[3], n[4], n[5], 0, time.UTC)
	nanos, _ := strconv.Atoi((m[7] + "000000000")[:9])
	nanos -= nanos % int(math.Pow10(9-precision))
	return types.Value{Int: d.Unix()*1000 + int64(nanos/1e6), Nanos: int32(nanos % 1e6)}, nil
}

func parseEpoch(s string, precision int) (types.Value, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return types.Value{}, errBad
	}
	switch precision {
	case 0:
		return types.Value{Int: n * 1000}, nil
	case 3:
		return types.Value{Int: n}, nil
	case 6, 9:
		perMilli := int64(math.Pow10(precision - 3))
		millis := n / perMilli
		rest := n % perMilli
		if rest < 0 {
			millis--
			rest += perMilli
		}
		return types.Value{Int: millis, Nanos: int32(rest * (1e6 / perMilli))}, nil
	}
	return types.Value{}, errBad
}
