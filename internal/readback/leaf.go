package readback

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"tablectl/internal/types"
)

const batch = 128 // entries that are taken out of a page at a time

// leaf is one primitive column, read entry by entry.
type leaf struct {
	column *parquet.Column
	decode func(parquet.Value) (types.Value, error)
	pages  *pages
	page   parquet.ValueReader
	left   int64 // entries of the page that are not in the buffer yet
	buffer []parquet.Value
	at     int // in the buffer
}

// open goes to the beginning of a row group.
func (l *leaf) open(f *file, group int) {
	l.pages, l.left, l.buffer, l.at = f.pages(group, l.column), 0, l.buffer[:0], 0
}

// more reports whether there is another entry in the row group; peek is that entry then.
func (l *leaf) more() (bool, error) {
	if l.at < len(l.buffer) {
		return true, nil
	}
	if l.pages == nil {
		return false, nil // before the first row group
	}
	for l.left == 0 {
		page, err := l.pages.next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		l.page, l.left = page.Values(), page.NumValues()
	}
	if l.buffer == nil {
		l.buffer = make([]parquet.Value, batch)
	}
	l.buffer, l.at = l.buffer[:min(l.left, batch)], 0
	n, err := l.page.ReadValues(l.buffer)
	if n < len(l.buffer) {
		l.buffer = l.buffer[:0]
		return false, fmt.Errorf("a page has %d entries fewer than it says: %w", l.left-int64(n), errors.Join(err, errEntries))
	}
	l.left -= int64(n)
	return true, nil
}

func (l *leaf) peek() *parquet.Value { return &l.buffer[l.at] }

// need is more, where there must be another entry.
func (l *leaf) need() error {
	more, err := l.more()
	if err == nil && !more {
		err = fmt.Errorf("the row group has no entry in %v: %w", l.column.Path(), errEntries)
	}
	return err
}

// take passes over an entry, which has to have that repetition level.
func (l *leaf) take(rep int) (*parquet.Value, error) {
	if err := l.need(); err != nil {
		return nil, err
	}
	v := l.peek()
	if v.RepetitionLevel() != rep {
		return nil, fmt.Errorf("repetition level %d in %v, want %d: %w", v.RepetitionLevel(), l.column.Path(), rep, errEntries)
	}
	l.at++
	return v, nil
}
