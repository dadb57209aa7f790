package fileindex

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"tablectl/internal/types"
)

const (
	defaultItems = 1_000_000
	defaultFPP   = 0.1
)

// bloomFilter is the reference's BloomFilter64 with FastHash: its size follows
// from the configured number of items, not from the rows.
type bloomFilter struct {
	typ    types.Type
	hashes int32
	size   int64  // bytes
	bits   []byte // nil until they are needed
}

// allocated makes the bits. Options only tell how many there are.
func (b *bloomFilter) allocated() []byte {
	if b.bits == nil {
		b.bits = make([]byte, b.size)
	}
	return b.bits
}

func newBloomFilter(t types.Type, options map[string]string) (builder, error) {
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Float, types.Double, types.Date, types.Time,
		types.Timestamp, types.TimestampLTZ, types.Char, types.Varchar, types.Binary, types.Varbinary:
	default:
		return nil, fmt.Errorf("bloom filter on type %s: %w", t, ErrUnsupported)
	}
	items, fpp := defaultItems, defaultFPP
	var err error
	if s, ok := options["items"]; ok {
		if items, err = strconv.Atoi(s); err != nil || items < 0 {
			return nil, fmt.Errorf("items=%s: expected a number of values", s)
		}
	}
	if s, ok := options["fpp"]; ok {
		if fpp, err = strconv.ParseFloat(s, 64); err != nil || !(fpp > 0 && fpp <= 1) {
			return nil, fmt.Errorf("fpp=%s: expected a probability", s)
		}
	}
	wanted := math.Trunc(-float64(items) * math.Log(fpp) / (math.Ln2 * math.Ln2))
	if wanted > math.MaxInt32-8 {
		return nil, fmt.Errorf("items=%d and fpp=%v make a filter of more than 256 MiB", items, fpp)
	}
	bits := int64(wanted)
	bits += 8 - bits%8
	k := int32(1)
	if items > 0 {
		k = max(1, int32(math.Floor(float64(bits)/float64(items)*math.Ln2+0.5)))
	}
	return &bloomFilter{typ: t, hashes: k, size: bits / 8}, nil
}

func (b *bloomFilter) add(v types.Value) error {
	if v.Null {
		return nil
	}
	h, err := bloomHash(b.typ, v)
	if err != nil {
		return err
	}
	b.allocated()
	h1, h2 := int32(h), int32(h>>32)
	for i := int32(1); i <= b.hashes; i++ {
		c := h1 + i*h2
		if c < 0 {
			c = ^c
		}
		p := int64(c) % (b.size * 8)
		b.bits[p>>3] |= 1 << (p & 7)
	}
	return nil
}

func (b *bloomFilter) payload() ([]byte, error) {
	return append(binary.BigEndian.AppendUint32(nil, uint32(b.hashes)), b.allocated()...), nil
}

func bloomHash(t types.Type, v types.Value) (uint64, error) {
	switch t.Kind {
	case types.Char, types.Varchar, types.Binary, types.Varbinary:
		return xxhash.Sum64(v.Bytes), nil
	case types.Float:
		return wangHash(int64(int32(floatBits(t, v.Float)))), nil
	case types.Double:
		return wangHash(int64(floatBits(t, v.Float))), nil
	}
	n, err := indexInt(t, v)
	return wangHash(n), err
}

// wangHash is Thomas Wang's 64-bit mix, with arithmetic shifts as in the reference.
func wangHash(k int64) uint64 {
	k = ^k + k<<21
	k ^= k >> 24
	k = k + k<<3 + k<<8
	k ^= k >> 14
	k = k + k<<2 + k<<4
	k ^= k >> 28
	k += k << 31
	return uint64(k)
}
