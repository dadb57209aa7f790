package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tablectl/compact"
	"tablectl/internal/lock"
	"tablectl/snapshot"
	"tablectl/table"
)

// outcome is how a command can end: the exit code, its meaning in the help, and
// the kind that JSON results carry.
type outcome struct {
	code    int
	kind    string
	meaning string
}

var (
	outcomeOK          = outcome{0, "", "done, or nothing to do"}
	outcomeFailed      = outcome{1, "failed", "failed; the table is unchanged"}
	outcomeUsage       = outcome{2, "usage", "usage: flag, filter, configuration, unknown column or option"}
	outcomePartly      = outcome{3, "partial", "partly done: some groups were left (conflict, budget), the rest is committed"}
	outcomeUnsupported = outcome{4, "unsupported", "table kind or feature not supported; nothing was written"}
	outcomeConflict    = outcome{5, "conflict", "lost the race against other writers; safe to run again"}
	outcomeUnknown     = outcome{6, "unknown", "outcome unknown: publishing could not be confirmed, so no data file was deleted"}
	outcomeVerify      = outcome{7, "verification", "verification failed; nothing was committed"}
	outcomeStorage     = outcome{8, "storage", "storage or catalog unavailable after retries"}
	outcomeNotFound    = outcome{10, "not_found", "no such table"}
	outcomeLocked      = outcome{11, "locked", "another run holds the table's lock"}
	outcomeHungUp      = outcome{129, "interrupted", "interrupted by SIGHUP; the table is unchanged"}
	outcomeInterrupted = outcome{130, "interrupted", "interrupted by SIGINT; the table is unchanged"}
	outcomeTerminated  = outcome{143, "interrupted", "interrupted by SIGTERM; the table is unchanged"}
)

var outcomes = []outcome{
	outcomeOK, outcomeFailed, outcomeUsage, outcomePartly, outcomeUnsupported, outcomeConflict, outcomeUnknown,
	outcomeVerify, outcomeStorage, outcomeNotFound, outcomeLocked, outcomeHungUp, outcomeInterrupted, outcomeTerminated,
}

// outcomeOf maps an error to the way the command ends. What may have been
// published comes first, since it must not be mistaken for anything harmless.
func outcomeOf(err error) outcome {
	var interrupted *signalError
	var partly *partlyError
	var held *lock.HeldError
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(err, snapshot.ErrCommitUnknown):
		return outcomeUnknown
	case errors.As(err, &partly):
		return outcomePartly
	case errors.As(err, &interrupted):
		switch interrupted.signal {
		case syscall.SIGTERM:
			return outcomeTerminated
		case syscall.SIGHUP:
			return outcomeHungUp
		}
		return outcomeInterrupted
	case errors.Is(err, context.Canceled):
		return outcomeInterrupted
	case errors.As(err, &held):
		return outcomeLocked
	case errors.Is(err, compact.ErrVerification):
		return outcomeVerify
	case errors.Is(err, table.ErrUnsupported):
		return outcomeUnsupported
	case errors.Is(err, errUsage), errors.Is(err, table.ErrInvalid), strings.HasPrefix(err.Error(), "unknown command"):
		return outcomeUsage
	case errors.Is(err, table.ErrNotFound):
		return outcomeNotFound
	case errors.Is(err, snapshot.ErrConflict):
		return outcomeConflict
	case unavailable(err):
		return outcomeStorage
	}
	return outcomeFailed
}

// partlyError says that a part of the work was committed and the rest given up.
type partlyError struct{ lost, all int }

func (e *partlyError) Error() string {
	return fmt.Sprintf("%d of %d tasks were given up, since other writers changed their files; the others are committed", e.lost, e.all)
}

// unavailable reports whether the store, and not a file in it, is the trouble. Only
// waiting for a store has a limit.
func unavailable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC) ||
		errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ESTALE) || errors.Is(err, syscall.EDQUOT) ||
		errors.Is(err, context.DeadlineExceeded)
}

// ExitCode is the exit code for an error of a command.
func ExitCode(err error) int { return outcomeOf(err).code }

func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("The exit code tells how a command ended:\n\n")
	for _, o := range outcomes {
		b.WriteString("  " + pad(o.code) + "  " + o.meaning + "\n")
	}
	b.WriteString("\nAny other code is a failure.")
	return &cobra.Command{Use: "exit-codes", Short: "What exit codes mean", Long: b.String()}
}

func pad(code int) string {
	s := "   " + itoa(code)
	return s[len(s)-3:]
}
