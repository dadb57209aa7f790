package readback

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// parquet-go makes room for as many items as a list says it has, so one byte of
// damage can make it ask for more memory than there is, which ends the process. This
// looks at footers and headers before it: that lists are no longer than the bytes
// there are, and that structures do not nest without end.

const maxThriftDepth = 32 // Parquet's own nest 6 deep

var (
	errThrift = errors.New("damaged Thrift structure")
	// errShort is about a structure that may go on behind the bytes at hand.
	errShort = fmt.Errorf("%w: it is cut off", errThrift)
)

// The types of Thrift's compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftRecord = 12
)

// thriftStruct returns the length of the structure at the beginning of the data.
func thriftStruct(data []byte) (int, error) {
	t := thriftBytes{rest: data}
	if err := t.record(0); err != nil {
		return 0, err
	}
	return len(data) - len(t.rest), nil
}

type thriftBytes struct{ rest []byte }

func (t *thriftBytes) skip(n uint64) error {
	if n > uint64(len(t.rest)) {
		return errShort
	}
	t.rest = t.rest[n:]
	return nil
}

func (t *thriftBytes) byte() (byte, error) {
	if len(t.rest) == 0 {
		return 0, errShort
	}
	b := t.rest[0]
	t.rest = t.rest[1:]
	return b, nil
}

func (t *thriftBytes) varint() (uint64, error) {
	v, n := binary.Uvarint(t.rest)
	switch {
	case n == 0:
		return 0, errShort
	case n < 0:
		return 0, errThrift
	}
	t.rest = t.rest[n:]
	return v, nil
}

func (t *thriftBytes) record(depth int) error {
	if depth > maxThriftDepth {
		return errThrift
	}
	for {
		head, err := t.byte()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 == 0 {
			if _, err := t.varint(); err != nil { // the field's id
				return err
			}
		}
		if kind := head & 15; kind != thriftTrue && kind != thriftFalse { // those are all in the head
			if err := t.item(kind, depth+1); err != nil {
				return err
			}
		}
	}
}

func (t *thriftBytes) item(kind byte, depth int) error {
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		return t.skip(1)
	case thriftI16, thriftI32, thriftI64:
		_, err := t.varint()
		return err
	case thriftDouble:
		return t.skip(8)
	case thriftBinary:
		n, err := t.varint()
		if err != nil {
			return err
		}
		return t.skip(n)
	case thriftList, thriftSet:
		return t.list(depth)
	case thriftMap:
		return fmt.Errorf("%w: it has a map, Parquet none", errThrift)
	case thriftRecord:
		return t.record(depth)
	}
	return errThrift
}

func (t *thriftBytes) list(depth int) error {
	head, err := t.byte()
	if err != nil {
		return err
	}
	n, kind := uint64(head>>4), head&15
	if depth > maxThriftDepth {
		return errThrift
	}
	if n == 15 {
		if n, err = t.varint(); err != nil {
			return err
		}
	}
	if n > uint64(len(t.rest)) { // an item takes a byte or more
		return errShort
	}
	for range n {
		if err := t.item(kind, depth+1); err != nil {
			return err
		}
	}
	return nil
}
