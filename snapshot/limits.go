package snapshot

import (
	"fmt"
	"unsafe"
)

// Limits on what metadata may claim. They are far beyond any table, and low enough
// that sums of what is within them do not overflow.
const (
	maxRows  = 1 << 56 // of a table
	maxBytes = 1 << 60 // of a table: an exabyte
	maxID    = 1 << 56 // of snapshots, schemas and rows; one is added to them

	// The rows of an Avro file are held in memory. Those that writers make take up to
	// some fifty times their compressed size; a file made for it could take a
	// hundred thousand times as much.
	maxHeld      = 16 << 20 // bytes that any file may take
	maxHeldRatio = 256      // and further ones, for each byte of the file
	maxHeldFile  = 1 << 40  // bytes of a manifest; sizes of manifests are added up
)

// tally adds up data files.
type tally struct{ rows, bytes int64 }

// add refuses a file, or a sum, of a size that no table has. An error leaves the tally
// as it is.
func (t *tally) add(f *DataFile) error {
	switch {
	case f.RowCount < 0 || f.RowCount > maxRows || f.FileSize < 0 || f.FileSize > maxBytes:
		return fmt.Errorf("data file %q has %d rows and %d bytes", f.FileName, f.RowCount, f.FileSize)
	case f.RowCount > maxRows-t.rows:
		return fmt.Errorf("with data file %q there are more than %d rows", f.FileName, int64(maxRows))
	case f.FileSize > maxBytes-t.bytes:
		return fmt.Errorf("with data file %q there are more than %d bytes of data", f.FileName, int64(maxBytes))
	}
	t.rows, t.bytes = t.rows+f.RowCount, t.bytes+f.FileSize
	return nil
}

// held adds up what the rows of an Avro file take in memory.
type held struct{ bytes, most int64 }

func newHeld(fileSize int64) *held {
	return &held{most: maxHeld + maxHeldRatio*min(fileSize, maxBytes/maxHeldRatio)}
}

func (h *held) add(bytes int64) error {
	if h.bytes += bytes; h.bytes > h.most {
		return fmt.Errorf("its rows take more than %d bytes of memory, which is too much for its size; it was made to take them, or is damaged", h.most)
	}
	return nil
}

// weigher is a row that knows how much memory it takes.
type weigher interface{ weight() int64 }

func (e *indexEntry) weight() int64 {
	return int64(unsafe.Sizeof(*e)) + int64(len(e.IndexType)+len(e.FileName))
}

func (m *ManifestFile) weight() int64 {
	return int64(unsafe.Sizeof(*m)) + int64(len(m.FileName)) + m.PartitionStats.weight() + texts(m.ExtraFiles)
}

func (e *ManifestEntry) weight() int64 {
	f := &e.File
	n := int64(unsafe.Sizeof(*e)) + int64(len(e.Partition)+len(f.FileName)+len(f.MinKey)+len(f.MaxKey)+len(f.EmbeddedFileIndex))
	if f.ExternalPath != nil {
		n += int64(len(*f.ExternalPath))
	}
	return n + f.KeyStats.weight() + f.ValueStats.weight() + texts(f.ExtraFiles) + texts(f.ValueStatsCols) + texts(f.WriteCols) + 8*int64(len(f.WriteColsSequences))
}

func (s *SimpleStats) weight() int64 {
	const count = 16 // a pointer and, mostly, what it points to
	return int64(len(s.Min)+len(s.Max)) + count*int64(len(s.NullCounts))
}

func texts(list []string) int64 {
	n := int64(unsafe.Sizeof("")) * int64(len(list))
	for _, s := range list {
		n += int64(len(s))
	}
	return n
}
