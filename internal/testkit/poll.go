package testkit

import (
	"context"
	"fmt"
	"time"
)

// Poll calls f until it returns nil, for conditions that can only be asked
// for, not waited for: a port that opens, a file that appears. It returns f's
// last error when ctx ends.
func Poll(ctx context.Context, f func(context.Context) error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}
