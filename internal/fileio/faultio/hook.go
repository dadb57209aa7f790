package faultio

import (
	"strings"
	"sync/atomic"
)

// Match selects operations.
type Match func(Op) bool

// Any selects every operation.
func Any(Op) bool { return true }

// Changing selects the operations that change the store.
func Changing(op Op) bool { return op.Kind.Changes() }

// Of selects the operations of some kinds.
func Of(kinds ...Kind) Match {
	return func(op Op) bool {
		for _, k := range kinds {
			if op.Kind == k {
				return true
			}
		}
		return false
	}
}

// On selects the operations of some kind on paths with that end.
func On(kind Kind, suffix string) Match {
	return func(op Op) bool { return op.Kind == kind && strings.HasSuffix(op.Path, suffix) }
}

// Nth makes the n-th of the selected operations go wrong.
func Nth(n int, match Match, fault Fault) Hook {
	return Call(n, match, func(Op) Fault { return fault })
}

// From makes all selected operations from the n-th on go wrong.
func From(n int, match Match, fault Fault) Hook {
	var seen atomic.Int64
	return func(op Op) Fault {
		if match(op) && int(seen.Add(1)) >= n {
			return fault
		}
		return None
	}
}

// Call calls f before the n-th of the selected operations, and does what it says.
func Call(n int, match Match, f Hook) Hook {
	var seen atomic.Int64
	return func(op Op) Fault {
		if match(op) && int(seen.Add(1)) == n {
			return f(op)
		}
		return None
	}
}

// Chain asks each hook; the first fault counts.
func Chain(hooks ...Hook) Hook {
	return func(op Op) Fault {
		fault := None
		for _, h := range hooks {
			if f := h(op); fault == None {
				fault = f
			}
		}
		return fault
	}
}
