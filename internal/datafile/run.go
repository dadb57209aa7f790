package datafile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/parquet"
)

// run is a sorted run while it is merged: files whose keys ascend from each to
// the next. Its leaves are read independently, so a file is opened by the first of
// its cursors that gets there and closed when the last one has left.
type run struct {
	inputs  []Input
	target  *target
	open    func(in Input) (*openedInput, error)
	cursors int   // that read the run
	window  int64 // rows that each of them takes at a time

	mu    sync.Mutex
	files []*runFile // by input; nil before it is opened and after it is closed
}

type runFile struct {
	*openedInput
	plans []plan
	left  int // cursors that are done with it
}

// newRun makes a run that takes its share.
func newRun(ctx context.Context, t *target, inputs []Input, s share) *run {
	return &run{
		inputs: inputs, target: t, window: windowRows, files: make([]*runFile, len(inputs)),
		open: func(in Input) (*openedInput, error) { return openInput(ctx, in, s) },
	}
}

// file opens a file unless it is open.
func (r *run) file(i int) (*runFile, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files[i] != nil {
		return r.files[i], nil
	}
	var f *runFile
	err := guard(r.inputs[i].Name, func() error {
		opened, err := r.open(r.inputs[i])
		if err != nil {
			return err
		}
		f = &runFile{openedInput: opened}
		f.plans, err = align(r.target, r.inputs[i], opened.parquet.MetaData().Schema)
		return err
	})
	if err != nil && f != nil {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, err
	}
	r.files[i] = f
	return f, nil
}

// leave is called by each cursor once for each file.
func (r *run) leave(i int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.files[i]
	if f.left++; f.left < r.cursors {
		return nil
	}
	r.files[i] = nil
	return f.Close()
}

// Close closes the files that are open.
func (r *run) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for i, f := range r.files {
		if f != nil {
			errs = append(errs, f.Close())
			r.files[i] = nil
		}
	}
	return errors.Join(errs...)
}

// cursor reads one leaf of a run, forward, through a window.
type cursor[T parquet.ColumnTypes] struct {
	run  *run
	leaf int // of the target
	win  window[T]
	keep bool // keep the last row when the window moves on

	index int // file
	group int // the next row group of it
	file  *runFile
	mover mover // nil when the cursor is parked
	rows  int64 // of the open row group that are not in the window yet
}

func newCursor[T parquet.ColumnTypes](r *run, index int, e encoding[T], keep bool) *cursor[T] {
	r.cursors++
	optional := !r.target.fields[e.leaf.column].Type.NotNull
	return &cursor[T]{run: r, leaf: index, win: window[T]{encoding: e, nested: e.maxRep > 0, optional: optional}, keep: keep}
}

// seek moves the window on until it holds the row, which is counted over the
// whole run. It reports false behind the last row.
func (c *cursor[T]) seek(row int64) (bool, error) {
	for row >= c.win.end() {
		more, err := c.fill()
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// drain moves to the end of the run, so that everything is looked at.
func (c *cursor[T]) drain() error {
	for {
		if more, err := c.fill(); err != nil || !more {
			return err
		}
	}
}

// park lets go of what the cursor holds but for its window. It goes on where it was.
func (c *cursor[T]) park() {
	if c.mover != nil {
		c.mover.release()
	}
	c.mover = nil
}

// fill reads the next rows into the window.
func (c *cursor[T]) fill() (more bool, err error) {
	for c.rows == 0 {
		if c.index == len(c.run.inputs) {
			return false, nil
		}
		if err := guard(c.run.inputs[c.index].Name, c.advance); err != nil {
			return false, err
		}
	}
	n := min(c.rows, c.run.window)
	err = guard(c.run.inputs[c.index].Name, func() error {
		c.win.slide(c.keep)
		if err := c.resume(); err != nil {
			return err
		}
		if err := c.mover.move(n); err != nil {
			return fmt.Errorf("column %s: %w", c.win.leaf.name, err)
		}
		if c.rows -= n; c.rows == 0 {
			return c.end()
		}
		return nil
	})
	return true, err
}

// resume opens the row group again after the cursor was parked in it.
func (c *cursor[T]) resume() error {
	if c.mover != nil {
		return nil
	}
	if err := c.makeMover(); err != nil {
		return err
	}
	g := c.file.rowGroup(c.group - 1)
	if err := c.mover.openAt(g, g.NumRows()-c.rows); err != nil {
		return fmt.Errorf("column %s: row group %d: %w", c.win.leaf.name, c.group-1, err)
	}
	return nil
}

func (c *cursor[T]) makeMover() (err error) {
	c.mover, err = c.run.target.mover(c.file.plans[c.leaf], c.file.parquet.MetaData().Schema, &c.win)
	return err
}

func (c *cursor[T]) end() error {
	if err := c.mover.end(); err != nil {
		return fmt.Errorf("row group %d: %w", c.group-1, err)
	}
	return nil
}

// advance goes on to the next row group that has rows, or to the next file.
func (c *cursor[T]) advance() error {
	if c.file == nil {
		f, err := c.run.file(c.index)
		if err != nil {
			return err
		}
		c.file, c.group = f, 0
	}
	if c.group == c.file.parquet.NumRowGroups() {
		index := c.index
		c.park()
		c.file, c.index = nil, c.index+1
		return c.run.leave(index)
	}
	if c.mover == nil {
		if err := c.makeMover(); err != nil {
			return err
		}
	}
	g := c.file.rowGroup(c.group)
	if err := c.mover.open(g); err != nil {
		return fmt.Errorf("row group %d: %w", c.group, err)
	}
	c.group++
	if c.rows = g.NumRows(); c.rows == 0 {
		return c.end()
	}
	return nil
}
