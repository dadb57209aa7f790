package cmd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"tablectl/snapshot"
	"tablectl/table"
)

func (a *app) inspectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect [TABLE] --leftovers",
		Short: "List files that killed runs have left in a table",
		Long: `inspect --leftovers lists the files of a table that no snapshot, tag or changelog
of any branch uses, as runs leave them that were killed, of tablectl or of any
other writer. It looks at the table as a whole, whichever branch is named.

It removes nothing. A file younger than a day may belong to a writer that has not
committed yet: it is in use as soon as that writer commits. So age is shown, and
whether it is more than --older-than; take only files that old for garbage, and
only when no writer has been at work for longer.

A table that cannot be wholly read is an error, since what its unreadable part
uses would look like leftovers.`,
		Example: `  tablectl inspect /warehouse/shop.db/orders --leftovers
  tablectl inspect /warehouse/shop.db/orders --leftovers --older-than 72h -o json`,
		Args: tableArg,
		RunE: a.runInspect,
	}
	c.Flags().Bool("leftovers", false, "list the files that nothing uses (all that inspect can show so far)")
	c.Flags().String("older-than", "24h", "age, such as 36h, from which a file counts as old")
	return c
}

// inspection is the JSON document of inspect.
type inspection struct {
	header
	Table            string         `json:"table"`
	OlderThanSeconds int64          `json:"older_than_seconds"`
	Leftovers        []leftoverJSON `json:"leftovers"`
}

// leftoverJSON is a file that nothing uses.
type leftoverJSON struct {
	Path       string                `json:"path"`
	Kind       snapshot.LeftoverKind `json:"kind"`
	Size       int64                 `json:"file_size"`
	Modified   string                `json:"modified"`
	AgeSeconds int64                 `json:"age_seconds"`
	Old        bool                  `json:"old"`
}

func (a *app) runInspect(cmd *cobra.Command, args []string) error {
	if asked, err := a.config.flag("leftovers"); err != nil || !asked {
		return errors.Join(err, usageError(errors.New("inspect can show nothing but --leftovers so far: give that flag")))
	}
	olderThan, err := time.ParseDuration(a.config.text("older-than"))
	if err != nil || olderThan < 0 {
		return usageError(fmt.Errorf("--older-than %s: expected a duration such as 36h", a.config.text("older-than")))
	}
	location, err := a.config.location(args)
	if err != nil {
		return err
	}
	t, err := table.Load(cmd.Context(), a.files, location, nil)
	if err != nil {
		return err
	}
	found, err := snapshot.Leftovers(cmd.Context(), t)
	if err != nil {
		return err
	}
	result := newInspection(t, found, olderThan, time.Now())
	if a.format == "json" {
		return a.writeJSON(result)
	}
	return a.showLeftovers(result, olderThan)
}

func newInspection(t *table.Table, found []snapshot.Leftover, olderThan time.Duration, now time.Time) inspection {
	result := inspection{
		header: newHeader("Inspection"), Table: t.Name(), OlderThanSeconds: int64(olderThan.Seconds()), Leftovers: []leftoverJSON{},
	}
	for _, l := range found {
		age := max(now.Sub(l.ModTime), 0) // clocks differ
		result.Leftovers = append(result.Leftovers, leftoverJSON{
			Path: l.Path, Kind: l.Kind, Size: l.Size, Modified: l.ModTime.UTC().Format(time.RFC3339),
			AgeSeconds: int64(age.Seconds()), Old: age > olderThan,
		})
	}
	return result
}

func (a *app) showLeftovers(r inspection, olderThan time.Duration) error {
	if len(r.Leftovers) == 0 {
		_, err := fmt.Fprintf(a.stdout, "%s: every file is in use\n", r.Table)
		return err
	}
	rows := make([]string, len(r.Leftovers))
	var size uint64
	old := 0
	for i, l := range r.Leftovers {
		size += uint64(l.Size)
		word := "no"
		if l.Old {
			word = "yes"
			old++
		}
		rows[i] = strings.Join([]string{
			(time.Duration(l.AgeSeconds) * time.Second).String(), word, strconv.FormatInt(l.Size, 10), string(l.Kind), printable(l.Path),
		}, "\t")
	}
	if err := a.rows("AGE\tOLD\tBYTES\tKIND\tFILE", rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%s: nothing uses %s (%s), %d older than %s; nothing was removed\n"+
		"a younger file may belong to a writer that has not committed yet\n",
		r.Table, plural(len(r.Leftovers), "file"), humanize.IBytes(size), old, olderThan)
	return err
}

// printable quotes a name that would spoil the terminal or the table.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
