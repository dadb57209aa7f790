package compact_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails where a run leaves a goroutine behind, whatever its end.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
