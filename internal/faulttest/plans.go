package faulttest

import (
	"sync/atomic"
	"time"

	"tablectl/internal/fileio/faultio"
)

// Plan makes the hook of the n-th run of a loop.
type Plan func(n int, r *Run) faultio.Hook

func nth(match faultio.Match, fault faultio.Fault) Plan {
	return func(n int, _ *Run) faultio.Hook { return faultio.Nth(n, match, fault) }
}

// from makes it go wrong for good.
func from(match faultio.Match, fault faultio.Fault) Plan {
	return func(n int, _ *Run) faultio.Hook { return faultio.From(n, match, fault) }
}

// cancel cancels before an operation, with which something may go wrong too.
func cancel(match faultio.Match, fault faultio.Fault) Plan {
	return func(n int, r *Run) faultio.Hook {
		return faultio.Call(n, match, func(faultio.Op) faultio.Fault {
			r.Stop()
			return fault
		})
	}
}

// both lets the second plan be so many operations late.
func both(one Plan, later int, two Plan) Plan {
	return func(n int, r *Run) faultio.Hook { return faultio.Chain(one(n, r), two(n+later, r)) }
}

// CancelAt cancels at the n-th change, with which something may go wrong too.
func CancelAt(n int, r *Run, fault faultio.Fault) faultio.Hook {
	return cancel(faultio.Changing, fault)(n, r)
}

var (
	reads    = faultio.Of(faultio.Open, faultio.Read)
	notReads = func(op faultio.Op) bool { return op.Kind != faultio.Read }
	creating = faultio.Of(faultio.Create, faultio.Put)
	writing  = faultio.Of(faultio.Create, faultio.Write, faultio.Close, faultio.Put)
)

// Plans are the kinds of faults. Where one does not look at reads, they go wrong
// in another one.
var Plans = map[string]Plan{
	"error":                    nth(faultio.Any, faultio.Fail),
	"lost reply":               nth(faultio.Changing, faultio.LostReply),
	"timeout":                  nth(faultio.Changing, faultio.Timeout),
	"exists":                   nth(creating, faultio.Exists),
	"partial":                  nth(faultio.Of(faultio.Write, faultio.Put), faultio.Partial),
	"no space":                 nth(writing, faultio.NoSpace),
	"hang":                     nth(notReads, faultio.Hang),
	"late hang":                nth(faultio.Changing, faultio.LateHang),
	"broken store":             from(faultio.Changing, faultio.Fail),
	"full disk":                from(writing, faultio.NoSpace),
	"cancel":                   cancel(notReads, faultio.None),
	"cancel with an error":     cancel(faultio.Changing, faultio.Fail),
	"cancel with a lost reply": cancel(creating, faultio.LostReply),
	"cancel with a timeout":    cancel(creating, faultio.Timeout),
	"cancel, then lost reply":  both(cancel(faultio.Changing, faultio.None), 1, nth(faultio.Changing, faultio.LostReply)),
	"error, then cancel":       both(nth(faultio.Changing, faultio.Fail), 1, cancel(faultio.Changing, faultio.None)),
	"lost reply, then cancel":  both(nth(faultio.Changing, faultio.LostReply), 1, cancel(faultio.Changing, faultio.None)),
	"two errors":               twoErrors,
	"cancel and removal fails": cancelAndRemovalFails,
	"lost reply and blind":     lostReplyAndBlind,
}

// twoErrors lets another operation go wrong, soon after the first.
func twoErrors(n int, _ *Run) faultio.Hook {
	second := []faultio.Fault{faultio.Fail, faultio.LostReply, faultio.Timeout, faultio.Hang, faultio.NoSpace}[n%5]
	return faultio.Chain(faultio.Nth(n, faultio.Changing, faultio.Fail), faultio.Nth(n+1+n%4, faultio.Changing, second))
}

func cancelAndRemovalFails(n int, r *Run) faultio.Hook {
	fault := []faultio.Fault{faultio.Fail, faultio.Hang, faultio.LostReply}[n%3]
	return faultio.Chain(CancelAt(n, r, faultio.None), faultio.Nth(1+n%2, faultio.Of(faultio.Remove), fault))
}

// lostReplyAndBlind lets nothing be read any more once a reply was lost.
func lostReplyAndBlind(n int, _ *Run) faultio.Hook {
	var lost atomic.Bool
	return faultio.Chain(
		faultio.Call(n, creating, func(faultio.Op) faultio.Fault {
			lost.Store(true)
			return faultio.LostReply
		}),
		faultio.From(1, func(op faultio.Op) bool { return lost.Load() && reads(op) }, faultio.Fail))
}

// Slowly lets each operation that changes the store take its time, so that the tasks
// of a run take turns.
func Slowly(p Plan) Plan {
	return func(n int, r *Run) faultio.Hook {
		hook := p(n, r)
		return func(op faultio.Op) faultio.Fault {
			fault := hook(op)
			if op.Kind.Changes() {
				time.Sleep(time.Millisecond)
			}
			return fault
		}
	}
}
