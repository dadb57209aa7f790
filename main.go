// Command tablectl compacts Apache Paimon tables and shows what is in them.
//
// What happens on `tablectl compact TABLE`:
//
//   - cmd.Main parses the command line, reads the configuration and turns
//     signals into a cancelled context;
//   - lock.Dir.Acquire keeps other runs on this machine off the table;
//   - table.Load opens the table: its latest schema and its options;
//   - compact.Table reads the latest snapshot and its live files
//     (snapshot.Latest, snapshot.LiveFiles), decides what to rewrite
//     (compact.NewPlan), rewrites it (internal/datafile moves the columns) and
//     publishes one COMPACT snapshot (snapshot.Commit);
//   - cmd prints the result, once it is known, and maps the error to an exit
//     code.
package main

import (
	"os"

	"tablectl/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args[1:], os.Stdout, os.Stderr))
}
