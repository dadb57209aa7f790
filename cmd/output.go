package cmd

import (
	"encoding/json"
	"strconv"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
	"tablectl/table"
)

const apiVersion = "tablectl/v1"

// header begins every JSON document.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

func newHeader(kind string) header { return header{apiVersion, kind} }

// writeJSON writes a document to standard output.
func (a *app) writeJSON(document any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(document)
}

// errorJSON is the member error of a result.
type errorJSON struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint"` // "" where there is none
}

// errorDocument is the result of a command that has none, since it failed.
type errorDocument struct {
	header
	Error *errorJSON `json:"error"`
}

var hints = map[string]string{
	outcomePartly.kind:      "run again for the buckets that are listed",
	outcomeConflict.kind:    "other writers changed the table meanwhile; run again",
	outcomeUnknown.kind:     "look at the latest snapshot before running again; no data file was deleted",
	outcomeUnsupported.kind: "tablectl leaves tables alone that it does not fully understand",
	outcomeVerify.kind:      "the table is as it was; keep it and report what happened: either memory or disk is faulty, or tablectl is",
	outcomeStorage.kind:     "see that the store has space, can be reached and lets you write; then run again",
	outcomeLocked.kind:      "run again when that run is over, or with --on-locked wait or skip; --lock none goes on beside it",
	outcomeNotFound.kind:    "a table is a folder that holds schema/schema-0; db.table is looked for in --warehouse",
}

func newErrorJSON(err error) *errorJSON {
	if err == nil {
		return nil
	}
	kind := outcomeOf(err).kind
	return &errorJSON{Kind: kind, Message: err.Error(), Hint: hints[kind]}
}

// partitionJSON is a partition by column, with numbers and booleans as such and
// everything else as text.
func partitionJSON(t *table.Table, partition []byte) map[string]any {
	fields := t.Schema.PartitionFields()
	values, err := binrow.Decode(partition, t.Schema.PartitionTypes())
	if err != nil {
		return nil
	}
	m := make(map[string]any, len(fields))
	for i, f := range fields {
		switch k := f.Type.Kind; {
		case values[i].Null:
			m[f.Name] = nil
		case k == types.Boolean:
			m[f.Name] = values[i].Int != 0
		case k >= types.TinyInt && k <= types.BigInt:
			m[f.Name] = values[i].Int
		default:
			m[f.Name] = types.Format(f.Type, values[i])
		}
	}
	return m
}

func itoa(n int) string { return strconv.Itoa(n) }
