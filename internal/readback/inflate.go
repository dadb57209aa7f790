package readback

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

func readable(codec format.CompressionCodec) bool {
	return slices.Contains([]format.CompressionCodec{
		format.Uncompressed, format.Snappy, format.Gzip, format.Zstd, format.Lz4, format.Lz4Raw, format.Brotli,
	}, codec)
}

var errInflate = errors.New("the page does not inflate to its size")

// inflater inflates pages, none of them beyond the size that its header says.
type inflater struct{ zstd *zstd.Decoder }

// inflate fills dst.
func (i *inflater) inflate(codec format.CompressionCodec, dst, src []byte) error {
	if len(dst) == 0 { // whatever the codec makes of nothing
		return nil
	}
	var n int
	var err error
	switch codec {
	case format.Uncompressed:
		if n = len(src); n == len(dst) {
			copy(dst, src)
		}
	case format.Snappy:
		// The length is in front, and the library makes room for it.
		if length, _ := binary.Uvarint(src); length == uint64(len(dst)) {
			var out []byte
			out, err = parquet.Snappy.Decode(dst, src)
			n = copy(dst, out)
		}
	case format.Gzip:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(src)); err == nil {
			n, err = readAll(r, dst)
		}
	case format.Brotli:
		n, err = readAll(brotli.NewReader(bytes.NewReader(src)), dst)
	case format.Zstd:
		n, err = i.inflateZstd(dst, src)
	case format.Lz4Raw:
		n, err = lz4.UncompressBlock(src, dst)
	case format.Lz4:
		if n, err = inflateFrames(dst, src); err != nil {
			n, err = lz4.UncompressBlock(src, dst) // some writers leave the frame out
		}
	default:
		return fmt.Errorf("compression %s: %w", codec, ErrUnsupported)
	}
	if err == nil && n != len(dst) {
		err = errInflate
	}
	return err
}

// readAll reads what has to be as long as dst.
func readAll(r io.Reader, dst []byte) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, err
	}
	if more, err := r.Read(make([]byte, 1)); more > 0 || !errors.Is(err, io.EOF) {
		return n, errors.Join(errInflate, err)
	}
	return n, nil
}

func (i *inflater) inflateZstd(dst, src []byte) (int, error) {
	if i.zstd == nil {
		var err error
		i.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxPage))
		if err != nil {
			return 0, err
		}
	}
	out, err := i.zstd.DecodeAll(src, dst[:0:len(dst)])
	return len(out), err
}

// inflateFrames inflates LZ4 as Hadoop frames it: the length of what is in the frame,
// then blocks with their own lengths until it is complete, all numbers big-endian. A
// frame of nothing is the end, whatever follows, as Hadoop reads it.
func inflateFrames(dst, src []byte) (int, error) {
	done := 0
	for len(src) > 0 {
		if len(src) < 4 {
			return done, errors.New("LZ4 frame without a length")
		}
		size := int(binary.BigEndian.Uint32(src))
		if size == 0 {
			return done, nil
		}
		if size > len(dst)-done {
			return done, errInflate
		}
		src = src[4:]
		for end := done + size; done < end; {
			if len(src) < 4 || int(binary.BigEndian.Uint32(src)) > len(src)-4 {
				return done, errors.New("LZ4 block beyond the end of the page")
			}
			length := 4 + int(binary.BigEndian.Uint32(src))
			n, err := lz4.UncompressBlock(src[4:length], dst[done:end])
			if err != nil || n == 0 {
				return done, fmt.Errorf("LZ4 block of %d bytes: %w", n, errors.Join(err, errInflate))
			}
			done, src = done+n, src[length:]
		}
	}
	return done, nil
}
