package processor

import (
	"net/http"
	"strings"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
)

// tellRouter says what the exchange showed of its endpoint. It may run on another
// goroutine than the exchange's, after it.
func (x *exchange) tellRouter(r *meter.Record) {
	if r.Route.Endpoint == "" && r.Route.Served == "" {
		return
	}
	d := route.Result{
		Pool: r.Route.Pool, Endpoint: r.Route.Endpoint, Served: r.Route.Served,
		Attempts:     r.Route.Attempts,
		Failure:      failure(r, x.response.details),
		TTFT:         r.FirstToken.V,
		Model:        r.RequestModel.V,
		PromptBytes:  x.request.promptBytes,
		PromptTokens: route.Opt[int64](r.PromptTokens),
		CachedTokens: route.Opt[int64](r.CachedTokens),
	}
	if r.Headers.OK {
		d.Headers = r.Headers.V - r.Route.Start - r.Route.Duration
	}
	for _, s := range r.TPOT {
		d.TPOT += s.Value / time.Duration(len(r.TPOT))
	}
	x.guard("route", func() { x.s.cfg.Router.Done(d) })
}

// failure is how the server failed the exchange, if it did. A timeout is its fault
// only where nothing came: limits on how long an answer takes are the operator's.
// Nor is it to blame for what Envoy answered without having tried it; details are
// Envoy's response code details, "" where it does not tell.
func failure(r *meter.Record, details string) route.Failure {
	switch {
	case r.Outcome == meter.UpstreamReset:
		return route.FailedReset
	case r.Outcome == meter.Timeout && !r.FirstByte.OK:
		return route.FailedTimeout
	case r.Outcome != meter.HTTPError || r.Status < http.StatusInternalServerError || r.Status == http.StatusNotImplemented:
		return route.NoFailure
	case details == "" || details == "via_upstream":
		return route.FailedStatus
	case strings.HasSuffix(details, "timeout"):
		return route.FailedTimeout
	case strings.HasPrefix(details, "upstream_reset") && !strings.Contains(details, "overflow"):
		return route.FailedConnect
	default:
		return route.NoFailure
	}
}
