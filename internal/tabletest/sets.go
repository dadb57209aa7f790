package tabletest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SortSets sorts, in rows as JSON, the arrays that Java keeps in the order of a hash
// table, so that only what is in them counts, and then the rows. Which columns these
// are, the options of the table tell.
func SortSets(options map[string]string, rows []string) ([]string, error) {
	var columns []string
	for key, function := range options {
		name, ok := strings.CutSuffix(strings.TrimPrefix(key, "fields."), ".aggregate-function")
		option := func(of string) string { return options["fields."+name+"."+of] }
		if ok && (function == "collect" && option("distinct") == "true" ||
			function == "nested_update" && option("nested-key") != "" || function == "nested_partial_update") {
			columns = append(columns, name)
		}
	}
	if len(columns) == 0 {
		return rows, nil
	}
	all := make([]string, len(rows))
	for i, row := range rows {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(row), &members); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", row, err)
		}
		for _, c := range columns {
			var items []json.RawMessage
			if err := json.Unmarshal(members[c], &items); err != nil {
				return nil, fmt.Errorf("decoding %s of %s: %w", c, row, err)
			}
			slices.SortFunc(items, func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) })
			sorted, err := json.Marshal(items)
			if err != nil {
				return nil, err
			}
			members[c] = sorted
		}
		text, err := json.Marshal(members)
		if err != nil {
			return nil, err
		}
		all[i] = string(text)
	}
	slices.Sort(all)
	return all, nil
}
