package config

import (
	"fmt"
	"strconv"
)

// Shed says from when on a pool's requests are refused with 429: where each
// endpoint that could be picked is at one of the limits.
type Shed struct {
	// InFlight, Queue and KVUsage concern requests of a priority below 0. 0 is no
	// limit.
	InFlight int   `yaml:"in_flight" min:"0" max:"1000000"`
	Queue    int   `yaml:"queue" min:"0" max:"1000000"`
	KVUsage  Share `yaml:"kv_usage"`
	// Hard are the limits that concern all requests.
	Hard Limits `yaml:"hard"`
}

// Limits are how much an endpoint may have to do; 0: no limit.
type Limits struct {
	InFlight int   `yaml:"in_flight" min:"0" max:"1000000"`
	Queue    int   `yaml:"queue" min:"0" max:"1000000"`
	KVUsage  Share `yaml:"kv_usage"`
}

// Soft are the limits that concern requests of a priority below 0.
func (s *Shed) Soft() Limits { return Limits{InFlight: s.InFlight, Queue: s.Queue, KVUsage: s.KVUsage} }

// shed finds a hard limit that makes another useless.
func (v *validator) shed(path string, s Shed) {
	below := func(key, soft, hard string, is bool) {
		if is {
			v.failf(path+".hard."+key, "is %s, below %s.%s, %s; allowed: as much or more, or 0 for no limit", hard, path, key, soft)
		}
	}
	below("in_flight", strconv.Itoa(s.InFlight), strconv.Itoa(s.Hard.InFlight), s.Hard.InFlight > 0 && s.Hard.InFlight < s.InFlight)
	below("queue", strconv.Itoa(s.Queue), strconv.Itoa(s.Hard.Queue), s.Hard.Queue > 0 && s.Hard.Queue < s.Queue)
	below("kv_usage", fmt.Sprint(s.KVUsage), fmt.Sprint(s.Hard.KVUsage), s.Hard.KVUsage > 0 && s.Hard.KVUsage < s.KVUsage)
}

// shedWarnings tell of limits that can't be reached, or that concern nobody.
func (c *Config) shedWarnings() []string {
	var out []string
	for i, p := range c.Pools {
		path := fmt.Sprintf("pools[%d].shed", i)
		if p.Shed.Soft() != (Limits{}) && c.Trusted.Header == "" {
			out = append(out, path+": its limits concern requests of a priority below 0, and nobody may say one: set trusted")
		}
		told := p.Shed.Queue > 0 || p.Shed.KVUsage > 0 || p.Shed.Hard.Queue > 0 || p.Shed.Hard.KVUsage > 0
		if told && !p.Scrape.Enabled {
			out = append(out, path+": queue and kv_usage are never known, and so not reached, while scrape.enabled of the pool is false")
		}
	}
	return out
}
