package fileindex

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"tablectl/internal/bytesize"
	"tablectl/internal/types"
)

// rows is the rows that have each distinct value, and those that are null.
type rows struct {
	typ   types.Type
	count uint32
	nulls *roaring.Bitmap
	byKey map[string]*keyRows
}

type keyRows struct {
	key   []byte
	value types.Value
	rows  *roaring.Bitmap
}

func newRows(t types.Type) rows {
	return rows{typ: t, nulls: roaring.New(), byKey: map[string]*keyRows{}}
}

func (r *rows) add(v types.Value) error {
	if r.count == math.MaxInt32 {
		return fmt.Errorf("more than %d rows", math.MaxInt32)
	}
	row := r.count
	r.count++
	if v.Null {
		r.nulls.Add(row)
		return nil
	}
	key, err := encodeKey(r.typ, v)
	if err != nil {
		return err
	}
	k, ok := r.byKey[string(key)]
	if !ok {
		v.Bytes = slices.Clone(v.Bytes)
		k = &keyRows{key: key, value: v, rows: roaring.New()}
		r.byKey[string(key)] = k
	}
	k.rows.Add(row)
	return nil
}

// sorted returns the distinct values in Paimon's order.
func (r *rows) sorted() []*keyRows {
	keys := make([]*keyRows, 0, len(r.byKey))
	for _, k := range r.byKey {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b *keyRows) int { return types.Compare(r.typ.Kind, a.value, b.value) })
	return keys
}

// serialize writes a bitmap in the portable roaring format, run-optimised.
func serialize(b *roaring.Bitmap) ([]byte, error) {
	b.RunOptimize()
	return b.ToBytes()
}

const defaultIndexBlock = 16 << 10

// bitmap is the reference's BitmapFileIndex, versions 1 and 2: a bitmap of rows
// for each value.
type bitmap struct {
	rows
	version   int
	blockSize int64
}

func newBitmap(t types.Type, options map[string]string) (builder, error) {
	switch t.Kind {
	case types.Decimal, types.Binary, types.Varbinary:
		return nil, fmt.Errorf("bitmap on type %s: %w", t, ErrUnsupported)
	}
	if !t.Scalar() {
		return nil, fmt.Errorf("bitmap on type %s: %w", t, ErrUnsupported)
	}
	b := &bitmap{rows: newRows(t), version: 2, blockSize: defaultIndexBlock}
	switch s, ok := options["version"]; {
	case ok && s == "1":
		b.version = 1
	case ok && s != "2":
		return nil, fmt.Errorf("version=%s: %w", s, ErrUnsupported)
	}
	if s, ok := options["index-block-size"]; ok {
		n, err := bytesize.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("index-block-size: %w", err)
		}
		b.blockSize = n
	}
	return b, nil
}

// entry is where the rows of a value are in the body. A value with one row has
// no bytes there: its row is the offset.
type entry struct {
	key            []byte
	offset, length int32
}

func (b *bitmap) payload() ([]byte, error) {
	var body bytes.Buffer
	place := func(rows *roaring.Bitmap) (offset, length int32, err error) {
		data, err := serialize(rows)
		if err != nil {
			return 0, 0, err
		}
		if rows.GetCardinality() == 1 {
			return -1 - int32(rows.Minimum()), int32(len(data)), nil
		}
		offset = int32(body.Len())
		body.Write(data)
		if body.Len() > math.MaxInt32/2 {
			return 0, 0, fmt.Errorf("more than 1 GiB of bitmaps")
		}
		return offset, int32(len(data)), nil
	}
	var null entry
	hasNull := !b.nulls.IsEmpty()
	if hasNull {
		var err error
		if null.offset, null.length, err = place(b.nulls); err != nil {
			return nil, err
		}
	}
	var entries []entry
	for _, k := range b.sorted() {
		e := entry{key: k.key}
		var err error
		if e.offset, e.length, err = place(k.rows); err != nil {
			return nil, err
		}
		if e.offset < 0 {
			e.length = -1
		}
		entries = append(entries, e)
	}
	out := []byte{byte(b.version)}
	put := func(v int32) { out = binary.BigEndian.AppendUint32(out, uint32(v)) }
	put(int32(b.count))
	put(int32(len(entries)))
	if out = append(out, 0); hasNull {
		out[len(out)-1] = 1
		put(null.offset)
		if b.version == 2 {
			put(null.length)
		}
	}
	if b.version == 1 {
		for _, e := range entries {
			out = append(out, e.key...)
			put(e.offset)
		}
		return append(out, body.Bytes()...), nil
	}
	out = append(out, b.blocks(entries)...)
	return append(out, body.Bytes()...), nil
}

// blocks is the two-level index of version 2: the first key of every block,
// then the blocks.
func (b *bitmap) blocks(entries []entry) []byte {
	const head, perEntry = 4, 8
	var blocks [][]entry
	size := int64(0)
	for _, e := range entries {
		cost := int64(len(e.key)) + perEntry
		if len(blocks) == 0 || size+cost > b.blockSize {
			blocks = append(blocks, nil)
			size = head
		}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], e)
		size += cost
	}
	var first, all []byte
	for _, block := range blocks {
		first = append(first, block[0].key...)
		first = binary.BigEndian.AppendUint32(first, uint32(len(all)))
		all = binary.BigEndian.AppendUint32(all, uint32(len(block)))
		for _, e := range block {
			all = append(all, e.key...)
			all = binary.BigEndian.AppendUint32(all, uint32(e.offset))
			all = binary.BigEndian.AppendUint32(all, uint32(e.length))
		}
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(len(blocks)))
	out = append(out, first...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(all)))
	return append(out, all...)
}
