// Package fileindex builds the indexes that a table declares for its data files
// (options file-index.*): bloom filters, bitmaps, bit-sliced indexes and range
// bitmaps, all in one container per file.
//
// The bytes follow the reference's FileIndexFormat and its writers. Readers select
// rows by these indexes, so an index that is wrong hides rows: what cannot be
// built exactly is refused, and an index is never copied from an input.
package fileindex

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf16"

	"tablectl/internal/datafile"
	"tablectl/internal/types"
)

// ErrUnsupported is wrapped when a table declares an index that cannot be built.
var ErrUnsupported = errors.New("file index not supported")

// Config is what a table declares. The zero Config declares nothing.
type Config struct {
	declared []declaration
	fields   []types.Field
}

// declaration is one index on one column.
type declaration struct {
	kind    string
	column  int // index of the column
	options map[string]string
}

const (
	optionPrefix  = "file-index."
	columnsSuffix = ".columns"
)

// ParseConfig reads the declarations among a table's options. Mistakes that
// keep the reference from writing the table are errors here too; what the
// reference can do and this package cannot wraps ErrUnsupported.
func ParseConfig(options map[string]string, fields []types.Field) (Config, error) {
	c := Config{fields: fields}
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if !strings.HasPrefix(key, optionPrefix) || !strings.HasSuffix(key, columnsSuffix) {
			continue
		}
		kind := strings.TrimSuffix(strings.TrimPrefix(key, optionPrefix), columnsSuffix)
		names := strings.Split(options[key], ",")
		for len(names) > 1 && names[len(names)-1] == "" {
			names = names[:len(names)-1] // as Java splits
		}
		for _, name := range names {
			if err := c.declare(key, kind, strings.TrimSpace(name)); err != nil {
				return Config{}, err
			}
		}
	}
	for key, value := range options {
		parts := strings.Split(strings.TrimPrefix(key, optionPrefix), ".")
		if !strings.HasPrefix(key, optionPrefix) || strings.HasSuffix(key, columnsSuffix) || len(parts) != 3 {
			continue
		}
		i := slices.IndexFunc(c.declared, func(d declaration) bool { return d.kind == parts[0] && fields[d.column].Name == parts[1] })
		if i < 0 {
			return Config{}, fmt.Errorf("option %s: column %q has no index of type %q", key, parts[1], parts[0])
		}
		c.declared[i].options[parts[2]] = value
	}
	if err := c.check(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// maxFilters is how many bytes the bloom filters of one file may take together. Their
// size is in the options, and all of a file are in memory until it is complete.
const maxFilters = 256 << 20

// check makes a builder of every declaration.
func (c *Config) check() error {
	var filters int64
	for _, d := range c.declared {
		b, err := d.builder(c.fields)
		if f, ok := b.(*bloomFilter); ok && err == nil {
			if filters += f.size; filters > maxFilters {
				err = fmt.Errorf("with this one, bloom filters take more than %d MiB for each data file; items or fpp are out of proportion", maxFilters>>20)
			}
		}
		if err != nil {
			return fmt.Errorf("option %s%s%s, column %q: %w", optionPrefix, d.kind, columnsSuffix, c.fields[d.column].Name, err)
		}
	}
	return nil
}

func (c *Config) declare(key, kind, name string) error {
	if name == "" {
		return fmt.Errorf("option %s names an empty column", key)
	}
	if strings.Contains(name, "[") && strings.HasSuffix(name, "]") {
		return fmt.Errorf("option %s: index on the map entry %s: %w", key, name, ErrUnsupported)
	}
	column := slices.IndexFunc(c.fields, func(f types.Field) bool { return f.Name == name })
	if column < 0 {
		return fmt.Errorf("option %s: unknown column %q", key, name)
	}
	for _, d := range c.declared {
		if d.kind == kind && d.column == column {
			return nil
		}
	}
	c.declared = append(c.declared, declaration{kind: kind, column: column, options: map[string]string{}})
	return nil
}

// builder is an index under construction.
type builder interface {
	add(v types.Value) error
	// payload returns the bytes of the index; the builder is done then.
	payload() ([]byte, error)
}

func (d declaration) builder(fields []types.Field) (builder, error) {
	t := fields[d.column].Type
	switch d.kind {
	case "bloom-filter":
		return newBloomFilter(t, d.options)
	case "bitmap":
		return newBitmap(t, d.options)
	case "bsi":
		return newBitSliced(t)
	case "range-bitmap":
		return newRangeBitmap(t, d.options)
	}
	return nil, fmt.Errorf("type %q: %w", d.kind, ErrUnsupported)
}

// columnIndex is the builder of one declaration.
type columnIndex struct {
	declaration
	builder
}

func (c *columnIndex) Column() int { return c.column }

func (c *columnIndex) Add(v types.Value) error { return c.add(v) }

// NewBuilders returns a builder for every declared index of a new file.
func (c Config) NewBuilders() []datafile.IndexBuilder {
	builders := make([]datafile.IndexBuilder, 0, len(c.declared))
	for _, d := range c.declared {
		b, err := d.builder(c.fields)
		if err != nil {
			panic("fileindex: declaration was checked: " + err.Error())
		}
		builders = append(builders, &columnIndex{d, b})
	}
	return builders
}

const (
	containerMagic   = 1493475289347502
	containerVersion = 1
)

// Serialize writes the container with the indexes of one file, which NewBuilders
// has made.
func (c Config) Serialize(builders []datafile.IndexBuilder) ([]byte, error) {
	var header, body bytes.Buffer
	byColumn := map[int][]*columnIndex{}
	var columns []int
	length := 24 // magic, version, header length, number of columns, redundant length
	for _, b := range builders {
		ix := b.(*columnIndex)
		if byColumn[ix.column] == nil {
			columns = append(columns, ix.column)
			length += 2 + len(modifiedUTF8(c.fields[ix.column].Name)) + 4
		}
		byColumn[ix.column] = append(byColumn[ix.column], ix)
		length += 2 + len(ix.kind) + 8
	}
	slices.Sort(columns)
	put := func(v any) { _ = binary.Write(&header, binary.BigEndian, v) } // a Buffer does not fail
	put(int64(containerMagic))
	put(int32(containerVersion))
	put(int32(length))
	put(int32(len(columns)))
	for _, column := range columns {
		name := modifiedUTF8(c.fields[column].Name)
		if len(name) > math.MaxUint16 {
			return nil, fmt.Errorf("column name of %d bytes", len(name))
		}
		put(uint16(len(name)))
		header.Write(name)
		put(int32(len(byColumn[column])))
		for _, ix := range byColumn[column] {
			data, err := ix.payload()
			if err != nil {
				return nil, fmt.Errorf("%s index of column %q: %w", ix.kind, c.fields[column].Name, err)
			}
			if int64(length)+int64(body.Len())+int64(len(data)) > math.MaxInt32 {
				return nil, errors.New("indexes of more than 2 GiB")
			}
			put(uint16(len(ix.kind)))
			header.WriteString(ix.kind)
			put(int32(length + body.Len()))
			put(int32(len(data)))
			body.Write(data)
		}
	}
	put(int32(0))
	return append(header.Bytes(), body.Bytes()...), nil
}

// modifiedUTF8 is Java's DataOutput.writeUTF encoding: by UTF-16 units, NUL in two bytes.
func modifiedUTF8(s string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		switch {
		case u >= 1 && u <= 0x7f:
			out = append(out, byte(u))
		case u <= 0x7ff:
			out = append(out, 0xc0|byte(u>>6), 0x80|byte(u&0x3f))
		default:
			out = append(out, 0xe0|byte(u>>12), 0x80|byte(u>>6&0x3f), 0x80|byte(u&0x3f))
		}
	}
	return out
}
