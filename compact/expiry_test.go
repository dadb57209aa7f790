package compact

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"tablectl/internal/binrow"
	"tablectl/internal/types"
	"tablectl/snapshot"
	"tablectl/table"
)

// expiring is a table with the key k and a column t of a type, of which rows expire
// an hour after t.
func expiring(t *testing.T, typ string, options map[string]string) (*table.Schema, table.Options) {
	t.Helper()
	parsed, err := types.Parse(typ)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"record-level.expire-time": "1 h", "record-level.time-field": "t", "target-file-size": "100 b",
	}
	maps.Copy(all, options)
	o, err := table.ParseOptions(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := *keyedSchema
	s.Fields = append(s.Fields[:1:1], types.Field{ID: 1, Name: "t", Type: parsed})
	return &s, o
}

// noon is an hour after eleven o'clock, 1709204400 in seconds.
var noon = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

// TestExpiredRows looks at values around an hour ago: rows of that second stay.
func TestExpiredRows(t *testing.T) {
	for _, c := range []struct{ typ, expired, stays string }{
		{"INT", "1709204399 0 -1 -2147483648", "1709204400 1709204401 2147483647"},
		{"BIGINT", "1709204399 -9223372036854775808", "1709204400 999999999999"},
		// From a million million on they are milliseconds, of which the fraction is cut.
		{"BIGINT", "1000000000000 1709204399999", "1709204400000 1709204400999 9223372036854775807"},
		{"TIMESTAMP(0)", "2024-02-29T10:59:59 0001-01-01", "2024-02-29T11:00 9999-12-31"},
		{"TIMESTAMP(3)", "2024-02-29T10:59:59.999", "2024-02-29T11:00 2024-02-29T11:00:00.001"},
		{"TIMESTAMP(9)", "2024-02-29T10:59:59.999999999", "2024-02-29T11:00 2024-02-29T11:00:00.000000001"},
		{"TIMESTAMP(6) WITH LOCAL TIME ZONE", "2024-02-29T10:59:59.999999", "2024-02-29T11:00"},
	} {
		s, o := expiring(t, c.typ, nil)
		// Neither the zone nor the fraction of the second matters.
		for _, now := range []time.Time{noon, noon.In(planZone), noon.Add(time.Second - 1)} {
			e, err := newExpiry(s, o.MergeTree, now)
			if err != nil {
				t.Fatal(err)
			}
			for text, want := range map[string]bool{c.expired: true, c.stays: false} {
				for value := range strings.FieldsSeq(text) {
					v, err := types.ParseLiteral(s.Fields[1].Type, value)
					if err != nil {
						t.Fatal(err)
					}
					if got := e.expired(v); got != want {
						t.Errorf("at %s, %s of %s expired: %v, want %v", now, value, c.typ, got, want)
					}
				}
			}
		}
	}
}

// TestExpireTime takes whole seconds of the option.
func TestExpireTime(t *testing.T) {
	for value, ago := range map[string]int64{
		"0 s": 0, "999 ms": 0, "1999 ms": 1, "1 min": 60, "2 h": 7200, "1 d": 86400, "365 days": 31536000,
	} {
		s, o := expiring(t, "INT", map[string]string{"record-level.expire-time": value})
		e, err := newExpiry(s, o.MergeTree, noon)
		if err != nil {
			t.Fatal(err)
		}
		for offset, want := range map[int64]bool{-1: true, 0: false} {
			if got := e.expired(types.Value{Int: noon.Unix() - ago + offset}); got != want {
				t.Errorf("%s, %+d s: expired %v, want %v", value, offset, got, want)
			}
		}
	}
}

func TestExpiryRefused(t *testing.T) {
	plan := func(s *table.Schema, o table.Options) error {
		_, err := NewPlan(Definition{Schema: s, Options: o, Now: noon}, nil, nil, Full)
		return err
	}
	check := func(err error, message string) {
		t.Helper()
		if !errors.Is(err, table.ErrInvalid) || !strings.Contains(err.Error(), "option record-level.time-field="+message) {
			t.Errorf("got %v, want %s", err, message)
		}
	}
	for typ := range strings.SplitSeq("STRING,DATE,TIME(3),SMALLINT,TINYINT,DOUBLE,BOOLEAN,BYTES,DECIMAL(18)", ",") {
		s, o := expiring(t, typ, nil)
		check(plan(s, o), fmt.Sprintf("t: a column of type %s,", s.Fields[1].Type))
	}
	for _, field := range []string{"x", "T", ""} {
		s, o := expiring(t, "INT", map[string]string{"record-level.time-field": field})
		check(plan(s, o), field+": expected a column")
		// Rows without a key do not expire.
		if s.PrimaryKeys = nil; plan(s, o) != nil {
			t.Errorf("%q: a table without primary keys is refused", field)
		}
	}
}

// TestExpiredFiles plans by what statistics tell: a file that has expired rows is
// rewritten where it would stay, or be lifted.
func TestExpiredFiles(t *testing.T) {
	const hourAgo = 1709204400
	stats := func(values ...types.Value) func(*snapshot.DataFile) {
		ts := []types.Type{keyTypes[0], {Kind: types.Int}}[:len(values)]
		return func(f *snapshot.DataFile) { f.ValueStats.Min = binrow.Encode(ts, values) }
	}
	least := func(n int64) func(*snapshot.DataFile) { return stats(types.Value{Int: 1}, types.Value{Int: n}) }
	const rewritten, stays = "task to level 5, deletes dropped:\n  merge (100@1)\n", ""
	const lifted = "task to level 5, deletes dropped:\n  lift 100@1\n"
	for _, c := range []struct {
		name    string
		level   string
		options map[string]string
		change  func(*snapshot.DataFile)
		want    string
	}{
		{"expired", "L5", nil, least(hourAgo - 1), rewritten},
		{"at the last moment", "L5", nil, least(hourAgo), stays},
		{"expired, in level 0", "L0", nil, least(hourAgo - 1), rewritten},
		{"at the last moment, in level 0", "L0", nil, least(hourAgo), lifted},
		{"expired, in level 4", "L4", nil, least(hourAgo - 1), rewritten},
		{"all null, or not known", "L5", nil, stats(types.Value{Int: 1}, types.NullValue), stays},
		{"no statistics", "L5", nil, func(*snapshot.DataFile) {}, stays},
		{"an empty row of statistics", "L5", nil, func(f *snapshot.DataFile) { f.ValueStats.Min = binrow.Empty() }, stays},
		{"of t alone", "L5", nil, func(f *snapshot.DataFile) {
			f.ValueStatsCols = []string{"t"}
			stats(types.Value{Int: hourAgo - 1})(f)
		}, rewritten},
		{"in another order", "L5", nil, func(f *snapshot.DataFile) {
			f.ValueStatsCols = []string{"t", "k"}
			stats(types.Value{Int: hourAgo - 1}, types.Value{Int: hourAgo})(f)
		}, rewritten},
		{"not of t", "L5", nil, func(f *snapshot.DataFile) {
			f.ValueStatsCols = []string{"k"}
			stats(types.Value{Int: 1})(f)
		}, stays},
		{"longer to live", "L5", map[string]string{"record-level.expire-time": "3601 s"}, least(hourAgo - 1), stays},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, o := expiring(t, "INT", c.options)
			f := planFile(100, 1)
			if err := keyedFile(&f.File, []string{c.level}); err != nil {
				t.Fatal(err)
			}
			c.change(&f.File)
			plan, err := NewPlan(Definition{Schema: s, Options: o, Now: noon}, nil, []snapshot.Bucket{planBucket(0, 1, f)}, Full)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, task := range plan.Tasks {
				got.WriteString(mergeText(task))
			}
			if got.String() != c.want {
				t.Errorf("got\n%swant\n%s", got.String(), c.want)
			}
		})
	}
}
