package table

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tablectl/internal/types"
)

const (
	maxFilterLength = 1 << 20 // bytes of a filter's text
	maxFilterDepth  = 200     // nested parentheses and NOTs
)

// ParseWhere reads an SQL-like expression over the partition columns of a
// schema: comparisons, [NOT] IN, [NOT] BETWEEN, [NOT] LIKE, IS [NOT] NULL, AND,
// OR, NOT and parentheses. Identifiers are bare or in backticks, strings in
// single quotes (a doubled quote is a quote); for string columns a bare word is a string too.
// Every error wraps ErrInvalid and says where it found what.
func ParseWhere(s *Schema, text string) (Filter, error) {
	fail := func(err error) (Filter, error) {
		return Filter{}, fmt.Errorf("filter %q: %w: %w", abbreviate(text), err, ErrInvalid)
	}
	if len(text) > maxFilterLength {
		return fail(fmt.Errorf("longer than %d bytes", maxFilterLength))
	}
	tokens, err := tokenize(text)
	if err != nil {
		return fail(err)
	}
	p := whereParser{filterBuilder: filterBuilder{s}, tokens: tokens}
	pred, err := p.or(0)
	if err != nil {
		return fail(err)
	}
	if t := p.peek(); t.kind != tokenEnd {
		return fail(p.unexpected("AND, OR or the end"))
	}
	return Filter{terms: []predicate{pred}, text: []string{text}}, nil
}

// abbreviate keeps a message readable when it quotes s.
func abbreviate(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

type tokenKind int

const (
	tokenEnd    tokenKind = iota
	tokenWord             // a keyword, a bare identifier, a number or a bare string
	tokenQuoted           // an identifier in backticks
	tokenString           // 'a string'
	tokenSymbol           // an operator, a comma or a parenthesis
)

type token struct {
	kind tokenKind
	text string
	pos  int // in bytes, from 0
}

// keyword returns the word in upper case, or "" for anything but a bare word.
func (t token) keyword() string {
	if t.kind != tokenWord {
		return ""
	}
	return strings.ToUpper(t.text)
}

var keywords = []string{"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL"}

func tokenize(s string) ([]token, error) {
	var tokens []token
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case unicode.IsSpace(r):
			i += size
		case r == '\'' || r == '`':
			text, end, err := quoted(s, i)
			if err != nil {
				return nil, err
			}
			kind := tokenString
			if r == '`' {
				kind = tokenQuoted
			}
			tokens = append(tokens, token{kind, text, i})
			i = end
		case strings.ContainsRune("=<>!(),", r):
			n := 1
			if i+2 <= len(s) && slices.Contains([]string{"<=", ">=", "<>", "!="}, s[i:i+2]) {
				n = 2
			} else if r == '!' {
				return nil, fmt.Errorf("unexpected \"!\" at position %d", i+1)
			}
			tokens = append(tokens, token{tokenSymbol, s[i : i+n], i})
			i += n
		default:
			end := i
			for end < len(s) {
				r, size := utf8.DecodeRuneInString(s[end:])
				if r == '"' {
					return nil, fmt.Errorf("a double quote at position %d: strings are in single quotes, names in backticks", end+1)
				}
				if unicode.IsSpace(r) || strings.ContainsRune("=<>!(),'`", r) {
					break
				}
				end += size
			}
			tokens = append(tokens, token{tokenWord, s[i:end], i})
			i = end
		}
	}
	return append(tokens, token{tokenEnd, "the end", len(s)}), nil
}

// quoted reads from the quote at i to its partner; a doubled quote is a quote.
func quoted(s string, i int) (text string, end int, err error) {
	quote := s[i : i+1]
	var b strings.Builder
	for rest := i + 1; ; {
		n := strings.Index(s[rest:], quote)
		if n < 0 {
			return "", 0, fmt.Errorf("the %s at position %d is not closed", quote, i+1)
		}
		b.WriteString(s[rest : rest+n])
		rest += n + 1
		if !strings.HasPrefix(s[rest:], quote) {
			return b.String(), rest, nil
		}
		b.WriteString(quote)
		rest++
	}
}

type whereParser struct {
	filterBuilder
	tokens []token
	pos    int
}

func (p *whereParser) peek() token { return p.tokens[p.pos] }

func (p *whereParser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEnd {
		p.pos++
	}
	return t
}

func (p *whereParser) acceptWord(word string) bool {
	if p.peek().keyword() == word {
		p.pos++
		return true
	}
	return false
}

func (p *whereParser) acceptSymbol(symbol string) bool {
	if t := p.peek(); t.kind == tokenSymbol && t.text == symbol {
		p.pos++
		return true
	}
	return false
}

func (p *whereParser) unexpected(want string) error {
	t := p.peek()
	if t.kind == tokenEnd {
		return fmt.Errorf("expected %s at position %d, found the end", want, t.pos+1)
	}
	return fmt.Errorf("expected %s at position %d, found %q", want, t.pos+1, abbreviate(t.text))
}

func (p *whereParser) or(depth int) (predicate, error) {
	left, err := p.and(depth)
	if err != nil {
		return nil, err
	}
	all := orPredicate{left}
	for p.acceptWord("OR") {
		right, err := p.and(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, right)
	}
	if len(all) == 1 {
		return left, nil
	}
	return all, nil
}

func (p *whereParser) and(depth int) (predicate, error) {
	left, err := p.not(depth)
	if err != nil {
		return nil, err
	}
	all := andPredicate{left}
	for p.acceptWord("AND") {
		right, err := p.not(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, right)
	}
	if len(all) == 1 {
		return left, nil
	}
	return all, nil
}

func (p *whereParser) not(depth int) (predicate, error) {
	if depth > maxFilterDepth {
		return nil, fmt.Errorf("nests deeper than %d levels", maxFilterDepth)
	}
	if p.acceptWord("NOT") {
		inner, err := p.not(depth + 1)
		return notPredicate{inner}, err
	}
	if p.acceptSymbol("(") {
		inner, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if !p.acceptSymbol(")") {
			return nil, p.unexpected(")")
		}
		return inner, nil
	}
	return p.comparison()
}

var symbolOperators = map[string]operator{
	"=": opEqual, "!=": opNotEqual, "<>": opNotEqual, "<": opLess, "<=": opLessEqual, ">": opGreater, ">=": opGreaterEqual,
}

func (p *whereParser) comparison() (predicate, error) {
	name := p.peek()
	if name.kind != tokenQuoted && (name.kind != tokenWord || slices.Contains(keywords, name.keyword())) {
		return nil, p.unexpected("a partition column")
	}
	p.next()
	if _, _, err := p.column(name.text); err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind == tokenSymbol {
		if op, ok := symbolOperators[t.text]; ok {
			p.next()
			return p.withLiterals(name.text, op, 1, "")
		}
	}
	if p.acceptWord("IS") {
		negated := p.acceptWord("NOT")
		if !p.acceptWord("NULL") {
			return nil, p.unexpected("NULL")
		}
		return p.negate(negated)(p.leaf(name.text, opIsNull, nil))
	}
	negated := p.acceptWord("NOT")
	switch {
	case p.acceptWord("IN"):
		return p.negate(negated)(p.in(name.text))
	case p.acceptWord("BETWEEN"):
		return p.negate(negated)(p.withLiterals(name.text, opBetween, 2, "AND"))
	case p.acceptWord("LIKE"):
		return p.negate(negated)(p.withLiterals(name.text, opLike, 1, ""))
	}
	return nil, p.unexpected("a comparison")
}

func (p *whereParser) negate(negated bool) func(predicate, error) (predicate, error) {
	return func(pred predicate, err error) (predicate, error) {
		if err == nil && negated {
			pred = notPredicate{pred}
		}
		return pred, err
	}
}

func (p *whereParser) withLiterals(column string, op operator, n int, separator string) (predicate, error) {
	var literals []string
	for i := range n {
		if i > 0 && !p.acceptWord(separator) {
			return nil, p.unexpected(separator)
		}
		lit, err := p.literal(column)
		if err != nil {
			return nil, err
		}
		literals = append(literals, lit)
	}
	return p.leaf(column, op, literals)
}

func (p *whereParser) in(column string) (predicate, error) {
	if !p.acceptSymbol("(") {
		return nil, p.unexpected("(")
	}
	var literals []string
	for {
		lit, err := p.literal(column)
		if err != nil {
			return nil, err
		}
		literals = append(literals, lit)
		if p.acceptSymbol(")") {
			return p.leaf(column, opIn, literals)
		}
		if !p.acceptSymbol(",") {
			return nil, p.unexpected("\",\" or \")\"")
		}
	}
}

// literal reads one literal. A bare word is a literal where the column is not a
// string, or where it cannot be mistaken for a keyword; DATE '…' and TIMESTAMP
// '…' may name their type.
func (p *whereParser) literal(column string) (string, error) {
	t := p.peek()
	_, field, err := p.column(column)
	if err != nil {
		return "", err
	}
	stringColumn := field.Type.Kind == types.Char || field.Type.Kind == types.Varchar
	switch {
	case t.kind == tokenString:
		if k := field.Type.Kind; k >= types.TinyInt && k <= types.Double || k == types.Boolean || k == types.Decimal {
			return "", fmt.Errorf("column %q is %s, but the literal at position %d is the string %q", column, field.Type, t.pos+1, abbreviate(t.text))
		}
		return p.next().text, nil
	case t.kind == tokenWord && (t.keyword() == "DATE" || t.keyword() == "TIMESTAMP" || t.keyword() == "TIME") && p.tokens[p.pos+1].kind == tokenString:
		p.next()
		if stringColumn {
			return "", fmt.Errorf("column %q is %s, but the literal at position %d is a %s", column, field.Type, t.pos+1, t.keyword())
		}
		return p.next().text, nil
	case t.keyword() == "NULL":
		return "", fmt.Errorf("nothing equals NULL (position %d); use IS NULL", t.pos+1)
	case t.kind == tokenWord && !slices.Contains(keywords, t.keyword()):
		return p.next().text, nil
	}
	return "", p.unexpected("a literal")
}
