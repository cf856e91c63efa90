package processor

import "github.com/inferspan/inferspan/processor/route"

// putOn counts the exchange at the endpoint of l, and no longer where it was
// counted before.
func (x *exchange) putOn(l route.Load) {
	x.unload()
	if !x.finished && x.guard("route", func() { x.s.cfg.Router.Begin(l) }) {
		x.load = l
	}
}

// unload takes the exchange off the endpoint that it is counted at.
func (x *exchange) unload() {
	if x.load.Endpoint == "" {
		return
	}
	l := x.load
	x.load = route.Load{}
	x.guard("route", func() { x.s.cfg.Router.End(l) })
}

// prefilled takes the exchange's prompt off what its endpoint has to do.
func (x *exchange) prefilled() {
	if x.load.Tokens == 0 {
		return
	}
	l := x.load
	x.load.Tokens = 0
	x.guard("route", func() { x.s.cfg.Router.Prefilled(l) })
}

// moved counts the exchange where Envoy says that it is served: the pick may
// have been tried and passed over.
func (x *exchange) moved(served string) {
	if served == "" || x.load.Endpoint == "" || served == x.load.Endpoint {
		return
	}
	l := x.load
	l.Endpoint = served
	x.putOn(l)
}
