//go:build failpoints

package cmd

import (
	"os"

	"tablectl/internal/fileio"
	"tablectl/internal/fileio/failpoint"
)

// store is where tables are, behind the failpoints of TABLECTL_FAILPOINT. Only
// tests build this.
func store() fileio.FileIO {
	files, err := failpoint.Wrap(os.Getenv("TABLECTL_FAILPOINT"))
	if err != nil {
		panic(err)
	}
	return files
}
