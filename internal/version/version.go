// Package version says which build of tablectl this is.
package version

import "runtime/debug"

// number is set by the linker in releases.
var number = "dev"

// Number is the version: that of the release, or that of the source it was
// built from.
func Number() string {
	if number != "dev" {
		return number
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "dev-" + s.Value[:12]
			}
		}
	}
	return number
}

// Writer names this program in the files it writes.
func Writer() string { return "tablectl version " + Number() }
