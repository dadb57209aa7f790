package datafile

import (
	"slices"
	"testing"
)

// TestLevels translates definition levels through steps. A step is written with
// what it adds on each side: "11" is optional on both, "10" optional in the target
// only, "01" in the source only, "00" in neither.
func TestLevels(t *testing.T) {
	const v = violation
	for _, c := range []struct {
		name                     string
		steps                    []string
		missing, missingOptional bool
		want                     levelMap
	}{
		{name: "no steps", want: levelMap{0}},
		{name: "required on both sides", steps: []string{"00"}, want: levelMap{0}},
		{name: "optional on both sides", steps: []string{"11"}, want: levelMap{0, 1}},
		{name: "became nullable", steps: []string{"10"}, want: levelMap{1}},
		{name: "became NOT NULL", steps: []string{"01"}, want: levelMap{v, 0}},
		{name: "list of optional", steps: []string{"11", "11", "11"}, want: levelMap{0, 1, 2, 3}},
		{name: "list became NOT NULL", steps: []string{"01", "11", "11"}, want: levelMap{v, 0, 1, 2}},
		{name: "elements became NOT NULL", steps: []string{"11", "11", "01"}, want: levelMap{0, 1, v, 2}},
		{name: "elements became nullable", steps: []string{"11", "11", "10"}, want: levelMap{0, 1, 3}},
		{name: "list became nullable", steps: []string{"10", "11", "11"}, want: levelMap{1, 2, 3}},
		{name: "both became NOT NULL", steps: []string{"01", "11", "01"}, want: levelMap{v, 0, v, 1}},
		{name: "both became nullable", steps: []string{"10", "11", "10"}, want: levelMap{1, 3}},
		{name: "two required rows around", steps: []string{"00", "00", "11"}, want: levelMap{0, 1}},
		{name: "nullable row became NOT NULL around a required value", steps: []string{"01", "00"}, want: levelMap{v, 0}},
		{name: "required row became nullable around an optional value", steps: []string{"10", "11"}, want: levelMap{1, 2}},
		{name: "opposite changes", steps: []string{"10", "01"}, want: levelMap{v, 1}},
		{name: "opposite changes, the other way", steps: []string{"01", "10"}, want: levelMap{v, 1}},
		{name: "a list in a list", steps: []string{"11", "11", "11", "11", "11"}, want: levelMap{0, 1, 2, 3, 4, 5}},
		{name: "missing in a row that is optional", steps: []string{"11"}, missing: true, missingOptional: true, want: levelMap{0, 1}},
		{name: "missing in a row that is required", steps: []string{"00"}, missing: true, missingOptional: true, want: levelMap{0}},
		{name: "missing and NOT NULL", steps: []string{"11"}, missing: true, want: levelMap{0, v}},
		{name: "missing and NOT NULL in a required row", steps: []string{"00"}, missing: true, want: levelMap{v}},
		{name: "missing in rows of a list", steps: []string{"11", "11", "11"}, missing: true, missingOptional: true, want: levelMap{0, 1, 2, 3}},
		{name: "missing and NOT NULL in rows of a list", steps: []string{"11", "11", "11"}, missing: true, want: levelMap{0, 1, 2, v}},
		{name: "missing in a row that became NOT NULL", steps: []string{"01"}, missing: true, missingOptional: true, want: levelMap{v, 0}},
		{name: "missing in a row that became nullable", steps: []string{"10"}, missing: true, missingOptional: true, want: levelMap{1}},
	} {
		var s steps
		for _, step := range c.steps {
			s = s.with(step[0] == '1', step[1] == '1')
		}
		if got := s.levels(c.missing, c.missingOptional); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestStepsAreNotShared makes two siblings of one parent: the second must not
// overwrite the steps of the first.
func TestStepsAreNotShared(t *testing.T) {
	parent := steps{}.with(true, true).with(true, true).with(true, true)
	first := parent.with(true, true)
	second := parent.with(false, false)
	if got, want := first.levels(false, false), (levelMap{0, 1, 2, 3, 4}); !slices.Equal(got, want) {
		t.Errorf("first: %v, want %v", got, want)
	}
	if got, want := second.levels(false, false), (levelMap{0, 1, 2, 3}); !slices.Equal(got, want) {
		t.Errorf("second: %v, want %v", got, want)
	}
}

func TestIdentity(t *testing.T) {
	for _, c := range []struct {
		levels levelMap
		want   bool
	}{{levelMap{0}, true}, {levelMap{0, 1, 2}, true}, {levelMap{violation, 0}, false}, {levelMap{1}, false}, {levelMap{0, 1, 3}, false}} {
		if got := c.levels.identity(); got != c.want {
			t.Errorf("%v: %v", c.levels, got)
		}
	}
}
