package compact

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// keyedSchema is the table of scripts with the line "primary key".
var keyedSchema = &table.Schema{
	Fields:      []types.Field{{ID: 0, Name: "k", Type: types.Type{Kind: types.Int, NotNull: true}}},
	PrimaryKeys: []string{"k"},
}

// planZone is where scripts are planned: creation times of files are wall clocks.
var planZone = time.FixedZone("UTC+5", 5*60*60)

// keyedFile makes a planned file one of a table with a primary key, by words:
//
//	L3          its level, else 0
//	10-19       its keys, else 0-9, so that files overlap
//	deletes     it has deletes; a file with unknown ones is deletes?
//	at-02:30    the wall clock at which it was made
func keyedFile(f *snapshot.DataFile, words []string) error {
	none, low, high := int64(0), 0, 9
	f.DeleteRowCount = &none
	for _, word := range words {
		switch name, value, _ := strings.Cut(word, "-"); {
		case word == "deletes":
			f.DeleteRowCount = &f.RowCount
		case word == "deletes?":
			f.DeleteRowCount = nil
		case name == "at":
			at, err := time.Parse("15:04", value)
			if err != nil {
				return err
			}
			millis := at.UnixMilli()
			f.CreationTime = &millis
		default:
			if n, _ := fmt.Sscanf(word, "L%d", &f.Level); n == 1 {
				break
			}
			if n, err := fmt.Sscanf(word, "%d-%d", &low, &high); n != 2 {
				return fmt.Errorf("%s: %w", word, err)
			}
		}
	}
	f.MinKey, f.MaxKey = keyOf(low), keyOf(high)
	return nil
}

var keyTypes = []types.Type{keyedSchema.Fields[0].Type}

func keyOf(k int) []byte { return binrow.Encode(keyTypes, []types.Value{{Int: int64(k)}}) }

func keyNumber(key []byte) int64 {
	values, err := binrow.Decode(key, keyTypes)
	if err != nil {
		panic(err)
	}
	return values[0].Int
}

// mergeText is a task of a table with a primary key: a line for the level, and one
// for each step. Sections are in parentheses, their runs apart by bars.
func mergeText(task Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "task to level %d", task.Merge.Level)
	if task.Merge.DropDelete {
		b.WriteString(", deletes dropped")
	}
	b.WriteString(":\n")
	for _, s := range task.Merge.Steps {
		if s.Upgrade != nil {
			fmt.Fprintf(&b, "  lift %s\n", fileTexts([]*snapshot.ManifestEntry{s.Upgrade}))
			continue
		}
		b.WriteString("  merge")
		for _, section := range s.Sections {
			var runs []string
			for _, r := range section {
				runs = append(runs, fileTexts(r.Files))
			}
			slices.Sort(runs) // their order does not matter
			fmt.Fprintf(&b, " (%s)", strings.Join(runs, " | "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func fileTexts(files []*snapshot.ManifestEntry) string {
	var all []string
	for _, f := range files {
		all = append(all, fmt.Sprintf("%d@%d", f.File.FileSize, f.File.MinSequenceNumber/100))
	}
	return strings.Join(all, " ")
}

// afterMerge is what the buckets hold once a plan was carried out, if each merge
// wrote one file as large as its inputs.
func afterMerge(_ table.Options, buckets []snapshot.Bucket, plan *Plan) []snapshot.Bucket {
	after := slices.Clone(buckets)
	for _, task := range plan.Tasks {
		b := &after[slices.IndexFunc(after, func(b snapshot.Bucket) bool { return b.Number == task.Bucket })]
		b.Files = slices.DeleteFunc(slices.Clone(b.Files), func(f *snapshot.ManifestEntry) bool {
			return slices.Contains(task.Inputs, f)
		})
		for _, s := range task.Merge.Steps {
			inputs := s.files()
			merged := *inputs[0]
			merged.File.Level = task.Merge.Level
			for _, f := range inputs[1:] {
				merged.File.FileSize += f.File.FileSize
				if keyNumber(f.File.MaxKey) > keyNumber(merged.File.MaxKey) {
					merged.File.MaxKey = f.File.MaxKey
				}
			}
			if none := int64(0); task.Merge.DropDelete && s.Upgrade == nil {
				merged.File.DeleteRowCount = &none
			}
			b.Files = append(b.Files, &merged)
		}
	}
	return after
}
