package processor

// Apply has exchanges that begin from now on go by the settings of c; those
// under way keep theirs. What a Service works with stays as New got it:
// Telemetry, Router, Journal, Record, Logger and Now.
func (s *Service) Apply(c Config) {
	c.Telemetry, c.Router, c.Journal, c.Record = s.cfg.Telemetry, s.cfg.Router, s.cfg.Journal, s.cfg.Record
	c.Logger, c.Now = s.cfg.Logger, s.cfg.Now
	c = c.withDefaults()
	s.applied.Store(&c)
}

// settings is what an exchange that begins now goes by.
func (s *Service) settings() *Config {
	if c := s.applied.Load(); c != nil {
		return c
	}
	return &s.cfg
}
