package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// Limits on footers. The Parquet library makes room for what a footer claims before
// it looks whether that is there, and memory that runs out cannot be recovered from,
// so every footer is walked before the library sees it.
const (
	maxFooter         = 64 << 20      // bytes; a wide file of the reference has some megabytes
	maxSchemaElements = 1 << 20       // columns and groups
	maxSchemaDepth    = 210           // types nest at most 64 deep, with at most three groups each
	maxSchemaPaths    = 64 << 20      // bytes of the dotted names of all columns
	maxFooterStructs  = 1 << 21       // each takes up to some hundred bytes when it is decoded
	maxFooterNesting  = 32            // of structs and lists, the schema aside, which is a flat list
	maxCreator        = 4 << 10       // bytes of the writer's name, which the library matches with a regular expression
	maxFileRows       = math.MaxInt32 // a column of nulls takes no bytes, so only the footer tells how many rows there are
	maxOffsetIndex    = 64 << 20      // bytes of a row group, which are read at once
)

const (
	footerTail   = 8        // the footer's length and the magic
	firstRead    = 64 << 10 // bytes from the end of the file, in which most footers are
	parquetMagic = "PAR1"
)

// readFooter reads and checks the footer of a file.
func readFooter(in io.ReaderAt, size int64) (*metadata.FileMetaData, error) {
	data, err := footerBytes(in, size)
	if err != nil {
		return nil, err
	}
	if err := checkFooter(data); err != nil {
		return nil, err
	}
	md, err := metadata.NewFileMetaData(data, nil)
	if err != nil {
		return nil, err
	}
	if md.IsSetEncryptionAlgorithm() {
		return nil, fmt.Errorf("encryption: %w", ErrUnsupported)
	}
	md.SetSourceFileSize(size)
	return md, nil
}

func footerBytes(in io.ReaderAt, size int64) ([]byte, error) {
	if size < int64(len(parquetMagic))+footerTail {
		return nil, fmt.Errorf("%d bytes are too few for a Parquet file; it is empty or cut off", size)
	}
	end := make([]byte, min(size, firstRead))
	if n, err := in.ReadAt(end, size-int64(len(end))); n < len(end) {
		return nil, err
	}
	tail := end[len(end)-footerTail:]
	switch magic := tail[4:]; {
	case string(magic) == "PARE":
		return nil, fmt.Errorf("encryption: %w", ErrUnsupported)
	case string(magic) != parquetMagic:
		return nil, fmt.Errorf("the file ends with %q, not with %q; it is cut off, or no Parquet file", magic, parquetMagic)
	}
	length := int64(binary.LittleEndian.Uint32(tail))
	switch {
	case length > size-footerTail-int64(len(parquetMagic)):
		return nil, fmt.Errorf("claims %d bytes, but the file has %d", length, size)
	case length > maxFooter:
		return nil, fmt.Errorf("has %d bytes, at most %d are supported", length, maxFooter)
	case length <= int64(len(end)-footerTail):
		return end[len(end)-footerTail-int(length) : len(end)-footerTail], nil
	}
	data := make([]byte, length)
	if n, err := in.ReadAt(data, size-footerTail-length); n < len(data) {
		return nil, err
	}
	return data, nil
}

// The wire types of Thrift's compact protocol.
const (
	wireTrue = 1 + iota
	wireFalse
	wireByte
	wireI16
	wireI32
	wireI64
	wireDouble
	wireBinary
	wireList
	wireSet
	wireMap
	wireStruct
	wireUUID
)

// structShape says what the library expects in the fields of a struct: it reads the
// elements of a list as what they should be, whatever the list says, so a list
// of something else would be read otherwise than it is walked. Fields that are not
// here are scalar, structs without lists, or skipped as what they say they are.
type structShape []fieldShape // by field id

func (s structShape) at(id int16) fieldShape {
	if id < 0 || int(id) >= len(s) {
		return fieldShape{}
	}
	return s[id]
}

type fieldShape struct {
	elements byte        // the wire type of a list's elements; 0: not a list
	of       structShape // of the struct, or of the list's structs
}

// footerShape is FileMetaData (reference: parquet.thrift).
var footerShape = func() structShape {
	structs := func(of structShape) fieldShape { return fieldShape{wireStruct, of} }
	scalars := func(wire byte) fieldShape { return fieldShape{elements: wire} }
	chunk := structShape{
		2: scalars(wireI32), 3: scalars(wireBinary), 8: structs(nil), 13: structs(nil),
		16: {of: structShape{2: scalars(wireI64), 3: scalars(wireI64)}}, 17: {of: structShape{2: scalars(wireI32)}},
	}
	column := structShape{3: {of: chunk}, 8: {of: structShape{2: {of: structShape{1: scalars(wireBinary)}}}}}
	return structShape{2: structs(nil), 4: structs(structShape{1: structs(column), 4: structs(nil)}), 5: structs(nil), 7: structs(nil)}
}()

const (
	fileSchema      = 2
	fileCreatedBy   = 6
	elementName     = 4
	elementChildren = 5
)

var errFooter = errors.New("damaged")

// checkFooter walks a footer and refuses one whose counts are not borne out by its bytes.
func checkFooter(data []byte) error {
	w := &footerWalker{data: data}
	return w.fields(footerShape, 0, func(id int16, wire byte) (bool, error) {
		switch {
		case id == fileSchema && wire == wireList:
			return true, w.schema()
		case id == fileCreatedBy && wire == wireBinary:
			name, err := w.binary()
			if err == nil && len(name) > maxCreator {
				err = fmt.Errorf("the name of the writer has %d bytes, at most %d are supported", len(name), maxCreator)
			}
			return true, err
		}
		return false, nil
	})
}

// footerWalker is a place in a footer.
type footerWalker struct {
	data    []byte
	at      int
	structs int
}

func (w *footerWalker) left() int { return len(w.data) - w.at }

func (w *footerWalker) byte() (byte, error) {
	if w.at == len(w.data) {
		return 0, fmt.Errorf("%w: it ends too early", errFooter)
	}
	b := w.data[w.at]
	w.at++
	return b, nil
}

func (w *footerWalker) varint() (uint64, error) {
	var v uint64
	for shift := uint(0); shift < 70; shift += 7 {
		b, err := w.byte()
		if err != nil {
			return 0, err
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%w: a number of more than 10 bytes", errFooter)
}

func (w *footerWalker) int32() (int32, error) {
	v, err := w.varint()
	n := uint32(v)
	return int32(n>>1) ^ -int32(n&1), err
}

// count reads how many of something follow that each take at least one byte.
func (w *footerWalker) count(of string) (int, error) {
	v, err := w.varint()
	if err != nil {
		return 0, err
	}
	n := int64(int32(v)) // as the library cuts it
	if n < 0 || n > int64(w.left()) {
		return 0, fmt.Errorf("%w: it claims %d %s where %d bytes are left", errFooter, n, of, w.left())
	}
	return int(n), nil
}

func (w *footerWalker) skip(n int) error {
	if n > w.left() {
		return fmt.Errorf("%w: it ends too early", errFooter)
	}
	w.at += n
	return nil
}

func (w *footerWalker) binary() ([]byte, error) {
	n, err := w.count("bytes of a text")
	if err != nil {
		return nil, err
	}
	w.at += n
	return w.data[w.at-n : w.at], nil
}

// list reads the head of a list.
func (w *footerWalker) list() (elements byte, n int, err error) {
	b, err := w.byte()
	if err != nil {
		return 0, 0, err
	}
	if n = int(b >> 4); n == 15 {
		n, err = w.count("elements of a list")
	} else if n > w.left() {
		err = fmt.Errorf("%w: it claims %d elements of a list where %d bytes are left", errFooter, n, w.left())
	}
	if elements = b & 15; elements == wireFalse {
		elements = wireTrue
	}
	return elements, n, err
}

// fields walks a struct. The special function, which may be nil, tells whether it
// has taken a field.
func (w *footerWalker) fields(s structShape, depth int, special func(id int16, wire byte) (bool, error)) error {
	if w.structs++; w.structs > maxFooterStructs {
		return fmt.Errorf("has more than %d parts, which is not supported", maxFooterStructs)
	}
	id := int16(0)
	for {
		b, err := w.byte()
		if err != nil {
			return err
		}
		wire := b & 15
		if wire == 0 {
			return nil
		}
		if delta := b >> 4; delta != 0 {
			id += int16(delta)
		} else {
			long, err := w.int32()
			if err != nil {
				return err
			}
			id = int16(long)
		}
		if special != nil {
			taken, err := special(id, wire)
			if err != nil {
				return err
			}
			if taken {
				continue
			}
		}
		if wire != wireTrue && wire != wireFalse { // the value of a truth is in its type
			if err := w.value(wire, s.at(id), depth+1); err != nil {
				return err
			}
		}
	}
}

// value walks a value. One in a list that is a truth takes a byte.
func (w *footerWalker) value(wire byte, f fieldShape, depth int) error {
	if depth > maxFooterNesting {
		return fmt.Errorf("%w: it nests more than %d deep", errFooter, maxFooterNesting)
	}
	var err error
	switch wire {
	case wireTrue, wireFalse, wireByte:
		err = w.skip(1)
	case wireI16, wireI32, wireI64:
		_, err = w.varint()
	case wireDouble:
		err = w.skip(8)
	case wireUUID:
		err = w.skip(16)
	case wireBinary:
		_, err = w.binary()
	case wireStruct:
		err = w.fields(f.of, depth, nil)
	case wireList, wireSet:
		err = w.elements(wire, f, depth)
	case wireMap:
		err = w.entries(depth)
	default:
		err = fmt.Errorf("%w: no type has the number %d", errFooter, wire)
	}
	return err
}

func (w *footerWalker) elements(wire byte, f fieldShape, depth int) error {
	elements, n, err := w.list()
	if err != nil {
		return err
	}
	if wire == wireList && f.elements != 0 && elements != f.elements {
		return fmt.Errorf("%w: a list has elements of the type %d where %d is expected", errFooter, elements, f.elements)
	}
	for range n {
		if err := w.value(elements, fieldShape{of: f.of}, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *footerWalker) entries(depth int) error {
	n, err := w.count("entries of a map")
	if err != nil || n == 0 {
		return err
	}
	kinds, err := w.byte()
	if err != nil {
		return err
	}
	for range n {
		if err := w.value(kinds>>4, fieldShape{}, depth+1); err != nil {
			return err
		}
		if err := w.value(kinds&15, fieldShape{}, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// schema walks the list of schema elements, in which every group is followed by its
// children.
func (w *footerWalker) schema() error {
	kind, n, err := w.list()
	if err != nil {
		return err
	}
	if kind != wireStruct {
		return fmt.Errorf("%w: the schema has elements of the type %d", errFooter, kind)
	}
	if n > maxSchemaElements {
		return fmt.Errorf("its schema has %d elements, at most %d are supported", n, maxSchemaElements)
	}
	var open []openGroup // from the root to where we are
	paths := 0
	for i := range n {
		if i > 0 && len(open) == 0 {
			return fmt.Errorf("%w: its schema has %d elements, but the root only covers %d", errFooter, n, i)
		}
		name, children, err := w.schemaElement()
		if err != nil {
			return fmt.Errorf("schema element %d: %w", i, err)
		}
		if children < 0 || int(children) > n-1-i {
			return fmt.Errorf("%w: schema element %d, %.40q, claims %d children where %d elements follow", errFooter, i, name, children, n-1-i)
		}
		if len(open) > 0 {
			open[len(open)-1].left--
		}
		path := len(name) + 1
		if len(open) > 0 {
			path += open[len(open)-1].path
		}
		if children > 0 {
			open = append(open, openGroup{left: int(children), path: path})
		} else if paths += path; paths > maxSchemaPaths {
			return fmt.Errorf("the names of its columns have more than %d bytes, which is not supported", maxSchemaPaths)
		}
		if len(open) > maxSchemaDepth {
			return fmt.Errorf("its schema nests more than %d deep, which is not supported", maxSchemaDepth)
		}
		for len(open) > 0 && open[len(open)-1].left == 0 {
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%w: its schema has %d elements, which are not all that its groups claim", errFooter, n)
	}
	return nil
}

// openGroup is a group of the schema of which not all children were seen.
type openGroup struct {
	left int // children to come
	path int // bytes of its dotted name
}

func (w *footerWalker) schemaElement() (name []byte, children int32, err error) {
	err = w.fields(nil, 0, func(id int16, wire byte) (bool, error) {
		var err error
		switch {
		case id == elementName && wire == wireBinary:
			name, err = w.binary()
		case id == elementChildren && wire == wireI32:
			children, err = w.int32()
		default:
			return false, nil
		}
		return true, err
	})
	return name, children, err
}
