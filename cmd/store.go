//go:build !failpoints

package cmd

import "tablectl/internal/fileio"

// store is where tables are.
func store() fileio.FileIO { return fileio.Local{} }
