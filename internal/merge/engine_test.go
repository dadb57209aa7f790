package merge_test

import (
	"testing"

	"tablectl/internal/merge"
)

func TestDeduplicate(t *testing.T) {
	world{engine: merge.Deduplicate, columns: "k INT NOT NULL, v STRING"}.run(t, []mergeCase{
		{"the newest", "", "+I 1 a; +U 1 b; +I 1 c", "+I@3 1 c"},
		{"nulls are values", "", "+I 1 a; +U 1 null", "+U@2 1 null"},
		{"a delete is the newest", "", "+I 1 a; -D 1 b", "-D@2 1 b"},
		{"an update's old row is the newest", "", "+I 1 a; -U 1 a", "-U@2 1 a"},
		{"insert after delete", "", "-D 1 a; +I 1 b", "+I@2 1 b"},
		{"deletes are ignored", "ignore-delete=true", "+I 1 a; -U 1 a; -D 1 b", "+I@1 1 a"},
		{"nothing but deletes, ignored", "ignore-delete=true", "-D 1 a; -U 1 b", "nothing"},
		{"not ignored", "ignore-delete=false", "+I 1 a; -D 1 a", "-D@2 1 a"},
		{"ignored by the option's older name", "deduplicate.ignore-delete=TRUE", "+I 1 a; -D 1 b", "+I@1 1 a"},
		{"the newer name counts", "ignore-delete=false; deduplicate.ignore-delete=true", "+I 1 a; -D 1 b", "-D@2 1 b"},
	})
	world{columns: "k INT NOT NULL, v STRING"}.run(t, []mergeCase{{"by default", "", "+I 1 a; +I 1 b", "+I@2 1 b"}})
}

func TestPartialUpdate(t *testing.T) {
	w := world{engine: merge.PartialUpdate, columns: "k INT NOT NULL, a INT, b STRING"}
	w.run(t, []mergeCase{
		{"nulls do not overwrite", "", "+I 1 10 x; +I 1 null y; +U 1 30 null", "+I@3 1 30 y"},
		{"nothing was set", "", "+I 1 null null; +I 1 null null", "+I@2 1 null null"},
		{"a delete without a rule", "", "+I 1 10 x; -D 1 10 x", "error: a record of kind -D reached a partial-update table"},
		{"an update's old row without a rule", "", "-U 1 10 x; +I 1 10 x", "error: a record of kind -U"},
	})
	const ignore = "ignore-delete=true"
	w.run(t, []mergeCase{
		{"deletes ignored", ignore, "+I 1 10 x; -D 1 20 y; +I 1 null z", "+I@3 1 10 z"},
		{"a delete ignored at the end", ignore, "+I 1 10 x; -D 1 20 y", "+I@1 1 10 x"},
		// The first row fills what later ones leave out, whatever its kind.
		{"a delete ignored at the start", ignore, "-D 1 10 x; +I 1 null z", "+I@2 1 10 z"},
		{"all deletes ignored", ignore, "-D 1 10 x; -D 1 20 y", "-D@0 1 10 x"},
		{"ignored by the option's older name", "partial-update.ignore-delete=true", "+I 1 10 x; -D 1 20 y", "+I@1 1 10 x"},
	})
	const remove = "partial-update.remove-record-on-delete=true"
	w.run(t, []mergeCase{
		{"removed", remove, "+I 1 10 x; -D 1 null y", "-D@2 1 null y"},
		{"inserted again", remove, "+I 1 10 x; -D 1 20 null; +I 1 null z", "+I@3 1 20 z"},
		{"delete first, then insert", remove, "-D 1 10 x; +I 1 null z", "+I@2 1 10 z"},
		{"all deletes", remove, "-D 1 10 x; -D 1 20 null", "-D@2 1 20 null"},
		{"an update's old row removes nothing", remove, "+I 1 10 x; -U 1 20 y", "+I@2 1 10 x"},
		{"an update's old row first", remove, "-U 1 10 x; -U 1 20 y", "-D@2 1 10 x"},
		{"only the last record says that it is removed", remove, "+I 1 10 x; -D 1 20 y; -U 1 30 z", "+I@3 1 20 y"},
	})
	w.run(t, []mergeCase{{
		"the one function without a group", "fields.a.aggregate-function=last_non_null_value",
		"+I 1 10 x; +I 1 null y", "+I@2 1 10 y",
	}})
}

func TestSequenceGroup(t *testing.T) {
	w := world{engine: merge.PartialUpdate, columns: "k INT NOT NULL, a INT, g INT, b STRING, c STRING"}
	w.options = "fields.g.sequence-group=a,b"
	w.run(t, []mergeCase{
		{"newer", "", "+I 1 10 1 x p; +I 1 20 2 y q", "+I@2 1 20 2 y q"},
		{"as new", "", "+I 1 10 1 x p; +I 1 20 1 y q", "+I@2 1 20 1 y q"},
		{"late", "", "+I 1 10 2 x p; +I 1 20 1 y q", "+I@2 1 10 2 x q"},
		{"nulls overwrite in a group only", "", "+I 1 10 1 x p; +I 1 null 2 null null", "+I@2 1 null 2 null p"},
		{"a group without a sequence is skipped", "", "+I 1 10 1 x p; +I 1 20 null y q", "+I@2 1 10 1 x q"},
		{"nothing set the group yet", "", "+I 1 10 null x p; +I 1 20 -5 y q", "+I@2 1 20 -5 y q"},
		{"no record has a sequence", "", "+I 1 10 null x p; +I 1 20 null y q", "+I@2 1 null null null q"},
		{"late, and late after that", "", "+I 1 10 3 x p; +I 1 20 1 y null; +I 1 30 2 z null", "+I@3 1 10 3 x p"},
	})
	w.run(t, []mergeCase{
		{"retracted", "", "+I 1 10 1 x p; -D 1 20 2 y q", "+I@2 1 null 2 null p"},
		{"an update's old row retracts", "", "+I 1 10 1 x p; -U 1 20 2 y q", "+I@2 1 null 2 null p"},
		{"retracted late", "", "+I 1 10 2 x p; -D 1 20 1 y q", "+I@2 1 10 2 x p"},
		{"retracted without a sequence", "", "+I 1 10 1 x p; -D 1 20 null y q", "+I@2 1 10 1 x p"},
		// The retracted row fills columns outside of groups, and retracts its own group.
		{"delete first, then insert", "", "-D 1 10 1 x p; +I 1 20 2 y null", "+I@2 1 20 2 y p"},
		{"delete first, then insert late", "", "-D 1 10 2 x p; +I 1 20 1 y q", "+I@2 1 null 2 null q"},
		{"delete without a sequence first", "", "-D 1 10 null x p; -D 1 20 null y q", "-D@2 1 10 null x p"},
		{"all deletes", "", "-D 1 10 1 x p; -D 1 20 2 y q", "-D@2 1 null 2 null p"},
		{"ignored", "ignore-delete=true", "+I 1 10 1 x p; -D 1 20 2 y q", "+I@1 1 10 1 x p"},
		{
			"ignored, but its sequence stays", "ignore-delete=true",
			"-D 1 10 5 x p; +I 1 20 2 y q; +I 1 30 7 z null", "+I@3 1 30 7 z q",
		},
		{"ignored, and what follows is late", "ignore-delete=true", "-D 1 10 5 x p; +I 1 20 2 y q", "+I@2 1 10 5 x q"},
	})
	w.options += "; partial-update.remove-record-on-sequence-group=g"
	w.run(t, []mergeCase{
		{"removed", "", "+I 1 10 1 x p; -D 1 20 2 y q", "-D@2 1 20 2 y q"},
		{"removed by an equal sequence", "", "+I 1 10 1 x p; -D 1 20 1 y q", "-D@2 1 20 1 y q"},
		{"a late delete removes nothing", "", "+I 1 10 2 x p; -D 1 20 1 y q", "+I@2 1 10 2 x p"},
		{"a delete without a sequence removes nothing", "", "+I 1 10 2 x p; -D 1 20 null y q", "+I@2 1 10 2 x p"},
		{"neither has a sequence", "", "+I 1 10 null x p; -D 1 20 null y q", "+I@2 1 null null null p"},
		{"an update's old row retracts only", "", "+I 1 10 1 x p; -U 1 20 2 y q", "+I@2 1 null 2 null p"},
		{"inserted again", "", "+I 1 10 1 x p; -D 1 20 2 y q; +I 1 30 3 z null", "+I@3 1 30 3 z q"},
		{"inserted again, but late", "", "+I 1 10 1 x p; -D 1 20 3 y q; +I 1 30 2 z r", "+I@3 1 20 3 y r"},
		{"all deletes", "", "-D 1 10 1 x p; -D 1 20 2 null null", "-D@2 1 20 2 null null"},
	})
}

// TestSequenceGroups has two groups, one with two sequence fields of which one
// comes after what they protect.
func TestSequenceGroups(t *testing.T) {
	w := world{
		engine: merge.PartialUpdate, columns: "k INT NOT NULL, g INT, a STRING, h INT, b STRING, i INT",
		options: "fields.g.sequence-group=a; fields.h,i.sequence-group=b",
	}
	w.run(t, []mergeCase{
		{"each its own", "", "+I 1 2 a 1 b 1; +I 1 1 A 2 B 0", "+I@2 1 2 a 2 B 0"},
		{"the first field decides", "", "+I 1 1 a 1 b 9; +I 1 1 A 2 B 1", "+I@2 1 1 A 2 B 1"},
		{"then the second", "", "+I 1 1 a 1 b 9; +I 1 1 A 1 B 8", "+I@2 1 1 A 1 b 9"},
		{"null is before everything", "", "+I 1 1 a -9 b 1; +I 1 1 A null B 1", "+I@2 1 1 A -9 b 1"},
		{"one field is enough", "", "+I 1 1 a null b 1; +I 1 1 A null B 2", "+I@2 1 1 A null B 2"},
		{"the fields move together", "", "+I 1 1 a 1 b 5; +I 1 1 A 2 B null", "+I@2 1 1 A 2 B null"},
		{"one group has no sequence", "", "+I 1 1 a 1 b 1; +I 1 null A 2 B 2", "+I@2 1 1 a 2 B 2"},
		{"one is retracted, the other late", "", "+I 1 1 a 5 b 5; -D 1 2 A 4 B 4", "+I@2 1 2 null 5 b 5"},
	})
	w.options += "; partial-update.remove-record-on-sequence-group=i"
	w.run(t, []mergeCase{
		{"removed by one field of the group", "", "+I 1 1 a 1 b 1; -D 1 2 A 2 B 2", "-D@2 1 2 A 2 B 2"},
		// The other group would be late; the row goes with all of its columns.
		{"removed with the other group", "", "+I 1 9 a 1 b 1; -D 1 2 A 2 B 2", "-D@2 1 2 A 2 B 2"},
		{"the other group removes nothing", "", "+I 1 1 a 5 b 5; -D 1 2 A 4 B 4", "+I@2 1 2 null 5 b 5"},
	})
	w.options = "fields.g.sequence-group=g,a; fields.h,i.sequence-group=b"
	w.run(t, []mergeCase{
		{"a sequence field among those it protects", "", "+I 1 2 a 1 b 1; +I 1 1 A 2 B 0", "+I@2 1 2 a 2 B 0"},
	})
}

// TestFunctionsInSequenceGroups has records that add and retract, in time and late.
func TestFunctionsInSequenceGroups(t *testing.T) {
	inGroup := func(function, typ string) world {
		return world{
			engine: merge.PartialUpdate, columns: "k INT NOT NULL, g INT, v " + typ,
			options: "fields.g.sequence-group=v; fields.v.aggregate-function=" + function,
		}
	}
	for _, c := range []struct{ function, typ, records, want string }{
		{"sum", "INT", "+I 1 2 10; +I 1 3 5; +I 1 1 100", "+I@3 1 3 115"},
		{"sum", "INT", "+I 1 2 10; -D 1 3 4; -D 1 1 1", "+I@3 1 3 5"},
		{"sum", "INT", "+I 1 2 10; +I 1 null 5", "+I@2 1 2 10"},
		{"sum", "INT", "-D 1 1 10; +I 1 2 3", "+I@2 1 2 3"}, // 10 is filled in and retracted
		{"product", "INT", "+I 1 2 10; +I 1 1 3; -U 1 3 5", "+I@3 1 3 6"},
		{"max", "INT", "+I 1 2 10; +I 1 1 11; +I 1 3 5", "+I@3 1 3 11"},
		{"min", "INT", "+I 1 2 10; +I 1 1 9; +I 1 3 null", "+I@3 1 3 9"},
		{"max", "INT", "+I 1 2 10; -D 1 1 11", "error: max cannot retract"},
		{"listagg", "STRING", "+I 1 2 b; +I 1 3 c; +I 1 1 a", "+I@3 1 3 a,b,c"},
		{"last_value", "STRING", "+I 1 2 b; +I 1 1 a", "+I@2 1 2 b"},
		{"last_value", "STRING", "+I 1 2 b; +I 1 3 null", "+I@2 1 3 null"},
		{"last_value", "STRING", "+I 1 2 b; -D 1 1 a", "+I@2 1 2 null"},
		{"last_non_null_value", "STRING", "+I 1 2 b; +I 1 3 null; +I 1 1 a", "+I@3 1 3 b"},
		{"last_non_null_value", "STRING", "+I 1 2 null; +I 1 1 a", "+I@2 1 2 a"},
		{"last_non_null_value", "STRING", "+I 1 2 b; -D 1 3 null", "+I@2 1 3 b"},
		{"last_non_null_value", "STRING", "+I 1 2 b; -D 1 1 x", "+I@2 1 2 null"},
		// What comes late was there before, so it is the first from now on.
		{"first_value", "STRING", "+I 1 2 b; +I 1 3 c; +I 1 1 a", "+I@3 1 3 a"},
		{"first_value", "STRING", "+I 1 2 null; +I 1 3 c", "+I@2 1 3 null"},
		{"first_non_null_value", "STRING", "+I 1 2 null; +I 1 3 c; +I 1 4 d", "+I@3 1 4 c"},
		{"first_non_null_value", "STRING", "+I 1 2 b; +I 1 1 a", "+I@2 1 2 a"},
		{"bool_and", "BOOLEAN", "+I 1 2 true; +I 1 1 false", "+I@2 1 2 false"},
	} {
		inGroup(c.function, c.typ).run(t, []mergeCase{{c.function, "", c.records, c.want}})
	}
	w := inGroup("sum", "INT")
	w.run(t, []mergeCase{
		{
			"retracts are ignored, but the sequence moves on", "fields.v.ignore-retract=true",
			"+I 1 2 10; -D 1 5 4; -D 1 1 1", "+I@3 1 5 10",
		},
		{"removed with the row", "partial-update.remove-record-on-sequence-group=g", "+I 1 2 10; -D 1 3 4", "-D@2 1 3 4"},
		{
			"added to what was removed", "partial-update.remove-record-on-sequence-group=g",
			"+I 1 2 10; -D 1 3 4; +I 1 4 1", "+I@3 1 4 5",
		},
		{
			"retracted late from what was removed", "partial-update.remove-record-on-sequence-group=g",
			"+I 1 2 10; -D 1 3 4; -D 1 1 1", "+I@3 1 3 3",
		},
	})
	world{
		engine: merge.PartialUpdate, columns: "k INT NOT NULL, g INT, v INT, h INT, w INT",
		options: "fields.g.sequence-group=v; fields.h.sequence-group=w;" +
			" fields.default-aggregate-function=sum; fields.w.aggregate-function=max",
	}.run(t, []mergeCase{{"the default, and a column's own", "", "+I 1 1 10 1 10; +I 1 2 20 0 20", "+I@2 1 2 30 1 20"}})
}
