package tabletest

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"tablectl/internal/types"
)

// json is the text that Paimon's GenericVariant.toJson makes, or the digits of
// the bytes where the variant holds something that is not known here.
func (v Variant) json() string {
	names, err := variantNames(v.Metadata)
	if err == nil {
		var b []byte
		if b, err = appendVariant(nil, v.Value, names); err == nil {
			return string(b)
		}
	}
	return hex.EncodeToString(v.Value) + "/" + hex.EncodeToString(v.Metadata)
}

var errVariant = errors.New("variant cannot be read")

// number reads a little-endian unsigned number of n bytes.
func number(b []byte, at, n int) (int, error) {
	if at < 0 || n < 1 || n > 4 || at+n > len(b) {
		return 0, errVariant
	}
	var word [8]byte
	copy(word[:], b[at:at+n])
	return int(binary.LittleEndian.Uint64(word[:])), nil
}

// slices cuts b from the offset at on into n parts, whose ends follow each other
// as numbers of width bytes.
func cutParts(b []byte, at, width, n int) (starts []int, rest []byte, err error) {
	starts = make([]int, n+1)
	for i := range starts {
		if starts[i], err = number(b, at+i*width, width); err != nil {
			return nil, nil, err
		}
	}
	return starts, b[at+(n+1)*width:], nil
}

// variantNames reads the dictionary of member names.
func variantNames(meta []byte) ([]string, error) {
	if len(meta) == 0 || meta[0]&0x0f != 1 {
		return nil, errVariant
	}
	width := int(meta[0]>>6) + 1
	n, err := number(meta, 1, width)
	if err != nil || n > len(meta) {
		return nil, errVariant
	}
	offsets, text, err := cutParts(meta, 1+width, width, n)
	if err != nil {
		return nil, err
	}
	names := make([]string, n)
	for i := range names {
		if offsets[i] > offsets[i+1] || offsets[i+1] > len(text) {
			return nil, errVariant
		}
		names[i] = string(text[offsets[i]:offsets[i+1]])
	}
	return names, nil
}

func appendVariant(b, v []byte, names []string) ([]byte, error) {
	if len(v) == 0 {
		return nil, errVariant
	}
	header := int(v[0] >> 2)
	switch v[0] & 3 {
	case 0:
		return appendPrimitive(b, header, v[1:])
	case 1:
		if header+1 > len(v) {
			return nil, errVariant
		}
		return quote(b, string(v[1:1+header])), nil
	case 2:
		return appendObject(b, header, v, names)
	}
	return appendArray(b, header, v, names)
}

func appendObject(b []byte, header int, v []byte, names []string) ([]byte, error) {
	offsetWidth, idWidth, countWidth := header&3+1, header>>2&3+1, 1
	if header&0x10 != 0 {
		countWidth = 4
	}
	n, err := number(v, 1, countWidth)
	if err != nil || n > len(v) {
		return nil, errVariant
	}
	offsets, data, err := cutParts(v, 1+countWidth+n*idWidth, offsetWidth, n)
	if err != nil {
		return nil, err
	}
	b = append(b, '{')
	for i := range n {
		id, err := number(v, 1+countWidth+i*idWidth, idWidth)
		if err != nil || id >= len(names) || offsets[i] > len(data) {
			return nil, errVariant
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(quote(b, names[id]), ':')
		if b, err = appendVariant(b, data[offsets[i]:], names); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendArray(b []byte, header int, v []byte, names []string) ([]byte, error) {
	offsetWidth, countWidth := header&3+1, 1
	if header&4 != 0 {
		countWidth = 4
	}
	n, err := number(v, 1, countWidth)
	if err != nil || n > len(v) {
		return nil, errVariant
	}
	offsets, data, err := cutParts(v, 1+countWidth, offsetWidth, n)
	if err != nil {
		return nil, err
	}
	b = append(b, '[')
	for i := range n {
		if offsets[i] > len(data) {
			return nil, errVariant
		}
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendVariant(b, data[offsets[i]:], names); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// appendPrimitive knows null, booleans, integers, doubles, decimals and strings.
func appendPrimitive(b []byte, kind int, v []byte) ([]byte, error) {
	size := map[int]int{3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 5, 9: 9, 10: 17, 16: 4}[kind]
	if len(v) < size {
		return nil, errVariant
	}
	switch kind {
	case 0:
		return append(b, "null"...), nil
	case 1, 2:
		return strconv.AppendBool(b, kind == 1), nil
	case 3, 4, 5, 6:
		return strconv.AppendInt(b, littleEndian(v[:size]).Int64(), 10), nil
	case 7:
		return append(b, types.JavaFloat(math.Float64frombits(binary.LittleEndian.Uint64(v)), 64)...), nil
	case 8, 9, 10:
		text := types.FormatDecimal(littleEndian(v[1:size]), int(v[0]))
		if strings.Contains(text, ".") { // Java strips trailing zeros
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		return append(b, text...), nil
	case 16:
		n := int(binary.LittleEndian.Uint32(v))
		if n > len(v)-size {
			return nil, errVariant
		}
		return quote(b, string(v[size:size+n])), nil
	}
	return nil, fmt.Errorf("%w: primitive of kind %d", errVariant, kind)
}

// littleEndian reads a two's complement.
func littleEndian(v []byte) *big.Int {
	reversed := make([]byte, len(v))
	for i, c := range v {
		reversed[len(v)-1-i] = c
	}
	return types.DecodeUnscaled(reversed)
}
