package fileindex

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"tablectl/internal/types"
)

// reader reads big-endian numbers; what is missing makes it fail for good.
type reader struct {
	data []byte
	pos  int
	err  error
}

func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.data)-r.pos {
		if r.err == nil {
			r.err = fmt.Errorf("%d bytes wanted at %d of %d", n, r.pos, len(r.data))
		}
		return make([]byte, 8)
	}
	r.pos += n
	return r.data[r.pos-n : r.pos]
}

func (r *reader) u8() int { return int(r.bytes(1)[0]) }

func (r *reader) u16() int { return int(binary.BigEndian.Uint16(r.bytes(2))) }

func (r *reader) i32() int { return int(int32(binary.BigEndian.Uint32(r.bytes(4)))) }

// fail notes the first thing that is wrong.
func (r *reader) fail(wrong bool, format string, args ...any) {
	if wrong && r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// indexEntry is one index in a container. Its payload is nil where the file has
// no rows for it.
type indexEntry struct {
	column, kind string // the column in Java's modified UTF-8
	payload      []byte
}

// decodeContainer reads a container as strictly as any reader does.
func decodeContainer(data []byte) ([]indexEntry, error) {
	r := &reader{data: data}
	r.fail(binary.BigEndian.Uint64(r.bytes(8)) != 1493475289347502, "bad magic")
	version := r.i32()
	r.fail(version != 1, "version %d", version)
	head := r.i32()
	end := head
	var entries []indexEntry
	for range r.i32() {
		column := string(r.bytes(r.u16()))
		for range r.i32() {
			e := indexEntry{column: column, kind: string(r.bytes(r.u16()))}
			start, length := r.i32(), r.i32()
			if start != -1 && r.err == nil {
				r.fail(start != end || length < 0 || start+length > len(data), "%s of %q is at %d+%d, after %d of %d", e.kind, column, start, length, end, len(data))
				if r.err == nil {
					e.payload = data[start : start+length]
				}
				end += length
			}
			r.fail(start == -1 && length != 0, "absent index of %d bytes", length)
			entries = append(entries, e)
		}
	}
	redundant := r.i32()
	r.fail(redundant != 0, "redundant length %d", redundant)
	r.fail(r.pos != head, "header of %d bytes is said to have %d", r.pos, head)
	r.fail(end != len(data), "body ends at %d of %d", end, len(data))
	return entries, r.err
}

// bitmapIndex is a bitmap index without the order of its body.
type bitmapIndex struct {
	version, rows int
	nulls         string            // serialised
	keys          map[string]string // encoded key to serialised rows
	blocks        []string          // first key of every block
}

type bitmapEntry struct {
	key            string
	offset, length int // length is -1 where it is not known
}

// decodeBitmap reads a payload and checks its structure. An index of ours also
// has its keys in order, and its bodies in the order of the keys.
func decodeBitmap(data []byte, typ types.Type, ours bool) (bitmapIndex, error) {
	r := &reader{data: data}
	key := func() string {
		if typ.Kind == types.Char || typ.Kind == types.Varchar {
			n := r.bytes(4)
			return string(n) + string(r.bytes(int(binary.BigEndian.Uint32(n))))
		}
		return string(r.bytes(map[types.Kind]int{
			types.Boolean: 1, types.TinyInt: 1, types.SmallInt: 2, types.Int: 4, types.Date: 4,
			types.Time: 4, types.Float: 4, types.Double: 8, types.BigInt: 8, types.Timestamp: 8, types.TimestampLTZ: 8,
		}[typ.Kind]))
	}
	b := bitmapIndex{version: r.u8(), rows: r.i32(), keys: map[string]string{}}
	r.fail(b.version != 1 && b.version != 2, "version %d", b.version)
	distinct, hasNull := r.i32(), r.u8()
	r.fail(distinct+hasNull > b.rows || hasNull > 1, "%d values and %d nulls in %d rows", distinct, hasNull, b.rows)
	var entries, bodies []bitmapEntry
	if hasNull == 1 {
		null := bitmapEntry{offset: r.i32(), length: -1}
		if b.version == 2 {
			null.length = r.i32()
			r.fail(null.offset < 0 && null.length != 18, "the one null has the length %d", null.length)
		}
		r.fail(null.offset > 0, "nulls are at %d", null.offset)
		bodies = append(bodies, null)
	}
	if b.version == 1 {
		for range distinct {
			if r.err != nil {
				break
			}
			entries = append(entries, bitmapEntry{key: key(), offset: r.i32(), length: -1})
		}
	} else {
		entries = b.decodeBlocks(r, key)
	}
	r.fail(len(entries) != distinct, "%d values are said to be %d", len(entries), distinct)
	if ours && !slices.IsSortedFunc(entries, func(x, y bitmapEntry) int { return bytes.Compare(sortKey(typ, x.key), sortKey(typ, y.key)) }) {
		r.fail(true, "values are not in order")
	}
	bodies = append(bodies, entries...)
	if b.version == 2 && !ours {
		slices.SortStableFunc(bodies, func(x, y bitmapEntry) int { return x.offset - y.offset })
	}
	b.decodeBodies(r, bodies)
	r.fail(len(b.keys) != distinct, "%d distinct values are said to be %d", len(b.keys), distinct)
	return b, r.err
}

// decodeBlocks reads the two levels of version 2.
func (b *bitmapIndex) decodeBlocks(r *reader, key func() string) (entries []bitmapEntry) {
	var offsets []int
	for range r.i32() {
		if r.err != nil {
			break
		}
		b.blocks = append(b.blocks, key())
		offsets = append(offsets, r.i32())
	}
	length := r.i32()
	start := r.pos
	for i, first := range b.blocks {
		r.fail(r.pos-start != offsets[i], "block %d is at %d, not %d", i, r.pos-start, offsets[i])
		n := r.i32()
		r.fail(n == 0, "block %d is empty", i)
		for j := range n {
			if r.err != nil {
				break
			}
			e := bitmapEntry{key: key(), offset: r.i32(), length: r.i32()}
			r.fail(j == 0 && e.key != first, "block %d begins with %x, not %x", i, e.key, first)
			r.fail(e.offset < 0 && e.length != -1 || e.offset >= 0 && e.length <= 0, "%x is at %d+%d", e.key, e.offset, e.length)
			entries = append(entries, e)
		}
	}
	r.fail(r.pos-start != length, "blocks of %d bytes are said to have %d", r.pos-start, length)
	return entries
}

// decodeBodies reads the bitmaps, which follow each other without gaps.
func (b *bitmapIndex) decodeBodies(r *reader, entries []bitmapEntry) {
	start, seen := r.pos, roaring.New()
	for _, e := range entries {
		rows := roaring.New()
		if e.offset < 0 {
			rows.Add(uint32(-1 - e.offset))
		} else if r.err == nil {
			r.fail(r.pos-start != e.offset, "%x is at %d, not %d", e.key, r.pos-start, e.offset)
			n, err := rows.FromBuffer(r.data[r.pos:])
			r.fail(err != nil, "%x: %v", e.key, err)
			r.fail(e.length >= 0 && int(n) != e.length, "rows of %x have %d bytes, not %d", e.key, n, e.length)
			r.fail(rows.GetCardinality() < 2, "%x has %d rows in the body", e.key, rows.GetCardinality())
			r.bytes(int(n))
		}
		r.fail(!rows.IsEmpty() && int(rows.Maximum()) >= b.rows, "%x has row %d of %d", e.key, rows.Maximum(), b.rows)
		r.fail(rows.Intersects(seen), "a row of %x has another value too", e.key)
		seen.Or(rows)
		data, err := rows.ToBytes() // of the one row
		r.fail(err != nil, "%x: %v", e.key, err)
		if e.offset >= 0 && r.err == nil {
			data = r.data[start+e.offset : r.pos]
		}
		if e.key == "" { // no value has an empty key
			b.nulls = string(data)
		} else {
			b.keys[e.key] = string(data)
		}
	}
	r.fail(int(seen.GetCardinality()) != b.rows, "%d rows are said to be %d", seen.GetCardinality(), b.rows)
	r.fail(r.pos != len(r.data), "%d bytes are left", len(r.data)-r.pos)
}

func (b bitmapIndex) equal(c bitmapIndex) bool {
	return b.version == c.version && b.rows == c.rows && b.nulls == c.nulls && maps.Equal(b.keys, c.keys) && slices.Equal(b.blocks, c.blocks)
}

// rowsOf lists the rows of a serialised bitmap.
func rowsOf(t interface{ Fatal(...any) }, serialised string) []uint32 {
	rows := roaring.New()
	if err := rows.UnmarshalBinary([]byte(serialised)); err != nil {
		t.Fatal(err)
	}
	return rows.ToArray()
}

// sortKey maps encoded keys to bytes that sort unsigned as the values do.
func sortKey(typ types.Type, key string) []byte {
	b := []byte(key)
	switch typ.Kind {
	case types.Char, types.Varchar:
		return b[4:]
	case types.Boolean:
		return b
	case types.Float, types.Double:
		if b[0]&0x80 != 0 {
			for i := range b {
				b[i] ^= math.MaxUint8
			}
			return b
		}
	}
	b[0] ^= 0x80
	return b
}
