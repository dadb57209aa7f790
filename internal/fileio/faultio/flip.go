package faultio

import (
	"context"

	"tablectl/internal/fileio"
)

// Flipping is a store that changes one bit of what is written and says nothing, as
// broken memory or a broken disk does.
type Flipping struct {
	fileio.FileIO
	Match func(path string) bool // the files that this happens to
	At    int64                  // the byte
}

// Create implements fileio.FileIO.
func (f Flipping) Create(ctx context.Context, path string) (fileio.Writer, error) {
	w, err := f.FileIO.Create(ctx, path)
	if err != nil || !f.Match(path) {
		return w, err
	}
	return &flippingWriter{Writer: w, left: f.At}, nil
}

type flippingWriter struct {
	fileio.Writer
	left int64 // bytes before the one that is changed
}

func (w *flippingWriter) Write(p []byte) (int, error) {
	at := w.left
	w.left -= int64(len(p))
	if at < 0 || at >= int64(len(p)) {
		return w.Writer.Write(p)
	}
	broken := append([]byte{}, p...)
	broken[at] ^= 1 << (at % 8)
	return w.Writer.Write(broken)
}
