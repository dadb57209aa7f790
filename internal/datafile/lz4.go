package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/pierrec/lz4/v4"
)

// hadoopLZ4 is the Parquet codec LZ4 as the reference writes it, which the
// Parquet library leaves out: LZ4 blocks in the frames of Hadoop's block codecs.
// A frame is the big-endian length of the data it inflates to, then, until that
// many bytes are reached, the big-endian length of a block and the block.
type hadoopLZ4 struct{}

func init() { compress.RegisterCodec(compress.Codecs.Lz4, hadoopLZ4{}) }

const (
	frameHeader = 8
	blockHeader = 4
	// maxLZ4Block is how much Hadoop's decompressor takes in one block: its buffer of
	// 256 KiB, less what an incompressible block grows by.
	maxLZ4Block = 256<<10 - 256<<10/255 - 16
)

var errLZ4 = errors.New("damaged LZ4 data")

func (hadoopLZ4) CompressBound(n int64) int64 {
	blocks := n/maxLZ4Block + 1
	return frameHeader + blocks*int64(blockHeader+lz4.CompressBlockBound(int(min(n, maxLZ4Block))))
}

func (c hadoopLZ4) Encode(dst, src []byte) []byte {
	bound := int(c.CompressBound(int64(len(src))))
	if cap(dst) < bound {
		dst = make([]byte, bound)
	}
	dst = dst[:bound]
	binary.BigEndian.PutUint32(dst, uint32(len(src)))
	end := 4
	if len(src) == 0 { // a dictionary without words; readers want a block all the same
		return append(dst[:end], 0, 0, 0, 1, 0)
	}
	for len(src) > 0 {
		block := src[:min(len(src), maxLZ4Block)]
		src = src[len(block):]
		n, err := lz4.CompressBlock(block, dst[end+blockHeader:], nil)
		if err != nil {
			panic(fmt.Errorf("compress LZ4: %w", err)) // the writer turns it into an error
		}
		binary.BigEndian.PutUint32(dst[end:], uint32(n))
		end += blockHeader + n
	}
	return dst[:end]
}

func (c hadoopLZ4) EncodeLevel(dst, src []byte, _ int) []byte { return c.Encode(dst, src) }

func (c hadoopLZ4) Decode(dst, src []byte) []byte {
	out, err := c.DecodeWithError(dst, src)
	if err != nil {
		panic(err)
	}
	return out
}

// DecodeWithError inflates into dst, which has the length that the page header
// tells. Some writers put a bare block where a frame belongs.
func (hadoopLZ4) DecodeWithError(dst, src []byte) ([]byte, error) {
	if len(dst) == 0 {
		return dst, nil
	}
	n, err := decodeFrames(dst, src)
	if err != nil {
		if n, err = lz4.UncompressBlock(src, dst); err != nil {
			return nil, fmt.Errorf("%w: %w", errLZ4, err)
		}
	}
	return dst[:n], nil
}

func decodeFrames(dst, src []byte) (int, error) {
	done := 0
	for len(src) > 0 {
		if len(src) < frameHeader {
			return 0, errLZ4
		}
		end := done + int(binary.BigEndian.Uint32(src))
		src = src[4:]
		if end > len(dst) || end < done {
			return 0, errLZ4
		}
		for done < end {
			if len(src) < 4 {
				return 0, errLZ4
			}
			size := int(binary.BigEndian.Uint32(src))
			if src = src[4:]; size > len(src) {
				return 0, errLZ4
			}
			n, err := lz4.UncompressBlock(src[:size], dst[done:end])
			if err != nil {
				return 0, err
			}
			if n == 0 {
				return 0, errLZ4
			}
			done, src = done+n, src[size:]
		}
	}
	return done, nil
}
