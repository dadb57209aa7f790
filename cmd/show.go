package cmd

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tablectl/snapshot"
	"tablectl/table"
)

func (a *app) openForShow(cmd *cobra.Command, args []string) (*table.Table, error) {
	location, err := a.config.location(args)
	if err != nil {
		return nil, err
	}
	return table.Load(cmd.Context(), a.files, location, nil)
}

// rows prints aligned columns.
func (a *app) rows(head string, rows []string) error {
	w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, head)
	for _, r := range rows {
		fmt.Fprintln(w, r)
	}
	return w.Flush()
}

// fileJSON is a live data file.
type fileJSON struct {
	Partition   map[string]any `json:"partition"`
	Bucket      int32          `json:"bucket"`
	Level       int32          `json:"level"`
	Name        string         `json:"file_name"`
	Size        int64          `json:"file_size"`
	Rows        int64          `json:"row_count"`
	SchemaID    int64          `json:"schema_id"`
	MinSequence int64          `json:"min_sequence_number"`
	MaxSequence int64          `json:"max_sequence_number"`
}

func (a *app) filesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "files [TABLE]",
		Short: "List the live data files of the latest snapshot",
		Args:  tableArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.openForShow(cmd, args)
			if err != nil {
				return err
			}
			filter, err := a.filter(cmd, t)
			if err != nil {
				return err
			}
			return a.showFiles(cmd, t, filter)
		},
	}
	c.Flags().StringArray("where", nil, "partition filter; repeated ones are combined with AND")
	c.Flags().StringArray("filter-json", nil, "the same as a dict")
	return c
}

func (a *app) showFiles(cmd *cobra.Command, t *table.Table, filter table.Filter) error {
	s, err := snapshot.Latest(cmd.Context(), t)
	if err != nil {
		return err
	}
	var buckets []snapshot.Bucket
	if s != nil {
		if buckets, err = snapshot.LiveFiles(cmd.Context(), t, s, filter); err != nil {
			return err
		}
	}
	if a.format == "json" {
		document := struct {
			header
			Table    string     `json:"table"`
			Snapshot *int64     `json:"snapshot"`
			Files    []fileJSON `json:"files"`
		}{newHeader("Files"), t.Name(), nil, []fileJSON{}}
		if s != nil {
			document.Snapshot = &s.ID
		}
		for _, b := range buckets {
			for _, e := range b.Files {
				document.Files = append(document.Files, fileJSON{
					Partition: partitionJSON(t, b.Partition), Bucket: b.Number, Level: e.File.Level, Name: e.File.FileName,
					Size: e.File.FileSize, Rows: e.File.RowCount, SchemaID: e.File.SchemaID,
					MinSequence: e.File.MinSequenceNumber, MaxSequence: e.File.MaxSequenceNumber,
				})
			}
		}
		return a.writeJSON(document)
	}
	var rows []string
	for _, b := range buckets {
		for _, e := range b.Files {
			rows = append(rows, strings.Join([]string{
				orDash(t.PartitionName(b.Partition)), fmt.Sprint(b.Number), fmt.Sprint(e.File.Level),
				fmt.Sprint(e.File.RowCount), fmt.Sprint(e.File.FileSize), e.File.FileName,
			}, "\t"))
		}
	}
	return a.rows("PARTITION\tBUCKET\tLEVEL\tROWS\tBYTES\tFILE", rows)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (a *app) snapshotsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "snapshots [TABLE]",
		Short: "List the snapshots of a table",
		Args:  tableArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.openForShow(cmd, args)
			if err != nil {
				return err
			}
			all, err := snapshot.All(cmd.Context(), t)
			if err != nil {
				return err
			}
			if a.format == "json" {
				if all == nil {
					all = []*snapshot.Snapshot{}
				}
				return a.writeJSON(struct {
					header
					Table     string               `json:"table"`
					Snapshots []*snapshot.Snapshot `json:"snapshots"`
				}{newHeader("Snapshots"), t.Name(), all})
			}
			rows := make([]string, len(all))
			for i, s := range all {
				rows[i] = fmt.Sprintf("%d\t%s\t%s\t%d\t%d\t%s", s.ID, s.CommitKind,
					time.UnixMilli(s.TimeMillis).UTC().Format(time.RFC3339), s.DeltaRecordCount, s.TotalRecordCount, s.CommitUser)
			}
			return a.rows("ID\tKIND\tTIME\tDELTA ROWS\tTOTAL ROWS\tCOMMIT USER", rows)
		},
	}
}
