package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// Limits on pages in the delta encodings, in which a few bytes can stand for very
// many values, or for very long ones. Writers use blocks of 128 to 2048 values.
const (
	maxDeltaBlock  = 8 << 10  // values of a block
	maxDeltaValues = 16 << 20 // of a page
	maxFrontCoded  = 64 << 20 // bytes of the values that are decoded at a time
)

var errDelta = errors.New("damaged delta encoding")

// checkedPages reads the pages of a column chunk and refuses those in the delta
// encodings for which the Parquet library would allocate without bound
// (reference: Encodings of the Parquet format), and those that take too much together.
type checkedPages struct {
	file.PageReader
	heldPages
	maxDef, maxRep int16
	err            error
	frontCoded     int  // bytes of the page, if its values share their beginnings; else 0
	found          bool // the page is the one that seek found, which Next has still to hand out
}

// seek makes the page that holds a row of the chunk the next one, and returns that
// page's first row. It needs the offset index.
func (p *checkedPages) seek(row int64) (first int64, err error) {
	if err := p.SeekToPageWithRow(row); err != nil {
		return 0, err
	}
	page, ok := p.Page().(file.DataPage)
	if !ok || page.FirstRowIndex() > row {
		return 0, fmt.Errorf("the offset index does not lead to the page of row %d", row)
	}
	p.found = true
	return page.FirstRowIndex(), nil
}

func (p *checkedPages) Next() bool {
	if p.err != nil || !p.found && !p.PageReader.Next() {
		return false
	}
	p.found = false
	p.frontCoded = 0
	page := p.Page()
	switch encoding := parquet.Encoding(page.Encoding()); encoding {
	case parquet.Encodings.DeltaBinaryPacked, parquet.Encodings.DeltaLengthByteArray, parquet.Encodings.DeltaByteArray:
		if err := p.check(page, encoding); err != nil {
			p.err = fmt.Errorf("page in the encoding %s: %w", encoding, err)
		}
	}
	if p.err == nil {
		p.err = p.hold(page)
	}
	return p.err == nil
}

func (p *checkedPages) Err() error { return errors.Join(p.err, p.PageReader.Err()) }

func (p *checkedPages) check(page file.Page, encoding parquet.Encoding) error {
	data, err := p.values(page)
	if err != nil || page.Type() == file.PageTypeDictionaryPage {
		return err
	}
	if n := page.NumValues(); n > maxDeltaValues {
		return fmt.Errorf("%d values, at most %d are supported", n, maxDeltaValues)
	}
	rest, err := afterDeltas(data)
	if err == nil && encoding == parquet.Encodings.DeltaByteArray {
		p.frontCoded = len(data)
		_, err = afterDeltas(rest)
	}
	return err
}

// batch is how many values may be decoded at a time. A value is at most as long as
// the page.
func (p *checkedPages) batch() int64 {
	if p.frontCoded == 0 {
		return readBatch
	}
	return int64(min(max(maxFrontCoded/p.frontCoded, 1), readBatch))
}

// values are the bytes of a page behind its levels.
func (p *checkedPages) values(page file.Page) ([]byte, error) {
	data := page.Data()
	skip := 0
	switch page := page.(type) {
	case *file.DataPageV2:
		skip = int(page.RepetitionLevelByteLen()) + int(page.DefinitionLevelByteLen())
	case *file.DataPageV1:
		for _, level := range []struct {
			most     int16
			encoding parquet.Encoding
		}{{p.maxRep, page.RepetitionLevelEncoding()}, {p.maxDef, page.DefinitionLevelEncoding()}} {
			switch {
			case level.most == 0:
			case level.encoding == parquet.Encodings.BitPacked:
				skip += (int(page.NumValues())*bits.Len16(uint16(level.most)) + 7) / 8
			case skip < 0 || len(data)-skip < 4:
				return nil, errDelta
			default:
				skip += 4 + int(int32(binary.LittleEndian.Uint32(data[skip:])))
			}
		}
	}
	if skip < 0 || skip > len(data) {
		return nil, errDelta
	}
	return data[skip:], nil
}

// afterDeltas checks the header of a sequence in DELTA_BINARY_PACKED and returns
// what follows the sequence.
func afterDeltas(data []byte) ([]byte, error) {
	number := func() uint64 {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			data = nil
			return 0
		}
		data = data[n:]
		return v
	}
	block, miniblocks, values := number(), number(), number()
	number() // the first value
	if block == 0 || miniblocks == 0 || block > maxDeltaBlock || miniblocks > block || values > maxDeltaValues {
		return nil, fmt.Errorf("blocks of %d values, %d parts each, %d in all: %w", block, miniblocks, values, errDelta)
	}
	perMiniblock := int(block / miniblocks)
	for left := int(values) - 1; left > 0; {
		number() // the least delta
		if len(data) < int(miniblocks) {
			return nil, errDelta
		}
		var widths []byte
		widths, data = data[:miniblocks], data[miniblocks:]
		for _, width := range widths {
			if left <= 0 {
				break
			}
			size := (int(width)*perMiniblock + 7) / 8
			if size > len(data) {
				return nil, errDelta
			}
			data, left = data[size:], left-perMiniblock
		}
	}
	return data, nil
}
