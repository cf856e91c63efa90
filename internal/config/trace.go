package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keep says which spans go out.
type Keep struct {
	// Share is the part of the exchanges sampled at the head that is kept.
	Share Share `yaml:"share"`
	// Always names what is kept whatever the head and the share say; nil: all
	// that can be named.
	Always []KeepPolicy `yaml:"always"`
	// Slow are the times beyond which an exchange is slow.
	Slow Thresholds `yaml:"slow"`
}

// Thresholds are times that an exchange is to stay within; 0: any is good.
type Thresholds struct {
	TTFT     time.Duration `yaml:"ttft" min:"0s"`
	TPOT     time.Duration `yaml:"tpot" min:"0s"`
	Duration time.Duration `yaml:"duration" min:"0s"`
}

// Share is a part of a whole, from 0 to 1.
type Share float64

func (s *Share) parse(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1 {
		return errors.New("which is no share; allowed: a number from 0 to 1, such as 0.05")
	}
	*s = Share(f)
	return nil
}

// KeepPolicy is a reason to keep a span.
type KeepPolicy string

// keepPolicies are telemetry's; a test of the program holds them together.
var keepPolicies = []string{"forced", "failed", "slo_missed", "slow", "stalled", "cancelled"}

func (p *KeepPolicy) parse(text string) error {
	if !slices.Contains(keepPolicies, text) {
		return fmt.Errorf("which is no policy%s; allowed: %s", nearest(text, keepPolicies), strings.Join(keepPolicies, ", "))
	}
	*p = KeepPolicy(text)
	return nil
}
