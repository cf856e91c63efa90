package journal

import (
	"encoding/json"
	"fmt"

	"github.com/inferspan/inferspan/processor/meter"
)

// Decode reads one line of what Handler serves: what the JSON holds of a
// record.
func Decode(line []byte) (*meter.Record, error) {
	r := new(meter.Record)
	if err := json.Unmarshal(line, r); err != nil {
		return nil, fmt.Errorf("read a line of %d bytes: %w", len(line), err)
	}
	return r, nil
}
