package config

// hold finds a total in which not one of the requests has room that it is for.
func (v *validator) hold(r Request) {
	if r.HoldTotal < r.HoldLimit {
		v.failf("request.hold_total", "is %s, below request.hold_limit, %s; allowed: as much or more", r.HoldTotal, r.HoldLimit)
	}
}
