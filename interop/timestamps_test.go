//go:build interop

package interop

import (
	"fmt"
	"strings"
	"testing"
)

// timestampTypes are types whose values differ in how files hold them.
var timestampTypes = []string{
	"TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)",
	"TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)", "TIMESTAMP_LTZ(9)",
}

// timestampsAt is a row with a column of each of timestampTypes, c0 and so on, that hold the same moment, as
// far as their types tell it.
func timestampsAt(second, nanos string) string {
	var members []string
	for i, typ := range timestampTypes {
		text := second
		if precision := typ[len(typ)-2] - '0'; precision > 0 {
			text += "." + nanos[:precision]
		}
		if strings.HasPrefix(typ, "TIMESTAMP_LTZ") {
			text += "Z"
		}
		members = append(members, fmt.Sprintf(`"c%d":"%s"`, i, text))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestTimestamps shows that timestamps far from the epoch, before it, and of every precision come through
// compaction as they are, whatever the time zone of the machine. Only Java is asked, as the other readers
// have no nanoseconds in the years 1 and 9999.
func TestTimestamps(t *testing.T) {
	spec := tableSpec{}
	for i, typ := range timestampTypes {
		spec.Fields = append(spec.Fields, field{fmt.Sprintf("c%d", i), typ})
	}
	original := createTable(t, spec)
	write(t, original,
		[]string{timestampsAt("1969-12-31T23:59:59", "999999999"), timestampsAt("1970-01-01T00:00:00", "000000000")},
		[]string{timestampsAt("0001-01-01T00:00:00", "000000000"), timestampsAt("0001-01-01T00:00:00", "000000001")},
		[]string{timestampsAt("9999-12-31T23:59:59", "999999999"), timestampsAt("9999-12-31T00:00:00", "000000000")},
		[]string{timestampsAt("1986-01-01T00:15:00", "000000001"), timestampsAt("1985-12-31T23:59:59", "999000001")}, // Kathmandu's clocks jumped
		[]string{"{}", timestampsAt("1582-10-10T12:00:00", "123456789")},                                             // not in the Julian calendar
	)
	want := dump(t, original)
	for _, zone := range []string{"UTC", "Asia/Kathmandu"} {
		t.Run(zone, func(t *testing.T) {
			tbl := original.clone(t)
			mustCommitIn(t, tbl, zone)
			requireRows(t, dump(t, tbl), want)
		})
	}
}
