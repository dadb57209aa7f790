package fileindex

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"tablectl/internal/bytesize"
	"tablectl/internal/types"
)

// bitSlices are bitmaps of the rows whose number has a given bit, the form that
// bsi and range-bitmap share.
type bitSlices struct {
	rows *roaring.Bitmap // that have a number
	bit  []*roaring.Bitmap
	max  uint64
}

func newBitSlices() *bitSlices { return &bitSlices{rows: roaring.New()} }

func (s *bitSlices) add(row uint32, n uint64) {
	s.rows.Add(row)
	s.max = max(s.max, n)
	for len(s.bit) < bits.Len64(n) {
		s.bit = append(s.bit, roaring.New())
	}
	for i := 0; n != 0; i, n = i+1, n>>1 {
		if n&1 != 0 {
			s.bit[i].Add(row)
		}
	}
}

// bitSliced is the reference's BitSliceIndexBitmap file index: the magnitudes of
// the values that are not negative and of those that are, each sliced.
type bitSliced struct {
	typ                types.Type
	count              uint32
	positive, negative *bitSlices
}

func newBitSliced(t types.Type) (builder, error) {
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Date, types.Time, types.Timestamp, types.TimestampLTZ, types.Decimal:
		return &bitSliced{typ: t, positive: newBitSlices(), negative: newBitSlices()}, nil
	}
	return nil, fmt.Errorf("bsi on type %s: %w", t, ErrUnsupported)
}

func (b *bitSliced) add(v types.Value) error {
	if b.count == math.MaxInt32 {
		return fmt.Errorf("more than %d rows", math.MaxInt32)
	}
	row := b.count
	b.count++
	if v.Null {
		return nil
	}
	n, err := indexInt(b.typ, v)
	switch {
	case err != nil:
		return err
	case n == math.MinInt64:
		return fmt.Errorf("value %d has no magnitude that fits", n)
	case n < 0:
		b.negative.add(row, uint64(-n))
	default:
		b.positive.add(row, uint64(n))
	}
	return nil
}

func (b *bitSliced) payload() ([]byte, error) {
	out := []byte{1}
	out = binary.BigEndian.AppendUint32(out, b.count)
	for _, half := range []*bitSlices{b.positive, b.negative} {
		if half.rows.IsEmpty() {
			out = append(out, 0)
			continue
		}
		out = append(out, 1, 1)
		out = binary.BigEndian.AppendUint64(out, 0) // the reference's minimum is always 0
		out = binary.BigEndian.AppendUint64(out, half.max)
		data, err := serialize(half.rows)
		if err != nil {
			return nil, err
		}
		out = append(out, data...)
		out = binary.BigEndian.AppendUint32(out, uint32(len(half.bit)))
		for _, s := range half.bit {
			if data, err = serialize(s); err != nil {
				return nil, err
			}
			out = append(out, data...)
		}
	}
	return out, nil
}

const defaultChunk = 16 << 10

// rangeBitmap is the reference's RangeBitmap: a sorted dictionary of the values,
// cut into chunks, and the slices of their ranks.
type rangeBitmap struct {
	rows
	chunkSize int64
}

func newRangeBitmap(t types.Type, options map[string]string) (builder, error) {
	supported := t.Scalar()
	switch t.Kind {
	case types.Binary, types.Varbinary:
		supported = false
	case types.Decimal:
		supported = t.Precision <= 18
	case types.Timestamp, types.TimestampLTZ:
		supported = t.Precision <= 6
	}
	if !supported {
		return nil, fmt.Errorf("range-bitmap on type %s: %w", t, ErrUnsupported)
	}
	b := &rangeBitmap{rows: newRows(t), chunkSize: defaultChunk}
	if w := keyWidth(t); w == 1 || w == 2 {
		b.chunkSize = 0
	}
	if s, ok := options["chunk-size"]; ok {
		n, err := bytesize.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("chunk-size: %w", err)
		}
		b.chunkSize = n
	}
	return b, nil
}

// emptySlices is how many slices the reference writes where there is no value.
const emptySlices = 64

func (b *rangeBitmap) payload() ([]byte, error) {
	keys := b.sorted()
	slices := newBitSlices()
	for code, k := range keys {
		for it := k.rows.Iterator(); it.HasNext(); {
			slices.add(it.Next(), uint64(code))
		}
	}
	n := emptySlices
	if len(keys) > 0 {
		n = max(1, bits.Len64(uint64(len(keys)-1)))
	}
	dictionary := b.dictionary(keys)

	header := []byte{1}
	header = binary.BigEndian.AppendUint32(header, b.count)
	header = binary.BigEndian.AppendUint32(header, uint32(len(keys)))
	if len(keys) > 0 {
		header = append(header, keys[0].key...)
		header = append(header, keys[len(keys)-1].key...)
	}
	header = binary.BigEndian.AppendUint32(header, uint32(len(dictionary)))

	out := binary.BigEndian.AppendUint32(nil, uint32(len(header)))
	out = append(out, header...)
	out = append(out, dictionary...)
	return b.appendSlices(out, slices, n)
}

func (b *rangeBitmap) appendSlices(out []byte, s *bitSlices, n int) ([]byte, error) {
	exists, err := serialize(s.rows)
	if err != nil {
		return nil, err
	}
	var index, body []byte
	for i := range n {
		slice := roaring.New()
		if i < len(s.bit) {
			slice = s.bit[i]
		}
		data, err := serialize(slice)
		if err != nil {
			return nil, err
		}
		index = binary.BigEndian.AppendUint32(index, uint32(len(body)))
		index = binary.BigEndian.AppendUint32(index, uint32(len(data)))
		body = append(body, data...)
	}
	out = binary.BigEndian.AppendUint32(out, uint32(10+len(index)))
	out = append(out, 1, byte(n))
	out = binary.BigEndian.AppendUint32(out, uint32(len(exists)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(index)))
	out = append(out, index...)
	out = append(out, exists...)
	return append(out, body...), nil
}

// dictionary writes the sorted keys in chunks. The first key of a chunk is in its
// header and does not count towards its size.
func (b *rangeBitmap) dictionary(keys []*keyRows) []byte {
	width := keyWidth(b.typ)
	var headers, area, offsets []byte
	chunks := 0
	for at := 0; at < len(keys); {
		end, used := at+1, int64(0)
		for ; end < len(keys); end++ {
			more := int64(len(keys[end].key))
			if used+more > b.chunkSize || width == 0 && int64(4*(end-at)) > b.chunkSize {
				break
			}
			used += more
		}
		offsets = binary.BigEndian.AppendUint32(offsets, uint32(len(headers)))
		headers = append(append(headers, 1), keys[at].key...)
		headers = binary.BigEndian.AppendUint32(headers, uint32(at))
		headers = binary.BigEndian.AppendUint32(headers, uint32(len(area)))
		headers = binary.BigEndian.AppendUint32(headers, uint32(end-at-1))
		var places, body []byte
		for _, k := range keys[at+1 : end] {
			places = binary.BigEndian.AppendUint32(places, uint32(len(body)))
			body = append(body, k.key...)
		}
		if width == 0 {
			headers = binary.BigEndian.AppendUint32(headers, uint32(len(places)))
			headers = binary.BigEndian.AppendUint32(headers, uint32(len(body)))
			area = append(area, places...)
		} else {
			headers = binary.BigEndian.AppendUint32(headers, uint32(len(body)))
			headers = binary.BigEndian.AppendUint32(headers, uint32(width))
		}
		area = append(area, body...)
		chunks++
		at = end
	}
	out := binary.BigEndian.AppendUint32(nil, 13)
	out = append(out, 1)
	out = binary.BigEndian.AppendUint32(out, uint32(chunks))
	out = binary.BigEndian.AppendUint32(out, uint32(len(offsets)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(headers)))
	out = append(out, offsets...)
	out = append(out, headers...)
	return append(out, area...)
}
