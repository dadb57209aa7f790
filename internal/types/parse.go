package types

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxDepth bounds how deep a type may nest: schema files are untrusted, and no
// table needs more.
const maxDepth = 64

// ParseJSON reads a type as schema files hold it: a string for atomic types, an
// object for ARRAY, MAP, MULTISET, VECTOR and ROW (the reference's
// DataTypeJsonParser). The error says what was found.
func ParseJSON(data []byte) (Type, error) { return parseJSON(data, 0) }

func parseJSON(data []byte, depth int) (Type, error) {
	if depth > maxDepth {
		return Type{}, fmt.Errorf("type nests deeper than %d levels", maxDepth)
	}
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '"' {
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return Type{}, fmt.Errorf("parse type %s: %w", data, err)
		}
		return Parse(s)
	}
	var node struct {
		Type    *string         `json:"type"`
		Element json.RawMessage `json:"element"`
		Key     json.RawMessage `json:"key"`
		Value   json.RawMessage `json:"value"`
		Length  *int            `json:"length"`
		Fields  *[]fieldJSON    `json:"fields"`
	}
	if err := json.Unmarshal(data, &node); err != nil {
		return Type{}, fmt.Errorf("parse type %.80s: %w", data, err)
	}
	if node.Type == nil {
		return Type{}, fmt.Errorf("type %.80s has no member \"type\"", data)
	}
	name, notNull := cutNullability(strings.ToUpper(strings.TrimSpace(*node.Type)))
	t := Type{NotNull: notNull}
	child := func(member string, raw json.RawMessage) (*Type, error) {
		if len(raw) == 0 {
			return nil, fmt.Errorf("%s type has no member %q", name, member)
		}
		c, err := parseJSON(raw, depth+1)
		if err != nil {
			return nil, err
		}
		return &c, nil
	}
	var err error
	switch name {
	case "ARRAY", "MULTISET", "VECTOR":
		t.Kind = map[string]Kind{"ARRAY": Array, "MULTISET": Multiset, "VECTOR": Vector}[name]
		t.Element, err = child("element", node.Element)
		if name == "VECTOR" && err == nil {
			if node.Length == nil || *node.Length < 1 || *node.Length > MaxLength {
				return Type{}, errors.New("VECTOR type has no member \"length\" of 1 or more")
			}
			t.Length = *node.Length
		}
	case "MAP":
		t.Kind = Map
		if t.Key, err = child("key", node.Key); err == nil {
			t.Element, err = child("value", node.Value)
		}
	case "ROW":
		t.Kind = Row
		if node.Fields == nil {
			return Type{}, errors.New("ROW type has no member \"fields\"")
		}
		t.Fields, err = fieldsFromJSON(*node.Fields, depth+1)
	default:
		return Type{}, fmt.Errorf("unknown type %.100q", *node.Type)
	}
	return t, err
}

// fieldJSON is a field as schema files hold it.
type fieldJSON struct {
	ID          *int            `json:"id"`
	Name        *string         `json:"name"`
	Type        json.RawMessage `json:"type"`
	Description *string         `json:"description"`
	Default     *string         `json:"defaultValue"`
}

// ParseFields reads the "fields" member of a schema file or of a ROW type.
func ParseFields(data []byte) ([]Field, error) {
	var raw []fieldJSON
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("parse fields: %w", err)
	}
	return fieldsFromJSON(raw, 0)
}

func fieldsFromJSON(raw []fieldJSON, depth int) ([]Field, error) {
	fields := make([]Field, len(raw))
	for i, r := range raw {
		if r.ID == nil || r.Name == nil || len(r.Type) == 0 {
			return nil, fmt.Errorf("field %d lacks one of \"id\", \"name\", \"type\"", i)
		}
		if *r.ID < 0 || *r.ID > math.MaxInt32 {
			return nil, fmt.Errorf("field %q has the id %d, which is out of range", *r.Name, *r.ID)
		}
		t, err := parseJSON(r.Type, depth)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", *r.Name, err)
		}
		fields[i] = Field{ID: *r.ID, Name: *r.Name, Type: t, Description: r.Description, Default: r.Default}
	}
	return fields, nil
}

// Parse reads an atomic type such as "DECIMAL(10, 2) NOT NULL" or
// "TIMESTAMP(3) WITH LOCAL TIME ZONE", and the suffix forms "INT ARRAY" and
// "INT MULTISET". Case does not matter.
func Parse(s string) (Type, error) {
	p := typeParser{tokens: tokenizeType(s), text: s}
	t, err := p.atomic()
	if err != nil {
		return Type{}, err
	}
	for p.peek() == "ARRAY" || p.peek() == "MULTISET" {
		elem := t
		t = Type{Kind: Array, Element: &elem}
		if p.next() == "MULTISET" {
			t.Kind = Multiset
		}
		p.nullability(&t)
		if p.pos > maxDepth {
			return Type{}, fmt.Errorf("type nests deeper than %d levels", maxDepth)
		}
	}
	if rest := p.peek(); rest != "" {
		return Type{}, fmt.Errorf("type %.100q: unexpected %q", s, rest)
	}
	return t, nil
}

func cutNullability(s string) (string, bool) {
	if t, ok := strings.CutSuffix(s, " NOT NULL"); ok {
		return strings.TrimSpace(t), true
	}
	t, _ := strings.CutSuffix(s, " NULL")
	return strings.TrimSpace(t), false
}

type typeParser struct {
	tokens []string
	pos    int
	text   string
}

func tokenizeType(s string) []string {
	s = strings.NewReplacer("(", " ( ", ")", " ) ", ",", " , ").Replace(strings.ToUpper(s))
	return strings.Fields(s)
}

func (p *typeParser) peek() string {
	if p.pos < len(p.tokens) {
		return p.tokens[p.pos]
	}
	return ""
}

func (p *typeParser) next() string {
	t := p.peek()
	p.pos++
	return t
}

// accept consumes the words if they come next, all of them or none.
func (p *typeParser) accept(words ...string) bool {
	if p.pos+len(words) > len(p.tokens) {
		return false
	}
	for i, w := range words {
		if p.tokens[p.pos+i] != w {
			return false
		}
	}
	p.pos += len(words)
	return true
}

func (p *typeParser) nullability(t *Type) {
	if p.accept("NOT", "NULL") {
		t.NotNull = true
		return
	}
	p.accept("NULL")
}

// numbers reads an optional "(a)" or "(a, b)" into the given places.
func (p *typeParser) numbers(places ...*int) error {
	if !p.accept("(") {
		return nil
	}
	for i, place := range places {
		if i > 0 && !p.accept(",") {
			break
		}
		n, err := strconv.Atoi(p.next())
		if err != nil || n < 0 || n > MaxLength {
			return fmt.Errorf("type %.100q: bad number in parentheses", p.text)
		}
		*place = n
	}
	if !p.accept(")") {
		return fmt.Errorf("type %.100q: expected )", p.text)
	}
	return nil
}

var plainKinds = map[string]Kind{
	"BOOLEAN": Boolean, "TINYINT": TinyInt, "SMALLINT": SmallInt, "INT": Int, "INTEGER": Int,
	"BIGINT": BigInt, "FLOAT": Float, "DATE": Date, "VARIANT": Variant, "BLOB": Blob,
	"GEOMETRY": Geometry, "GEOGRAPHY": Geography,
}

func (p *typeParser) atomic() (Type, error) {
	word := p.next()
	var t Type
	var err error
	switch word {
	case "CHAR", "BINARY":
		t = Type{Kind: Char, Length: 1}
		if word == "BINARY" {
			t.Kind = Binary
		}
		err = p.numbers(&t.Length)
	case "VARCHAR", "VARBINARY":
		t = Type{Kind: Varchar, Length: 1}
		if word == "VARBINARY" {
			t.Kind = Varbinary
		}
		err = p.numbers(&t.Length)
	case "STRING":
		t = Type{Kind: Varchar, Length: MaxLength}
	case "BYTES":
		t = Type{Kind: Varbinary, Length: MaxLength}
	case "DECIMAL", "NUMERIC", "DEC":
		t = Type{Kind: Decimal, Precision: 10}
		err = p.numbers(&t.Precision, &t.Scale)
	case "DOUBLE":
		p.accept("PRECISION")
		t = Type{Kind: Double}
	case "TIME":
		t = Type{Kind: Time}
		err = p.numbers(&t.Precision)
		p.accept("WITHOUT", "TIME", "ZONE")
	case "TIMESTAMP", "TIMESTAMP_LTZ":
		t = Type{Kind: Timestamp, Precision: 6}
		if word == "TIMESTAMP_LTZ" {
			t.Kind = TimestampLTZ
		}
		err = p.numbers(&t.Precision)
		if p.accept("WITH", "LOCAL", "TIME", "ZONE") {
			t.Kind = TimestampLTZ
		}
		p.accept("WITHOUT", "TIME", "ZONE")
	default:
		kind, ok := plainKinds[word]
		if !ok {
			return Type{}, fmt.Errorf("unknown type %.100q", p.text)
		}
		t = Type{Kind: kind}
		if kind == Geometry || kind == Geography {
			p.pos = len(p.tokens) // their parameters do not matter: such columns are refused
		}
	}
	if err != nil {
		return Type{}, err
	}
	p.nullability(&t)
	return t, t.checkRange(p.text)
}

func (t Type) checkRange(text string) error {
	switch t.Kind {
	case Char, Varchar, Binary, Varbinary:
		if t.Length < 1 {
			return fmt.Errorf("type %.100q: length must be at least 1", text)
		}
	case Decimal:
		if t.Precision < 1 || t.Precision > 38 || t.Scale > t.Precision {
			return fmt.Errorf("type %.100q: precision must be 1 to 38 and scale at most the precision", text)
		}
	case Time, Timestamp, TimestampLTZ:
		if t.Precision > 9 {
			return fmt.Errorf("type %.100q: precision must be 0 to 9", text)
		}
	}
	return nil
}
