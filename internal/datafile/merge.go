package datafile

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/metadata"

	"tablectl/internal/merge"
	"tablectl/internal/types"
)

// MergeSpec says how rows with the same key become one. Columns are given by their
// index in the Fields of the Spec.
type MergeSpec struct {
	Keys     []int // what rows are sorted by
	Sequence int   // the column with the sequence number
	Kind     int   // the column with the kind
	// UserSequence are the columns that say which of two rows is the newer one,
	// before the sequence number does.
	UserSequence []int
	Descending   bool // the least of them is the newest
	Engine       *merge.Engine
	Values       int // the first of the columns that the engine knows; it is the index of all that follow
	DropDelete   bool
	// Expired reports whether a row counts as absent, by the value of the column
	// ExpireColumn. It may be nil. Without DropDelete no row is absent that may replace
	// an older one in a file that is not merged.
	Expired      func(v types.Value) bool
	ExpireColumn int
}

// Merge writes the rows of sorted runs in the order of their keys, those with the
// same key merged into one. A run is a list of files whose rows are strictly
// ascending by key, within each and from each to the next. What is returned is as
// for Concat.
func Merge(ctx context.Context, runs [][]Input, m MergeSpec, spec Spec) (outputs []Output, err error) {
	if len(runs) > maxRuns {
		return nil, fmt.Errorf("%d sorted runs at once, at most %d are possible", len(runs), maxRuns)
	}
	w, err := newWriter(spec)
	if err != nil {
		return nil, err
	}
	w.keys = m.Keys
	g := &merger{writer: w, spec: m}
	all := share{inputs: len(runs), pages: newPageBudget(spec.ReadMemory, len(w.target.leaves), len(runs))}
	for _, inputs := range runs {
		g.runs = append(g.runs, newRun(ctx, w.target, inputs, all))
	}
	err = guard("", func() error { return g.run(ctx) })
	for _, r := range g.runs {
		err = errors.Join(err, r.Close())
	}
	if err == nil {
		err = w.finish()
	}
	if err == nil {
		err = g.checkRows(w.outputs)
	}
	if err != nil {
		w.abandon()
	}
	return w.outputs, err
}

// checkRows is the last line of defence: every record of the inputs was looked at,
// and every key that is left has a row.
func (g *merger) checkRows(outputs []Output) error {
	var records, rows int64
	for _, r := range g.runs {
		for _, in := range r.inputs {
			records += in.Rows
		}
	}
	for _, o := range outputs {
		rows += o.Rows
	}
	if n := g.picked; n.records != records || n.keys-n.gone != rows {
		return fmt.Errorf("internal error: merged %d of %d records into %d rows, of %d keys of which %d are gone", n.records, records, rows, n.keys, n.gone)
	}
	return nil
}

// merger merges runs: a picker decides a batch of rows by looking at few columns,
// then every leaf gathers its values.
type merger struct {
	*writer
	spec   MergeSpec
	runs   []*run
	leaves []placedLeaf
	picked *counts

	rowBytes int64 // uncompressed, estimated
	// parked says that the leaves let go of their readers after each batch, as all
	// of them together would hold too much.
	parked bool
}

// placedLeaf is a leaf with the class that its rows are selected by.
type placedLeaf struct {
	mergedLeaf
	class int
}

func (g *merger) run(ctx context.Context) error {
	p, err := newPicker(g.spec, g.target, g.runs)
	if err != nil {
		return err
	}
	g.picked = &p.counts
	if err := g.makeLeaves(); err != nil {
		return err
	}
	if err := g.estimate(); err != nil {
		return err
	}
	if g.parked {
		for _, r := range g.runs {
			r.window = parkedRows
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := p.pick(int(g.next()))
		if err != nil {
			return err
		}
		if b.rows() == 0 {
			break
		}
		if err := g.begin(ctx, g.dictionary); err != nil {
			return err
		}
		if err := g.write(b); err != nil {
			return err
		}
		g.note(b)
		if err := g.moved(int64(b.rows())); err != nil {
			return err
		}
	}
	if err := p.drain(); err != nil {
		return err
	}
	return inParallel(g.writer.spec.Workers, "", g.leaves, func(l placedLeaf) error { return l.drain() })
}

// makeLeaves makes what gathers the leaves; sequence numbers and kinds come from
// the picker.
func (g *merger) makeLeaves() error {
	for i := 0; i < len(g.target.leaves); {
		l := g.target.leaves[i]
		next := i + 1
		for next < len(g.target.leaves) && g.target.leaves[next].column == l.column {
			next++
		}
		var err error
		if l.column != g.spec.Sequence && l.column != g.spec.Kind {
			err = g.makeColumn(l.column, i, next)
		}
		if err != nil {
			return err
		}
		i = next
	}
	return nil
}

// makeColumn makes what gathers the leaves from one to another, which are a column.
func (g *merger) makeColumn(column, from, to int) error {
	c := merge.Column{Function: merge.Take()}
	if column >= g.spec.Values {
		c = g.spec.Engine.Columns[column-g.spec.Values]
	}
	together := !g.target.leaves[from].top && !c.Function.Chooses()
	own := c.Function
	if together {
		own = merge.Take()
	}
	var leaves []gatheredLeaf
	for i := from; i < to; i++ {
		descr := g.target.schema.Column(i)
		kind, err := physicalOf(descr)
		if err != nil {
			return err
		}
		l, err := kind.merged(g.target.leaves[i], descr, i, g.runs, own, g.sinks[i])
		if err != nil {
			return err
		}
		leaves = append(leaves, l)
	}
	if together {
		f := g.target.fields[column]
		m, err := newNestedMerge(f.Name, f.Type, leaves, c.Function)
		g.leaves = append(g.leaves, placedLeaf{m, c.Class})
		return err
	}
	for _, l := range leaves {
		g.leaves = append(g.leaves, placedLeaf{l, c.Class})
	}
	return nil
}

// next is how many rows to decide about next. When readers are opened for each
// batch, it is worth to decide about many.
func (g *merger) next() int64 {
	if !g.parked {
		return g.batch(maxBatch, g.rowBytes, batchBytes)
	}
	bytes := int64(pickedRow + foldedRow*g.spec.Engine.Classes())
	rows := g.batch(parkedBatch, bytes, g.writer.spec.ReadMemory)
	if g.perRow > 0 {
		// Rather than come near the end of a row group in ever smaller steps, go a
		// little beyond.
		rows = max(rows, min(parkedBatch, g.writer.spec.RowGroupSize/8/g.perRow)/rollStep*rollStep-g.rows%rollStep)
	}
	return rows
}

// What a row takes that is decided and not written yet: in any case, and in each
// class where its columns are computed.
const (
	pickedRow = 32
	foldedRow = 160

	parkedBatch = 1_000_000 // rows
)

// heldBy estimates what is held to read all columns of a file at the same time: a
// page of each, compressed and plain, and what is decoded of it.
func heldBy(md *metadata.FileMetaData) int64 {
	const page, pageRows, decoded = 1 << 20, 20_000, 64 << 10 // as the reference writes them
	var held int64
	if len(md.RowGroups) == 0 {
		return 0
	}
	rg := md.RowGroup(0)
	for c := range rg.NumColumns() {
		chunk, err := rg.ColumnChunk(c)
		if err != nil {
			continue
		}
		part := func(bytes int64) int64 { return min(bytes, page, bytes/max(rg.NumRows()/pageRows, 1)) }
		held += part(chunk.TotalUncompressedSize()) + part(chunk.TotalCompressedSize()) + decoded
	}
	return held
}

// estimate learns from the first file of each run how large rows are, how well they
// compress, and what it takes to read all runs at the same time.
func (g *merger) estimate() error {
	var plain, compressed, rows, held int64
	for _, r := range g.runs {
		f, err := r.file(0)
		if err != nil {
			return err
		}
		held += heldBy(f.parquet.MetaData())
		for i := range f.parquet.NumRowGroups() {
			p, c := sizes(f.parquet.MetaData().RowGroup(i))
			plain, compressed, rows = plain+p, compressed+c, rows+f.parquet.MetaData().RowGroup(i).NumRows()
		}
	}
	g.parked = g.writer.spec.ReadMemory > 0 && held > g.writer.spec.ReadMemory
	g.rowBytes = plain / max(rows, 1)
	g.ratio = min(float64(compressed)/float64(max(plain, 1)), 1)
	return nil
}

// dictionary takes after the largest of the files that are open.
func (g *merger) dictionary(leaf int) bool {
	var largest *runFile
	for _, r := range g.runs {
		for _, f := range r.files {
			if f != nil && f.parquet.NumRowGroups() > 0 && (largest == nil || f.size > largest.size) {
				largest = f
			}
		}
	}
	return largest != nil && dictionaryOf(largest.plans[leaf], largest.parquet.MetaData(), 0)
}

func (g *merger) write(b *batch) error {
	if err := g.sinks[g.target.leafOf(g.spec.Sequence)].(typedTaker[int64]).write(b.sequences, nil, nil); err != nil {
		return err
	}
	if err := g.sinks[g.target.leafOf(g.spec.Kind)].(typedTaker[int32]).write(b.kinds, nil, nil); err != nil {
		return err
	}
	return inParallel(g.writer.spec.Workers, "", g.leaves, func(l placedLeaf) error {
		if err := l.write(&b.classes[l.class]); err != nil {
			return err
		}
		if g.parked {
			l.park()
		}
		return nil
	})
}

// note keeps what a file's metadata says of its sequence numbers and kinds.
func (g *merger) note(b *batch) {
	o := &g.outputs[len(g.outputs)-1]
	if g.rows == 0 {
		o.MinSequence, o.MaxSequence = b.sequences[0], b.sequences[0]
	}
	for i, s := range b.sequences {
		o.MinSequence, o.MaxSequence = min(o.MinSequence, s), max(o.MaxSequence, s)
		if merge.Kind(b.kinds[i]).Retracts() {
			o.Deletes++
		}
	}
}
