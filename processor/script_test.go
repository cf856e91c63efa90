package processor

import (
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/wire"
)

// message is a wire.Message in short.
type message struct {
	phase       string
	body        string
	end         bool
	observe     bool
	headers     []string
	requestTime string
	request     wire.BodyMode // with response: the first message's configuration
	response    wire.BodyMode
}

var phases = map[string]wire.Phase{
	"request_headers": wire.RequestHeaders, "request_body": wire.RequestBody, "request_trailers": wire.RequestTrailers,
	"response_headers": wire.ResponseHeaders, "response_body": wire.ResponseBody, "response_trailers": wire.ResponseTrailers,
}

func (m message) wire() *wire.Message {
	w := &wire.Message{
		Phase: phases[m.phase], EndOfStream: m.end, Body: []byte(m.body), Observe: m.observe,
		HasConfig: m.request != 0, RequestMode: m.request, ResponseMode: m.response,
	}
	w.Attributes.RequestTime = m.requestTime
	for i := 0; i+1 < len(m.headers); i += 2 {
		w.Headers = append(w.Headers, wire.Header{Name: m.headers[i], Value: m.headers[i+1]})
	}
	return w
}

// replies takes what an exchange sends.
type replies struct{ sent []wire.Reply }

func (r *replies) Send(reply *wire.Reply) error {
	c := *reply
	c.Body = append([]byte(nil), c.Body...)
	c.Set = append([]wire.Header(nil), c.Set...)
	r.sent = append(r.sent, c)
	return nil
}

// newTestService is a Service whose clock stands still: the times of messages
// are given with them.
func newTestService() (*Service, *fakeTelemetry) {
	tel := newFakeTelemetry()
	return New(Config{
		Telemetry: tel, Router: newFakeRouter(), Now: func() time.Time { return epoch },
		DeferredClose: time.Second, Meter: meter.Options{},
	}), tel
}

func deliver(t *testing.T, x *exchange, at time.Time, m message) {
	t.Helper()
	if _, err := x.handle(m.wire(), at); err != nil {
		t.Fatal(err)
	}
}
