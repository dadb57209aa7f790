package merge_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tablectl/internal/merge"
	"tablectl/internal/types"
)

// associative are tables of which Paimon promises that it does not matter which
// versions a compaction merges first, as long as they follow each other. Those
// with kinds take no deletes.
var associative = []struct {
	world
	kinds []merge.Kind
}{
	{world{engine: merge.Deduplicate, columns: "k INT NOT NULL, v STRING"}, nil},
	{world{engine: merge.Deduplicate, columns: "k INT NOT NULL, v STRING", options: "ignore-delete=true"}, nil},
	{world{engine: merge.PartialUpdate, columns: "k INT NOT NULL, a INT, b STRING"}, additions},
	{
		world{
			engine: merge.PartialUpdate, columns: "k INT NOT NULL, a INT, g INT, b STRING, h INT, i INT, c STRING",
			options: "fields.g.sequence-group=b; fields.i,h.sequence-group=c",
		},
		additions,
	},
	{
		world{
			engine: merge.Aggregation,
			columns: "k INT NOT NULL, a INT, b DECIMAL(20,2), c INT, d STRING, e STRING, f STRING, g STRING, h STRING," +
				" i BOOLEAN, j BOOLEAN, l STRING, m STRING",
			options: "fields.a.aggregate-function=sum; fields.b.aggregate-function=sum; fields.c.aggregate-function=product;" +
				" fields.d.aggregate-function=max; fields.e.aggregate-function=min; fields.f.aggregate-function=first_value;" +
				" fields.g.aggregate-function=first_non_null_value; fields.h.aggregate-function=last_value;" +
				" fields.i.aggregate-function=bool_and; fields.j.aggregate-function=bool_or; fields.l.aggregate-function=listagg;" +
				" fields.m.aggregate-function=listagg; fields.m.distinct=true",
		},
		additions,
	},
}

var (
	additions = []merge.Kind{merge.Insert, merge.UpdateAfter}
	every     = []merge.Kind{merge.Insert, merge.UpdateBefore, merge.UpdateAfter, merge.Delete}
)

// drawRecords makes records of one key with small numbers and words, so that equal
// values and equal sequences are common.
func drawRecords(t *rapid.T, fields []types.Field, kinds []merge.Kind) []record {
	var records []record
	for i := range rapid.IntRange(2, 7).Draw(t, "records") {
		r := record{Version: merge.Version{Sequence: int64(i + 1), Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}}
		for _, f := range fields {
			words := map[types.Kind][]string{
				types.Varchar: {"null", "", "a", "b", "a,b", "c,,a"},
				types.Boolean: {"null", "true", "false"},
			}[f.Type.Kind]
			if words == nil {
				words = []string{"null", "0", "1", "2", "3", "-2"}
			}
			word, v := rapid.SampledFrom(words).Draw(t, f.Name), types.NullValue
			if f.Name == "k" {
				word = "1"
			}
			if word != "null" {
				var err error
				if v, err = types.ParseLiteral(f.Type, word); err != nil {
					t.Fatal(err)
				}
			}
			r.row = append(r.row, v)
		}
		records = append(records, r)
	}
	return records
}

// TestMergeOfMerge merges some neighbours first, as a minor compaction does, and
// then everything: readers see what they would see of a single merge.
func TestMergeOfMerge(t *testing.T) {
	for i, c := range associative {
		t.Run(fmt.Sprint(i, " ", c.engine), func(t *testing.T) {
			f, err := newFolder(c.definition(t))
			if err != nil {
				t.Fatal(err)
			}
			// seen is what a reader gets: a record that retracts is none.
			seen := func(t *rapid.T, records []record) string {
				if len(records) == 0 {
					return f.text(nil)
				}
				merged, err := f.merge(records)
				if err != nil {
					t.Fatal(err)
				}
				if merged != nil && merged.Kind.Retracts() {
					merged = nil
				}
				return f.text(merged)
			}
			kinds := c.kinds
			if kinds == nil {
				kinds = every
			}
			rapid.Check(t, func(t *rapid.T) {
				records := drawRecords(t, f.fields, kinds)
				from := rapid.IntRange(0, len(records)-2).Draw(t, "from")
				to := rapid.IntRange(from+2, len(records)).Draw(t, "to")
				part, err := f.merge(records[from:to])
				if err != nil {
					t.Fatal(err)
				}
				var between []record
				if part != nil {
					between = []record{*part}
				}
				rest := slices.Concat(records[:from], between, records[to:])
				if once, twice := seen(t, records), seen(t, rest); once != twice {
					t.Errorf("%d to %d of %v: at once %s, in two steps %s", from, to, records, once, twice)
				}
			})
		})
	}
}
