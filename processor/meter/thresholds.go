package meter

import "time"

// Thresholds are times that an exchange is to stay within; 0: any is good.
type Thresholds struct{ TTFT, TPOT, Duration time.Duration }
