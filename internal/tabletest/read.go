package tabletest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"

	"tablectl/internal/types"
)

// ReadFile reads all rows of a Parquet file, in order. The fields are those of
// the schema that the file was written with; the file's columns are found by their
// names, at every depth. A column that the file lacks is null.
func ReadFile(data []byte, fields []types.Field) ([][]any, error) {
	f, err := OpenFile(data)
	if err != nil {
		return nil, err
	}
	top := newNode(f.Root(), 0, 0)
	columns := make([]*node, len(fields))
	for i, field := range fields {
		columns[i] = top.member(field.Name)
	}
	var rows [][]any
	for i, group := range f.RowGroups() {
		leaves, err := readLeaves(group)
		if err != nil {
			return nil, fmt.Errorf("row group %d: %w", i, err)
		}
		for range group.NumRows() {
			entries, err := nextRow(leaves)
			if err != nil {
				return nil, fmt.Errorf("row %d: %w", len(rows), err)
			}
			row := make([]any, len(fields))
			for j, field := range fields {
				if columns[j] == nil {
					continue
				}
				if row[j], err = columns[j].cell(field.Type, entries); err != nil {
					return nil, fmt.Errorf("row %d, column %s: %w", len(rows), field.Name, err)
				}
			}
			rows = append(rows, row)
		}
		for j, l := range leaves {
			if len(l) > 0 {
				return nil, fmt.Errorf("row group %d: column %d has %d entries beyond its rows", i, j, len(l))
			}
		}
	}
	if int64(len(rows)) != f.NumRows() {
		return nil, fmt.Errorf("%d rows in the row groups, %d in the footer", len(rows), f.NumRows())
	}
	return rows, nil
}

// OpenFile opens a file, with whatever codec, to read its pages.
func OpenFile(data []byte) (*parquet.File, error) {
	data, err := withoutLZ4(data)
	if err != nil {
		return nil, err
	}
	return parquet.OpenFile(bytes.NewReader(data), int64(len(data)), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
}

// readLeaves reads all entries of every leaf of a row group.
func readLeaves(group parquet.RowGroup) ([][]parquet.Value, error) {
	chunks := group.ColumnChunks()
	leaves := make([][]parquet.Value, len(chunks))
	for i, chunk := range chunks {
		pages, err := Pages(chunk)
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i, err)
		}
		leaves[i] = slices.Concat(pages...)
	}
	return leaves, nil
}

// Pages reads the entries of a column chunk, page by page.
func Pages(chunk parquet.ColumnChunk) (all [][]parquet.Value, err error) {
	pages := chunk.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		values := make([]parquet.Value, page.NumValues())
		n, err := page.Values().ReadValues(values)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < len(values) {
			return nil, fmt.Errorf("%d of %d entries of a page", n, len(values))
		}
		for i, v := range values {
			values[i] = v.Clone()
		}
		all = append(all, values)
		parquet.Release(page)
	}
}

// nextRow takes the entries of the next row off every leaf.
func nextRow(leaves [][]parquet.Value) ([][]parquet.Value, error) {
	row := make([][]parquet.Value, len(leaves))
	for i, l := range leaves {
		if len(l) == 0 || l[0].RepetitionLevel() != 0 {
			return nil, fmt.Errorf("column %d has no entry that begins it", i)
		}
		end := 1
		for end < len(l) && l[end].RepetitionLevel() != 0 {
			end++
		}
		row[i], leaves[i] = l[:end], l[end:]
	}
	return row, nil
}

// node is a column of a file, or a group within one.
type node struct {
	name        string
	column      *parquet.Column
	first, last int // its leaves
	def, rep    int // levels of an entry that is present up to here
	kids        []*node
}

func newNode(c *parquet.Column, def, rep int) *node {
	n := &node{name: c.Name(), column: c, def: def, rep: rep}
	if len(c.Path()) > 0 {
		switch {
		case c.Optional():
			n.def++
		case c.Repeated():
			n.def, n.rep = n.def+1, n.rep+1
		}
	}
	if c.Leaf() {
		n.first, n.last = c.Index(), c.Index()+1
		return n
	}
	for i, k := range c.Columns() {
		kid := newNode(k, n.def, n.rep)
		n.kids = append(n.kids, kid)
		if i == 0 {
			n.first = kid.first
		}
		n.last = kid.last
	}
	return n
}

func (n *node) member(name string) *node {
	for _, k := range n.kids {
		if k.name == name {
			return k
		}
	}
	return nil
}

// cell puts together one value from the entries of all leaves that belong to it.
// Outside of the node's own leaves, entries do not matter.
func (n *node) cell(t types.Type, entries [][]parquet.Value) (any, error) {
	if n.last <= n.first {
		return nil, fmt.Errorf("%s has no leaf", n.name)
	}
	present := entries[n.first][0].DefinitionLevel() >= n.def
	for leaf := n.first; leaf < n.last; leaf++ {
		if (entries[leaf][0].DefinitionLevel() >= n.def) != present {
			return nil, fmt.Errorf("the leaves of %s do not agree on whether it is null", n.name)
		}
	}
	if !present {
		return nil, nil
	}
	return n.content(t, entries)
}

// content is the value of a node that is not null.
func (n *node) content(t types.Type, entries [][]parquet.Value) (any, error) {
	switch t.Kind {
	case types.Array:
		if len(n.kids) != 1 || !n.kids[0].column.Repeated() {
			return nil, fmt.Errorf("%s is not a list", n.name)
		}
		repeated := n.kids[0]
		list := List{}
		err := n.each(repeated, entries, func(part [][]parquet.Value) error {
			var e any
			var err error
			if len(repeated.kids) == 1 {
				e, err = repeated.kids[0].cell(*t.Element, part)
			} else {
				e, err = repeated.content(*t.Element, part)
			}
			list = append(list, e)
			return err
		})
		return list, err
	case types.Map, types.Multiset:
		if len(n.kids) != 1 || len(n.kids[0].kids) != 2 || !n.kids[0].column.Repeated() {
			return nil, fmt.Errorf("%s is not a map", n.name)
		}
		repeated := n.kids[0]
		key, value := MapTypes(t)
		entriesOf := Map{}
		err := n.each(repeated, entries, func(part [][]parquet.Value) error {
			k, err := repeated.kids[0].cell(key, part)
			if err != nil {
				return err
			}
			v, err := repeated.kids[1].cell(value, part)
			entriesOf = append(entriesOf, Pair{k, v})
			return err
		})
		return entriesOf, err
	case types.Row:
		s := make(Struct, len(t.Fields))
		for i, f := range t.Fields {
			m := n.member(f.Name)
			if m == nil {
				return nil, fmt.Errorf("%s has no member %s", n.name, f.Name)
			}
			var err error
			if s[i], err = m.cell(f.Type, entries); err != nil {
				return nil, err
			}
		}
		return s, nil
	case types.Variant:
		value, metadata := n.member("value"), n.member("metadata")
		if value == nil || metadata == nil {
			return nil, fmt.Errorf("%s is not a variant", n.name)
		}
		return Variant{Value: entries[value.first][0].ByteArray(), Metadata: entries[metadata.first][0].ByteArray()}, nil
	}
	if !n.column.Leaf() {
		return nil, fmt.Errorf("%s is a group, not a %s", n.name, t)
	}
	return decodeScalar(t, n.column.Type(), entries[n.first][0])
}

// each calls f with the entries of every repetition.
func (n *node) each(repeated *node, entries [][]parquet.Value, f func([][]parquet.Value) error) error {
	if entries[n.first][0].DefinitionLevel() < repeated.def {
		for _, l := range entries[n.first:n.last] {
			if len(l) != 1 || l[0].DefinitionLevel() >= repeated.def {
				return fmt.Errorf("the leaves of %s do not agree on whether it is empty", n.name)
			}
		}
		return nil
	}
	rest := make([][]parquet.Value, len(entries))
	copy(rest[n.first:n.last], entries[n.first:n.last])
	part := make([][]parquet.Value, len(entries))
	for len(rest[n.first]) > 0 {
		for leaf := n.first; leaf < n.last; leaf++ {
			l := rest[leaf]
			if len(l) == 0 {
				return fmt.Errorf("the leaves of %s do not agree on how often it repeats", n.name)
			}
			end := 1
			for end < len(l) && l[end].RepetitionLevel() > repeated.rep {
				end++
			}
			part[leaf], rest[leaf] = l[:end], l[end:]
		}
		if err := f(part); err != nil {
			return err
		}
	}
	for leaf := n.first; leaf < n.last; leaf++ {
		if len(rest[leaf]) > 0 {
			return fmt.Errorf("the leaves of %s do not agree on how often it repeats", n.name)
		}
	}
	return nil
}
