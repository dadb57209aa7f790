package compact_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"tablectl/compact"
	"tablectl/internal/tabletest"
)

// TestRowsExpire compacts a table of Java's an hour after some of its rows' times,
// by columns of every type that can hold them. The newest version of row 5 is all
// null and stays, that of row 7 has the greatest values. That of row 6 has the least:
// it expires, and the one before it, a little newer than row 4, shows again.
func TestRowsExpire(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, c := range []struct {
		column string
		ago    time.Time // an hour before the run
		left   string    // the ids of the rows that stay
	}{
		{"i32", time.Unix(-1999991, 0), "[3 4 5 6 7]"},
		{"i32", time.Unix(-1999990, 0), "[4 5 6 7]"},
		{"i64", time.Unix(300000021, 0), "[3 4 5 6 7]"},
		{"i64", time.Unix(300000022, 0), "[4 5 6 7]"},
		{"i64", time.Unix(600000043, 0), "[5 7]"},
		{"ts0", at("2024-01-01T00:00:03Z"), "[3 4 5 6 7]"},
		{"ts0", at("2024-01-01T00:00:04Z"), "[4 5 6 7]"},
		{"ts3", at("2024-01-01T00:00:00Z"), "[1 2 3 4 5 6 7]"},
		{"ts3", at("2024-01-01T00:00:01Z"), "[5 7]"},
		// The last second before 1970 is cut towards zero.
		{"ts6", at("1970-01-01T00:00:00Z"), "[1 2 3 4 5 6 7]"},
		{"ts6", at("1970-01-01T00:00:01Z"), "[5 7]"},
		{"ts9", at("2024-06-30T12:00:00Z"), "[1 2 3 4 5 6 7]"},
		{"ts9", at("2024-06-30T12:00:01Z"), "[5 7]"},
		{"lz0", at("2024-01-01T00:00:03Z"), "[3 4 5 6 7]"},
		{"lz6", at("2024-01-01T00:00:00Z"), "[1 2 3 4 5 6 7]"},
		{"lz9", at("1960-01-01T00:00:00Z"), "[1 2 3 4 5 6 7]"},
		{"lz9", at("1960-01-01T00:00:01Z"), "[5 6 7]"},
	} {
		tbl := tabletest.Load(t, tabletest.CopyTable(t, "pk-all-types"), map[string]string{
			"record-level.expire-time": "1 h", "record-level.time-field": c.column,
		})
		now := func() time.Time { return c.ago.Add(time.Hour) }
		if _, err := compact.Table(t.Context(), tbl, compact.Options{Now: now}); err != nil {
			t.Errorf("%s: %v", c.column, err)
			continue
		}
		var ids []int
		for _, line := range rowsOf(t, tbl, latestOf(t, tbl)) {
			var row struct{ ID int }
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			if row.ID <= 7 {
				ids = append(ids, row.ID)
			}
		}
		if got := fmt.Sprint(ids); got != c.left {
			t.Errorf("%s, an hour after %s: %s are left, want %s", c.column, c.ago.UTC(), got, c.left)
		}
	}
}
