package tabletest

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"

	"tablectl/internal/types"
)

// FileOptions are the ways in which the same rows can be written to a file. The
// zero value is a small zstd file with pages of the first version.
type FileOptions struct {
	Codec        string // zstd, snappy, gzip, lz4_raw, brotli or none; "" is zstd
	PageVersion  int    // 1 or 2; 0 is 1
	PageSize     int    // bytes of a page before encoding; 0 is 8 KB
	RowGroupRows int    // rows after which a row group ends; 0 is all
	Dictionary   bool   // for every column
	Delta        bool   // the delta encodings where there is one, else plain, and no dictionary
}

var codecs = map[string]compress.Codec{
	"": &parquet.Zstd, "zstd": &parquet.Zstd, "snappy": &parquet.Snappy, "gzip": &parquet.Gzip, "lz4_raw": &parquet.Lz4Raw,
	"brotli": &parquet.Brotli, "none": &parquet.Uncompressed,
}

// WriteFile makes a Parquet file of the rows, with the names, types and shapes
// that Paimon's own writer gives the columns, and field ids but for 0, which
// parquet-go leaves out.
func WriteFile(fields []types.Field, rows [][]any, o FileOptions) ([]byte, error) {
	w := fileShape{options: o}
	members := make([]parquet.Field, len(fields))
	for i, f := range fields {
		members[i] = named(f.Name, w.node(f.Type, f.ID))
	}
	schema := parquet.NewSchema("paimon_schema", group{members: members})
	if o.PageVersion == 0 {
		o.PageVersion = 1
	}
	if o.PageSize == 0 {
		o.PageSize = 8 << 10
	}
	codec, ok := codecs[o.Codec]
	if !ok {
		return nil, fmt.Errorf("no codec %q", o.Codec)
	}
	var out bytes.Buffer
	writer := parquet.NewGenericWriter[any](&out, schema, parquet.Compression(codec), parquet.DataPageVersion(o.PageVersion),
		parquet.PageBufferSize(o.PageSize))
	s := shredder{columns: len(schema.Columns())}
	for i, r := range rows {
		if o.RowGroupRows > 0 && i > 0 && i%o.RowGroupRows == 0 {
			if err := writer.Flush(); err != nil {
				return nil, err
			}
		}
		row, err := s.row(fields, r)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		if _, err := writer.WriteRows([]parquet.Row{row}); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// fileShape makes the nodes of a file's schema.
type fileShape struct{ options FileOptions }

func (w fileShape) node(t types.Type, id int) parquet.Node {
	n := w.content(t)
	if !t.NotNull {
		n = parquet.Optional(n)
	}
	if id > 0 {
		n = parquet.FieldID(n, id)
	}
	return n
}

func (w fileShape) content(t types.Type) parquet.Node {
	switch t.Kind {
	case types.Array:
		list := group{members: []parquet.Field{named("element", w.node(*t.Element, 0))}}
		return group{members: []parquet.Field{named("list", parquet.Repeated(list))}, kind: parquet.List(parquet.Leaf(parquet.Int32Type)).Type()}
	case types.Map, types.Multiset:
		key, value := MapTypes(t)
		key.NotNull = true
		entry := group{members: []parquet.Field{named("key", w.node(key, 0)), named("value", w.node(value, 0))}}
		return group{
			members: []parquet.Field{named("key_value", parquet.Repeated(entry))},
			kind:    parquet.Map(parquet.String(), parquet.Leaf(parquet.Int32Type)).Type(),
		}
	case types.Row:
		members := make([]parquet.Field, len(t.Fields))
		for i, f := range t.Fields {
			members[i] = named(f.Name, w.node(f.Type, f.ID))
		}
		return group{members: members}
	case types.Variant:
		part := w.encoded(parquet.Leaf(parquet.ByteArrayType))
		return group{members: []parquet.Field{named("value", part), named("metadata", part)}}
	}
	return w.encoded(scalarType(t))
}

func (w fileShape) encoded(n parquet.Node) parquet.Node {
	kind := n.Type().Kind()
	switch {
	case w.options.Dictionary && kind != parquet.Boolean:
		return parquet.Encoded(n, &parquet.RLEDictionary)
	case w.options.Delta && (kind == parquet.Int32 || kind == parquet.Int64):
		return parquet.Encoded(n, &parquet.DeltaBinaryPacked)
	case w.options.Delta && kind == parquet.ByteArray:
		return parquet.Encoded(n, &parquet.DeltaByteArray)
	}
	return parquet.Encoded(n, &parquet.Plain)
}

// group is a group whose members keep their order: parquet-go's own sorts them by
// name.
type group struct {
	members []parquet.Field
	kind    parquet.Type // nil: without a logical type
}

func (g group) ID() int                     { return 0 }
func (g group) String() string              { return fmt.Sprintf("group of %d", len(g.members)) }
func (g group) Optional() bool              { return false }
func (g group) Repeated() bool              { return false }
func (g group) Required() bool              { return true }
func (g group) Leaf() bool                  { return false }
func (g group) Fields() []parquet.Field     { return g.members }
func (g group) Encoding() encoding.Encoding { return nil }
func (g group) Compression() compress.Codec { return nil }
func (g group) GoType() reflect.Type        { return reflect.TypeFor[struct{}]() }

func (g group) Type() parquet.Type {
	if g.kind == nil {
		return parquet.Group{}.Type()
	}
	return g.kind
}

// namedNode is a node with a name in its group.
type namedNode struct {
	parquet.Node
	name string
}

func named(name string, n parquet.Node) parquet.Field { return namedNode{n, name} }

func (n namedNode) Name() string                           { return n.name }
func (n namedNode) Value(base reflect.Value) reflect.Value { return base }

// shredder takes rows apart into the entries of leaves.
type shredder struct {
	columns int
	leaf    int // the next one
	out     [][]parquet.Value
}

func (s *shredder) row(fields []types.Field, cells []any) (parquet.Row, error) {
	s.out = make([][]parquet.Value, s.columns)
	s.leaf = 0
	for i, f := range fields {
		if err := s.cell(f.Type, cells[i], 0, 0, 0); err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
	}
	var row parquet.Row
	for _, entries := range s.out {
		row = append(row, entries...)
	}
	return row, nil
}

// cell adds one value. The entry repeats at level rep; def and depth are the
// definition and repetition levels around it. Afterwards s.leaf is behind the
// leaves of the value.
func (s *shredder) cell(t types.Type, cell any, rep, def, depth int) error {
	if cell == nil {
		if t.NotNull {
			return fmt.Errorf("null in a %s", t)
		}
		s.nulls(t, rep, def)
		return nil
	}
	if !t.NotNull {
		def++
	}
	switch c := cell.(type) {
	case List:
		return s.repeat(t, len(c), rep, def, depth, func(i, rep int) error {
			return s.cell(*t.Element, c[i], rep, def+1, depth+1)
		})
	case Map:
		key, value := MapTypes(t)
		key.NotNull = true
		return s.repeat(t, len(c), rep, def, depth, func(i, rep int) error {
			if err := s.cell(key, c[i].Key, rep, def+1, depth+1); err != nil {
				return err
			}
			return s.cell(value, c[i].Value, rep, def+1, depth+1)
		})
	case Struct:
		for i, f := range t.Fields {
			if err := s.cell(f.Type, c[i], rep, def, depth); err != nil {
				return err
			}
		}
		return nil
	case Variant:
		s.add(parquet.ByteArrayValue(c.Value), rep, def)
		s.add(parquet.ByteArrayValue(c.Metadata), rep, def)
		return nil
	case types.Value:
		s.add(encodeScalar(t, c), rep, def)
		return nil
	}
	return fmt.Errorf("a cell of type %s is a %T", t, cell)
}

// repeat adds n repetitions, or what stands for none.
func (s *shredder) repeat(t types.Type, n, rep, def, depth int, each func(i, rep int) error) error {
	if n == 0 {
		s.nulls(t, rep, def)
		return nil
	}
	first := s.leaf
	for i := range n {
		s.leaf = first
		if err := each(i, rep); err != nil {
			return err
		}
		rep = depth + 1
	}
	return nil
}

func (s *shredder) add(v parquet.Value, rep, def int) {
	s.out[s.leaf] = append(s.out[s.leaf], v.Level(rep, def, s.leaf))
	s.leaf++
}

func (s *shredder) nulls(t types.Type, rep, def int) {
	for range leaves(t) {
		s.add(parquet.NullValue(), rep, def)
	}
}

// leaves is how many primitive columns hold a value of the type.
func leaves(t types.Type) int {
	switch t.Kind {
	case types.Array:
		return leaves(*t.Element)
	case types.Map, types.Multiset:
		key, value := MapTypes(t)
		return leaves(key) + leaves(value)
	case types.Row:
		n := 0
		for _, f := range t.Fields {
			n += leaves(f.Type)
		}
		return n
	case types.Variant:
		return 2
	}
	return 1
}
