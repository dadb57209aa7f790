package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/zstd"
)

// boundedCodec never inflates more than the page header tells, which the Parquet
// library checks, and for which it has made room. The library's own decoders grow
// that room to what the compressed data asks for, and compare afterwards: 350 kB
// made it take 8 GB.
type boundedCodec struct {
	compress.Codec
	decode func(dst, src []byte) ([]byte, error)
}

var errTooLong = errors.New("the data is longer than the page header tells, or damaged")

func init() {
	bound := func(c compress.Compression, decode func(inner compress.Codec, dst, src []byte) ([]byte, error)) {
		inner, err := compress.GetCodec(c)
		if err != nil {
			return // whoever needs it finds that out
		}
		compress.RegisterCodec(c, boundedCodec{inner, func(dst, src []byte) ([]byte, error) { return decode(inner, dst, src) }})
	}
	bound(compress.Codecs.Uncompressed, copyPage)
	bound(compress.Codecs.Snappy, decodeSnappy)
	bound(compress.Codecs.Gzip, compress.Decode)
	bound(compress.Codecs.Brotli, compress.Decode)
	bound(compress.Codecs.Zstd, func(_ compress.Codec, dst, src []byte) ([]byte, error) { return decodeZstd(dst, src) })
}

func (c boundedCodec) Decode(dst, src []byte) []byte {
	out, err := c.DecodeWithError(dst, src)
	if err != nil {
		panic(err)
	}
	return out
}

// DecodeWithError inflates into dst, which has the length that the page header tells.
func (c boundedCodec) DecodeWithError(dst, src []byte) ([]byte, error) {
	if dst == nil {
		dst = []byte{} // nil stands for any length
	}
	out, err := c.decode(dst[:len(dst):len(dst)], src)
	if err == nil && len(out) > len(dst) {
		err = errTooLong
	}
	return out, err
}

func copyPage(_ compress.Codec, dst, src []byte) ([]byte, error) {
	if len(src) > len(dst) {
		return nil, errTooLong
	}
	return dst[:copy(dst, src)], nil
}

// decodeSnappy looks at the length that the data begins with.
func decodeSnappy(inner compress.Codec, dst, src []byte) ([]byte, error) {
	if n, read := binary.Uvarint(src); read <= 0 || n > uint64(len(dst)) {
		return nil, errTooLong
	}
	return compress.Decode(inner, dst, src)
}

// zstdDecoder is shared: it decodes whole pages, and those at the same time.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true))
})

func decodeZstd(dst, src []byte) ([]byte, error) {
	d, err := zstdDecoder()
	if err != nil {
		return nil, err
	}
	out, err := d.DecodeAll(src, dst[:0])
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		err = fmt.Errorf("%w: %w", errTooLong, err)
	}
	return out, err
}
