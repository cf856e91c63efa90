package route

import "time"

// The cost of a member is how long a request that goes there has to wait for it,
// compared with the other members:
//
//	cost = ((1 + requests + waiting + tokens/promptUnit) / share + kvWeight·kv²) · pace
//
// 1 is the request itself. requests are those in flight there: what is counted
// here (in flight and expected), which is right at once, and what others cause,
// which the server tells: running and waiting less what was counted here when it
// was asked. A waiting request counts twice, since it will be served first. tokens
// are of prompts that were sent from here and have no token of an answer yet. kv
// is the share of the cache in use: it is as good as nothing until the cache is
// nearly full, and then requests are thrown out and read again. share is the
// member's weight in relation to the mean weight, less while it starts slowly.
// pace is 1, and above it where tokens take far longer than elsewhere.
//
// What a server said counts by how fresh it is, and the rest of the way it is the
// mean of what the others said: a server of which nothing is known is taken for
// an average one, and compared by what is counted here.
const (
	// promptUnit is how many tokens of a prompt are as much work as one request
	// that is being answered.
	promptUnit = 1024
	// kvWeight is how many requests a full cache counts for.
	kvWeight = 16
	// slowPace is how many times longer than the mean a server's tokens may take
	// before it counts, and maxPace how much it counts at most.
	slowPace, maxPace = 1.25, 4
	// paceAge is after how long what was observed is worth nothing.
	paceAge = time.Minute
	// minRamp is the share of its weight that an endpoint starts with.
	minRamp = 0.1
)

// said is what a server says of itself as the cost takes it: requests of others
// and waiting requests, each per share of the pool, and kvWeight·kv².
type said [3]float64

// average is of the members that are fit to be picked. Where all are down or
// ejected, and in panic, it is of all.
type average struct {
	at     time.Duration
	useAll bool // too few are fit: all are to be used
	said   said
	rate   float64 // tokens per second of one stream
	load   float64 // the mean
}

// averageAge is how long an average holds for pools beyond scanMax.
const averageAge = 50 * time.Millisecond

// average returns the average of m at now.
func (m *members) average(u *Rules, now time.Duration) average {
	if len(m.list) <= scanMax {
		return m.newAverage(u, now)
	}
	if a := m.latest.Load(); a != nil && now-a.at < averageAge {
		return *a
	}
	a := m.newAverage(u, now)
	m.latest.Store(&a)
	return a
}

func (m *members) newAverage(u *Rules, now time.Duration) average {
	a := average{at: now}
	fit := 0
	for i := range m.list {
		if m.list[i].state.standing.fit(now) {
			fit++
		}
	}
	a.useAll = fit == 0 || float64(fit) < u.PanicThreshold*float64(len(m.list))
	var sum, trusts said
	var own, shares, rates float64
	observed := 0
	for i := range m.list {
		one := &m.list[i]
		if !a.useAll && !one.state.standing.fit(now) {
			continue
		}
		share := one.effective(u, now)
		shares += share
		own += one.state.own()
		if in := one.state.reading.Load(); in != nil {
			v, trust := in.said(share, now)
			for k, t := range trust {
				sum[k] += t * v[k]
				trusts[k] += t
			}
		}
		if o := one.state.observed.Load(); o != nil && o.tpot > 0 && now-o.at < paceAge {
			rates += 1 / time.Duration(o.tpot).Seconds()
			observed++
		}
	}
	for k, t := range trusts {
		if t > 0 {
			a.said[k] = sum[k] / t
		}
	}
	if observed > 0 {
		a.rate = rates / float64(observed)
	}
	if shares > 0 {
		a.load = own/shares + a.said.sum()
	}
	return a
}

// effective is the share of m at now, which grows while it starts slowly.
func (m *member) effective(u *Rules, now time.Duration) float64 {
	since := time.Duration(m.state.standing.since.Load())
	if u.SlowStart == 0 || since == 0 || now-since >= u.SlowStart {
		return m.share
	}
	return m.share * max(minRamp, float64(now-since)/float64(u.SlowStart))
}

// own is what is counted here, in requests.
func (s *state) own() float64 {
	return float64(s.counted()) + float64(s.tokens.Load())/promptUnit
}

// said is what r says of a member of share, and how much of it is to be believed
// at now: nothing of what the server did not say.
func (r *reading) said(share float64, now time.Duration) (v, trust said) {
	t := r.trust(now)
	if r.Running.OK {
		v[0], trust[0] = max(0, r.others)/share, t
	}
	if r.Waiting.OK {
		v[1], trust[1] = r.Waiting.V/share, t
	}
	if r.KVUsage.OK {
		v[2], trust[2] = kvWeight*r.KVUsage.V*r.KVUsage.V, t
	}
	return v, trust
}

func (s *said) sum() float64 { return s[0] + s[1] + s[2] }

// load is the cost of m without the request that is to come and without its pace.
func (m *member) load(u *Rules, a *average, now time.Duration) float64 {
	share := m.effective(u, now)
	is := a.said
	if in := m.state.reading.Load(); in != nil {
		v, trust := in.said(share, now)
		for k, t := range trust {
			is[k] += t * (v[k] - is[k])
		}
	}
	return m.state.own()/share + is.sum()
}

// cost is the cost of m.
func (m *member) cost(u *Rules, a *average, now time.Duration) float64 {
	return (1/m.effective(u, now) + m.load(u, a, now)) * m.pace(a, now)
}

// pace is how much longer the tokens of m take, from 1 to maxPace.
func (m *member) pace(a *average, now time.Duration) float64 {
	o := m.state.observed.Load()
	if o == nil || o.tpot == 0 || a.rate == 0 {
		return 1
	}
	fresh := max(0, 1-float64(now-o.at)/float64(paceAge))
	slower := time.Duration(o.tpot).Seconds()*a.rate/slowPace - 1
	return 1 + fresh*min(max(0, slower), maxPace-1)
}
