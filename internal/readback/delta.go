package readback

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// In the delta encodings a few bytes can stand for very many values, or for very long
// ones, and parquet-go makes room for what they say. This looks at them before it
// (reference: Encodings of the Parquet format).

var errDelta = errors.New("damaged delta encoding")

// checkDelta looks at the values of an inflated page.
func (c *chunk) checkDelta(h *format.PageHeader, page []byte) error {
	var n int64
	var encoding format.Encoding
	switch {
	case h.DataPageHeader.Valid:
		n, encoding = int64(h.DataPageHeader.V.NumValues), h.DataPageHeader.V.Encoding
	case h.DataPageHeaderV2.Valid:
		n, encoding = int64(h.DataPageHeaderV2.V.NumValues), h.DataPageHeaderV2.V.Encoding
	}
	switch encoding {
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray, format.DeltaByteArray:
	default:
		return nil
	}
	values, err := c.valuesOf(h, page)
	if err != nil {
		return err
	}
	if encoding != format.DeltaByteArray {
		_, err := newDelta(values, n)
		return err
	}
	shared, err := newDelta(values, n)
	if err != nil {
		return err
	}
	var length int64 // of what is copied from value to value
	if err := shared.each(func(v int64) bool {
		length += v
		return v >= 0 && length <= maxPage
	}); err != nil {
		return fmt.Errorf("beginnings that values share: %w", err)
	}
	_, err = newDelta(shared.rest, n)
	return err
}

// valuesOf is what follows the levels.
func (c *chunk) valuesOf(h *format.PageHeader, page []byte) ([]byte, error) {
	if v2 := &h.DataPageHeaderV2; v2.Valid {
		return page[v2.V.RepetitionLevelsByteLength+v2.V.DefinitionLevelsByteLength:], nil
	}
	for _, level := range []int{c.column.MaxRepetitionLevel(), c.column.MaxDefinitionLevel()} {
		if level == 0 {
			continue
		}
		if len(page) < 4 || int64(binary.LittleEndian.Uint32(page)) > int64(len(page)-4) {
			return nil, errors.New("the levels are longer than their page")
		}
		page = page[4+int(binary.LittleEndian.Uint32(page)):]
	}
	return page, nil
}

// delta is a run of numbers in the encoding DELTA_BINARY_PACKED.
type delta struct {
	rest     []byte
	blocks   int // numbers of a block
	parts    int // of a block
	count    int64
	previous int64
}

func newDelta(data []byte, most int64) (*delta, error) {
	d := &delta{rest: data}
	var head [4]uint64 // numbers of a block, its parts, count, first number
	for i := range head {
		v, n := binary.Uvarint(d.rest)
		if n <= 0 {
			return nil, errDelta
		}
		head[i], d.rest = v, d.rest[n:]
	}
	if head[0] == 0 || head[0] > 64<<10 || head[1] == 0 || head[0]%head[1] != 0 || head[0]/head[1]%32 != 0 {
		return nil, fmt.Errorf("%w: blocks of %d numbers in %d parts", errDelta, head[0], head[1])
	}
	if head[2] > uint64(most) {
		return nil, fmt.Errorf("%w: %d numbers for %d entries", errDelta, head[2], most)
	}
	d.blocks, d.parts, d.count, d.previous = int(head[0]), int(head[1]), int64(head[2]), zigzag(head[3])
	return d, nil
}

func zigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// each calls f with the numbers until it returns false, and leaves in rest what
// follows them.
func (d *delta) each(f func(v int64) bool) error {
	if d.count > 0 && !f(d.previous) {
		return errDelta
	}
	for left := d.count - 1; left > 0; {
		least, n := binary.Uvarint(d.rest)
		if n <= 0 || len(d.rest)-n < d.parts {
			return errDelta
		}
		widths := d.rest[n : n+d.parts]
		d.rest = d.rest[n+d.parts:]
		for _, width := range widths {
			if left <= 0 {
				break // what has no numbers has no bytes
			}
			size := d.blocks / d.parts
			length := size * int(width) / 8
			if width > 64 || length > len(d.rest) {
				return errDelta
			}
			for i := range int(min(int64(size), left)) {
				d.previous += zigzag(least) + int64(packed(d.rest[:length], i*int(width), int(width)))
				if !f(d.previous) {
					return errDelta
				}
			}
			left -= int64(size)
			d.rest = d.rest[length:]
		}
	}
	return nil
}

// packed reads the number of width bits that begins at a bit, lowest bits first.
func packed(data []byte, at, width int) uint64 {
	var v uint64
	for got := 0; got < width; {
		b := uint64(data[(at+got)/8]) >> ((at + got) % 8)
		v |= b << got
		got += 8 - (at+got)%8
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}
