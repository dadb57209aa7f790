// Package cmd is the command line: commands and flags, configuration, output and
// exit codes. It holds no table logic.
//
// A command has a file of its own. Its flags fill an options struct of the
// library; the library neither prints nor exits. Results go to standard output,
// once they are known; everything else goes to standard error.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tablectl/compact"
	"tablectl/internal/fileio"
	"tablectl/internal/version"
)

// app is what the commands share: where tables are, where output goes, and the
// configuration.
type app struct {
	files          fileio.FileIO
	stdout, stderr io.Writer
	config         *config
	log            *slog.Logger
	format         string // text or json
	quiet          bool
	// reported says that the command has printed its own result, error included.
	reported bool
}

// Main runs the command line and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	return run(ctx, store(), args, stdout, stderr)
}

// run is Main on any store, until the context is cancelled.
func run(ctx context.Context, files fileio.FileIO, args []string, stdout, stderr io.Writer) int {
	a := &app{files: files, stdout: stdout, stderr: stderr, log: slog.New(slog.DiscardHandler)}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	err = withCause(ctx, err)
	if err != nil && !a.reported {
		a.fail(cmd, args, err)
	}
	return ExitCode(err)
}

// fail reports an error that the command itself has not. The configuration may be
// what is wrong, so the form of the report does not depend on it.
func (a *app) fail(cmd *cobra.Command, args []string, err error) {
	if a.format == "" {
		a.format = formatAsked(args)
	}
	switch {
	case cmd.Name() == compactName:
		_ = a.compactDone(&compactRun{report: &compact.Report{}}, err) // the same error
	case a.format == "json":
		if werr := a.writeJSON(errorDocument{newHeader("Error"), newErrorJSON(err)}); werr != nil {
			fmt.Fprintf(a.stderr, "Error: %v\n", errors.Join(err, werr))
		}
	default:
		a.printError(err)
	}
}

// printError says what is wrong and, where others are involved or the end is not
// clear, what to do.
func (a *app) printError(err error) {
	fmt.Fprintf(a.stderr, "Error: %v\n", err)
	if o := outcomeOf(err); o == outcomePartly || o == outcomeConflict || o == outcomeUnknown || o == outcomeLocked {
		fmt.Fprintf(a.stderr, "Hint: %s\n", hints[o.kind])
	}
}

// formatAsked finds out the form of output where the command line is wrong
// elsewhere, or the configuration.
func formatAsked(args []string) string {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	format := f.StringP("output", "o", os.Getenv(envPrefix+"_OUTPUT"), "")
	f.String("config", "", "")
	_ = f.Parse(args) // what could be read counts
	if c, err := loadConfig(f); err == nil {
		return c.text("output")
	}
	return *format
}

// signalError is why a context was cancelled.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string {
	name, ok := map[syscall.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}[e.signal]
	if !ok {
		name = e.signal.String()
	}
	return "interrupted by " + name
}

// withCause names the signal where an error only says that the context was
// cancelled.
func withCause(ctx context.Context, err error) error {
	var known *signalError
	if errors.Is(err, context.Canceled) && !errors.As(err, &known) {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// untilSignal returns a context that the first SIGINT, SIGTERM or SIGHUP cancels.
// The second one ends the process, as if it had not been caught.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			if s, ok := s.(syscall.Signal); ok {
				cancel(&signalError{s})
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tablectl",
		Short: "Compact Apache Paimon tables and keep them healthy",
		Long: `tablectl compacts Apache Paimon tables without Flink or Spark: it merges the
small files that streaming writers leave behind and publishes one COMPACT
snapshot, which every Paimon reader sees.`,
		Version:           version.Number(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.setUp(cmd) },
	}
	root.SetVersionTemplate("tablectl {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath()))
	})
	addGlobalFlags(root.PersistentFlags())
	root.AddCommand(a.compactCommand(), a.filesCommand(), a.snapshotsCommand(), a.inspectCommand(), a.versionCommand(), exitCodesTopic())
	root.SetHelpCommand(helpCommand(root))
	// Before the command is looked for, so that these are known to take no value.
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	return root
}

// helpCommand is cobra's, but an unknown command is an error.
func helpCommand(root *cobra.Command) *cobra.Command {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // needs no configuration
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return usageError(fmt.Errorf("no help on %q", strings.Join(args, " ")))
		}
		about.InitDefaultHelpFlag() // which the command itself would have by now
		return about.Help()
	}
	return help
}

// setUp reads the configuration and prepares logging before a command runs.
func (a *app) setUp(cmd *cobra.Command) error {
	if cmd.Name() == cobra.ShellCompRequestCmd || cmd.HasParent() && cmd.Parent().Name() == "completion" {
		return nil // a shell that starts must not depend on the configuration
	}
	config, err := loadConfig(cmd.Flags())
	if err != nil {
		return usageError(err)
	}
	a.config = config
	format := config.text("output")
	if format != "text" && format != "json" {
		return usageError(fmt.Errorf("--output %s: expected text or json", format))
	}
	a.format = format
	quiet, err := config.flag("quiet")
	if err != nil {
		return err
	}
	a.quiet = quiet
	verbose, err := config.flag("verbose")
	if err != nil {
		return err
	}
	level := slog.LevelWarn
	switch {
	case quiet:
		level = slog.LevelError
	case verbose:
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	switch f := config.text("log-format"); f {
	case "text":
		a.log = slog.New(slog.NewTextHandler(a.stderr, options))
	case "json":
		a.log = slog.New(slog.NewJSONHandler(a.stderr, options))
	default:
		return usageError(fmt.Errorf("--log-format %s: expected text or json", f))
	}
	return nil
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.format == "json" {
				return a.writeJSON(struct {
					header
					Version string `json:"version"`
				}{newHeader("Version"), version.Number()})
			}
			_, err := fmt.Fprintf(a.stdout, "tablectl %s\n", version.Number())
			return err
		},
	}
}

// noArgs and tableArg are cobra's checks with errors that count as usage errors.
func noArgs(cmd *cobra.Command, args []string) error { return usageError(cobra.NoArgs(cmd, args)) }

func tableArg(cmd *cobra.Command, args []string) error {
	return usageError(cobra.MaximumNArgs(1)(cmd, args))
}

// errUsage is wrapped by errors in what the user typed or configured.
var errUsage = errors.New("usage")

// usageError marks an error as the user's; nil stays nil.
func usageError(err error) error {
	if err == nil {
		return nil
	}
	return &markedError{err, errUsage}
}

// markedError adds a sentinel to an error without changing its text.
type markedError struct{ err, mark error }

func (e *markedError) Error() string { return e.err.Error() }

func (e *markedError) Unwrap() []error { return []error{e.err, e.mark} }
