package datafile

import (
	"fmt"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/parquet/file"
)

// What the pages that a task holds at the same time may take. Below this nothing is
// refused: pages and dictionaries of writers have about a megabyte, and words of a
// dictionary take more once they are decoded.
const (
	leastPages   = 64 << 20
	pagesPerLeaf = 6 << 20
	pageShares   = 3 // of the memory for readers: large values make few columns large
)

// pageBudget bounds what all open columns of a task hold of their pages, inflated. It
// is there for files whose every page is as large as a page may be, not to save
// memory, and nil where there is no bound.
type pageBudget struct {
	limit int64
	held  atomic.Int64
}

func newPageBudget(memory int64, leaves, runs int) *pageBudget {
	if memory <= 0 {
		return nil
	}
	return &pageBudget{limit: max(pageShares*memory, leastPages, pagesPerLeaf*int64(leaves)*int64(runs))}
}

// page is how large one page may be.
func (b *pageBudget) page() int64 {
	if b == nil {
		return maxPage
	}
	return min(b.limit, maxPage)
}

// take changes what is held by n bytes.
func (b *pageBudget) take(n int64) error {
	if b == nil || n == 0 {
		return nil
	}
	if held := b.held.Add(n); n > 0 && held > b.limit {
		return fmt.Errorf("its pages are so large that those of all open columns take %d MiB, at most %d MiB fit into the memory of the run; allow more memory, or run fewer tasks at once: %w",
			held>>20, b.limit>>20, ErrUnsupported)
	}
	return nil
}

// rowGroup is a row group of an input, with what its pages may take.
type rowGroup struct {
	*file.RowGroupReader
	pages *pageBudget
}

// heldPages is what one column chunk holds: a buffer for pages, which grows to the
// largest one, and a dictionary.
type heldPages struct {
	budget     *pageBudget
	valueSize  int64 // bytes of a decoded value, without what it points to
	data, dict int64
}

// hold counts a page that was read.
func (h *heldPages) hold(page file.Page) error {
	n := int64(len(page.Data()))
	if page.Type() == file.PageTypeDictionaryPage {
		n += h.valueSize * min(int64(page.NumValues()), n/min(h.valueSize, 4))
		h.dict, n = n, n-h.dict
	} else {
		n = max(n-h.data, 0)
		h.data += n
	}
	return h.budget.take(n)
}

// release lets go of all of it.
func (h *heldPages) release() {
	_ = h.budget.take(-h.data - h.dict)
	h.data, h.dict = 0, 0
}
