package merge

import (
	"bytes"
	"fmt"
	"math"
	"math/big"

	"tablectl/internal/types"
)

// binary combines two values, neither of which is null.
type binary func(a, b types.Value) (types.Value, error)

// computing makes a Function from how values are added and retracted. Where one
// of two values is null, the other one counts; retract nil cannot retract, and
// negate, unless nil, is what retracting from nothing gives.
func computing(name string, add, retract binary, negate func(types.Value) (types.Value, error), ignoreRetract bool) Function {
	agg := func(a, b types.Value) (types.Value, error) {
		switch {
		case a.Null:
			return b, nil
		case b.Null:
			return a, nil
		}
		return add(a, b)
	}
	f := folding{name: name, add: agg, late: func(acc, in types.Value) (types.Value, error) { return agg(in, acc) }}
	if retract != nil {
		f.retract = func(acc, in types.Value) (types.Value, error) {
			switch {
			case in.Null:
				return acc, nil
			case acc.Null && negate != nil:
				return negate(in)
			case acc.Null:
				return acc, nil
			}
			return retract(acc, in)
		}
	}
	return f.function(ignoreRetract)
}

// folding is what one version does to the value of those before it, either of which
// may be null.
type folding struct {
	name    string
	add     binary
	late    binary // for a version that is older
	retract binary // nil cannot
}

func (f folding) function(ignoreRetract bool) Function {
	return Function{fold: func(steps []Step, value func(int) (types.Value, error)) (types.Value, error) {
		acc := types.NullValue
		for _, s := range steps {
			v, err := value(s.Version)
			if err != nil {
				return acc, err
			}
			switch s.Op {
			case Set:
				acc = v
			case Add:
				acc, err = f.add(acc, v)
			case AddLate:
				acc, err = f.late(acc, v)
			case Retract, RetractLate:
				switch {
				case ignoreRetract:
				case f.retract == nil:
					return acc, errRetract(f.name)
				default:
					acc, err = f.retract(acc, v)
				}
			}
			if err != nil {
				return acc, fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return acc, nil
	}}
}

// arithmetic is the sum or the product of numbers (reference: FieldSumAgg,
// FieldProductAgg). Integers that overflow are an error rather than wrong.
func arithmetic(name string, t types.Type, ignoreRetract bool) (Function, error) {
	n := number{t}
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Float, types.Double, types.Decimal:
	default:
		return Function{}, fmt.Errorf("the aggregate function %s needs a numeric column, not %s", name, t)
	}
	// Where results are rounded, the order counts.
	exact := anyParts
	if n.floating() || name == "product" && t.Kind == types.Decimal {
		exact = noParts
	}
	if name == "product" {
		return computing(name, n.multiply, n.divide, nil, ignoreRetract).inParts(exact, ignoreRetract), nil
	}
	return computing(name, n.add, n.subtract, n.negate, ignoreRetract).inParts(exact, true), nil
}

// number computes with values of a numeric type.
type number struct{ t types.Type }

func (n number) add(a, b types.Value) (types.Value, error) {
	if n.floating() {
		return n.round(a.Float + b.Float), nil
	}
	return n.linear(new(big.Int).Add(n.big(a), n.big(b)))
}

func (n number) subtract(a, b types.Value) (types.Value, error) {
	if n.floating() {
		return n.round(a.Float - b.Float), nil
	}
	return n.linear(new(big.Int).Sub(n.big(a), n.big(b)))
}

func (n number) negate(v types.Value) (types.Value, error) {
	if n.floating() {
		return n.round(-v.Float), nil
	}
	return n.linear(new(big.Int).Neg(n.big(v)))
}

func (n number) multiply(a, b types.Value) (types.Value, error) {
	switch {
	case n.floating():
		return n.round(a.Float * b.Float), nil
	case n.t.Kind == types.Decimal:
		scaled := new(big.Rat).SetFrac(new(big.Int).Mul(a.Unscaled, b.Unscaled), pow10(n.t.Scale))
		return n.decimal(halfUp(scaled)), nil
	}
	return n.linear(new(big.Int).Mul(n.big(a), n.big(b)))
}

func (n number) divide(a, b types.Value) (types.Value, error) {
	if n.floating() {
		return n.round(a.Float / b.Float), nil
	}
	divisor := n.big(b)
	if divisor.Sign() == 0 {
		return types.Value{}, fmt.Errorf("a record is retracted whose value is zero")
	}
	if n.t.Kind != types.Decimal {
		return n.linear(new(big.Int).Quo(n.big(a), divisor))
	}
	ratio := new(big.Rat).SetFrac(new(big.Int).Mul(a.Unscaled, pow10(n.t.Scale)), divisor)
	if !terminates(ratio) {
		return types.Value{}, fmt.Errorf("%s divided by %s has no exact decimal result", types.Format(n.t, a), types.Format(n.t, b))
	}
	return n.decimal(halfUp(ratio)), nil
}

func (n number) floating() bool { return n.t.Kind == types.Float || n.t.Kind == types.Double }

func (n number) round(f float64) types.Value {
	if n.t.Kind == types.Float {
		f = float64(float32(f))
	}
	return types.Value{Float: f}
}

func (n number) big(v types.Value) *big.Int {
	if n.t.Kind == types.Decimal {
		return v.Unscaled
	}
	return big.NewInt(v.Int)
}

// linear is the result of adding. A decimal of up to 18 digits may get more
// digits than it was declared with, as long as it can be stored; one that 64 bits do
// not hold is null (reference: DecimalUtils.add).
func (n number) linear(result *big.Int) (types.Value, error) {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	switch n.t.Kind {
	case types.Decimal:
		if n.t.Precision > 18 {
			return n.decimal(result), nil
		}
		if n.t.Precision <= 9 {
			low, high = math.MinInt32, math.MaxInt32
		}
	case types.TinyInt:
		low, high = math.MinInt8, math.MaxInt8
	case types.SmallInt:
		low, high = math.MinInt16, math.MaxInt16
	case types.Int:
		low, high = math.MinInt32, math.MaxInt32
	default:
	}
	if !result.IsInt64() && n.t.Kind == types.Decimal && n.t.Precision > 9 {
		return types.NullValue, nil
	}
	if !result.IsInt64() || result.Int64() < low || result.Int64() > high {
		return types.Value{}, fmt.Errorf("the result %s does not fit the type %s", result, n.t)
	}
	if n.t.Kind == types.Decimal {
		return types.Value{Unscaled: result}, nil
	}
	return types.Value{Int: result.Int64()}, nil
}

// decimal is null when there are more digits than the type has.
func (n number) decimal(unscaled *big.Int) types.Value {
	if new(big.Int).Abs(unscaled).Cmp(pow10(n.t.Precision)) >= 0 {
		return types.NullValue
	}
	return types.Value{Unscaled: unscaled}
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// halfUp rounds to an integer, halves away from zero.
func halfUp(r *big.Rat) *big.Int {
	num, den := new(big.Int).Abs(r.Num()), r.Denom()
	num.Add(num.Lsh(num, 1), den)
	num.Quo(num, new(big.Int).Lsh(den, 1))
	if r.Sign() < 0 {
		num.Neg(num)
	}
	return num
}

// terminates reports whether a fraction has finitely many decimal digits.
func terminates(r *big.Rat) bool {
	den := new(big.Int).Set(r.Denom())
	for _, p := range []int64{2, 5} {
		prime, rest := big.NewInt(p), new(big.Int)
		for {
			q, m := new(big.Int).QuoRem(den, prime, rest)
			if m.Sign() != 0 {
				break
			}
			den = q
		}
	}
	return den.IsInt64() && den.Int64() == 1
}

// logical is bool_and or bool_or.
func logical(name string, t types.Type, ignoreRetract bool) (Function, error) {
	if t.Kind != types.Boolean {
		return Function{}, fmt.Errorf("the aggregate function %s needs a BOOLEAN column, not %s", name, t)
	}
	return computing(name, func(a, b types.Value) (types.Value, error) {
		if name == "bool_and" {
			return types.Bool(a.Int != 0 && b.Int != 0), nil
		}
		return types.Bool(a.Int != 0 || b.Int != 0), nil
	}, nil, nil, ignoreRetract).inParts(anyParts, true), nil
}

// listAgg joins strings (reference: FieldListaggAgg).
func listAgg(t types.Type, delimiter []byte, distinct, ignoreRetract bool) (Function, error) {
	if t.Kind != types.Varchar || t.Length != types.MaxLength {
		return Function{}, fmt.Errorf("the aggregate function listagg needs a STRING column, not %s", t)
	}
	return computing("listagg", func(a, b types.Value) (types.Value, error) {
		switch {
		case len(b.Bytes) == 0:
			return a, nil
		case len(a.Bytes) == 0:
			return b, nil
		case !distinct:
			return types.Value{Bytes: bytes.Join([][]byte{a.Bytes, b.Bytes}, delimiter)}, nil
		}
		seen := map[string]bool{}
		for _, token := range tokens(a.Bytes, delimiter) {
			seen[string(token)] = true
		}
		joined := bytes.Clone(a.Bytes)
		for _, token := range tokens(b.Bytes, delimiter) {
			if len(token) > 0 && !seen[string(token)] {
				seen[string(token)] = true
				joined = append(append(joined, delimiter...), token...)
			}
		}
		return types.Value{Bytes: joined}, nil
	}, nil, nil, ignoreRetract).inParts(newestParts, true), nil
}

// tokens splits at a delimiter, or, where there is none, at blanks.
func tokens(text, delimiter []byte) [][]byte {
	if len(delimiter) == 0 {
		delimiter = []byte(" ")
	}
	return bytes.Split(text, delimiter)
}
