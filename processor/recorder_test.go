package processor

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
)

// fakeRecording keeps what it is given, and checks the order of its calls.
type fakeRecording struct {
	mu              sync.Mutex
	calls           []string
	request, answer string
	status          int
	headers         []string
	last            time.Duration
	cause           meter.Cause
	record          *meter.Record
	panicIn         string
}

func (f *fakeRecording) call(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.calls); n == 0 || f.calls[n-1] != name {
		f.calls = append(f.calls, name)
	}
	if f.panicIn == name {
		panic("injected in " + name)
	}
}

func (f *fakeRecording) Request(method, path string, headers iter.Seq2[string, string]) {
	f.call("Request")
	f.headers = append(f.headers, method, path)
	for name, value := range headers {
		f.headers = append(f.headers, name+"="+value)
	}
}

func (f *fakeRecording) RequestBody(part []byte) { f.call("RequestBody"); f.request += string(part) }

func (f *fakeRecording) Response(at time.Duration, status int, headers iter.Seq2[string, string]) {
	f.call("Response")
	f.last, f.status = at, status
	for name, value := range headers {
		f.headers = append(f.headers, name+"="+value)
	}
}

func (f *fakeRecording) Frame(at time.Duration, part []byte) {
	f.call("Frame")
	if at < f.last || at%time.Microsecond != 0 {
		panic("a time that a recording can't hold: " + at.String())
	}
	f.last = at
	f.answer += string(part)
}

func (f *fakeRecording) End(c meter.Cause, r *meter.Record) {
	f.call("End")
	f.cause, f.record = c, r
}

func (f *fakeRecording) Drop() { f.call("Drop") }

// In every mode a recording gets what the client sent and what the server sent,
// whatever is rewritten, and then the record.
func TestRecordsWhatPassed(t *testing.T) {
	for _, request := range modes {
		for _, response := range modes {
			for _, s := range shapes() {
				t.Run(request.String()+"/"+response.String()+"/"+s.name, func(t *testing.T) {
					f := &fakeRecording{}
					b := newBench(t, func(c *Config) { c.Record = func() Recording { return f } })
					e := b.inline(request, response)
					play(t, e, request, response, s)
					e.hangUp()
					b.drained()
					if response == none {
						if len(f.calls) > 0 {
							t.Errorf("%v of an exchange that another stream accounts for", f.calls)
						}
						return
					}
					want := strings.Join(s.request, "")
					if request == none {
						want = ""
					}
					if f.request != want || f.answer != strings.Join(s.response, "") || f.status != 200 {
						t.Errorf("it has %q and %d %q", cut(f.request), f.status, cut(f.answer))
					}
					calls := []string{"Request", "RequestBody", "Response", "Frame", "End"}
					if request == none {
						calls = slices.Delete(calls, 1, 2)
					}
					if !slices.Equal(f.calls, calls) {
						t.Errorf("it was called %v, want %v", f.calls, calls)
					}
					if f.cause != meter.CauseEnd || f.record != b.one() {
						t.Errorf("it ended by %v with another record than telemetry", f.cause)
					}
					if f.headers[1] != "/v1/chat/completions" || !slices.Contains(f.headers, "x-request-id=req-1") {
						t.Errorf("its headers are %q", f.headers)
					}
				})
			}
		}
	}
}

// In observability mode too; and what another filter of ours answered is dropped.
func TestRecordsInObserveMode(t *testing.T) {
	for details, last := range map[string]string{"": "End", ownDetails + "no_endpoint": "Drop"} {
		f := &fakeRecording{}
		b := newBench(t, func(c *Config) { c.Record = func() Recording { return f } })
		e := b.observed()
		e.send(requestHeaders(false, chatHead()...))
		e.arrived()
		e.send(requestBody(`{"model":`, false))
		e.send(requestBody(`"m"}`, true))
		e.send(attributes(responseHeaders(false, streamHead...), map[string]any{"response.code_details": details}))
		e.send(responseBody("data: [DONE]\n\n", true))
		e.ended()
		b.drained()
		if f.request != `{"model":"m"}` || f.calls[len(f.calls)-1] != last {
			t.Errorf("%q: request %q, calls %v", details, f.request, f.calls)
		}
	}
}

// What we answer ourselves no server had a part in: it is dropped, failure or not.
func TestRecordsNoAnswerOfOurs(t *testing.T) {
	for path, status := range map[string]int32{"/v1/models": 200, "/v1/models/other": 404} {
		f := &fakeRecording{}
		b := newBench(t, func(c *Config) { c.Record = func() Recording { return f } })
		c := defaultPool(testEndpoint)
		c.Models = []route.Model{{Name: "m", Targets: []route.Target{{Pool: route.DefaultPool, Weight: 1}}}}
		b.useRouter(c)
		got := play(t, b.inline(buffered, streamed), buffered, streamed, shape{head: []string{":method", "GET", ":path", path}})
		if r := b.one(); r.Status != int(status) || got.immediate == nil || !slices.Equal(f.calls, []string{"Request", "Drop"}) {
			t.Errorf("%s: status %d, calls %v", path, r.Status, f.calls)
		}
	}
}

// A recording that panics is let go, and nothing else of the exchange is.
func TestRecordingPanics(t *testing.T) {
	for _, method := range []string{"Request", "RequestBody", "Response", "Frame", "End", "Drop"} {
		f := &fakeRecording{panicIn: method}
		b := newBench(t, func(c *Config) { c.Record = func() Recording { return f } })
		e := b.inline(buffered, streamed)
		got := play(t, e, buffered, streamed, shape{request: []string{`{"model":"m"}`}, response: []string{token, finished, "data: [DONE]\n\n"}})
		e.hangUp()
		if r := b.one(); r.Outcome != meter.OK || got.downstream != token+finished+"data: [DONE]\n\n" {
			t.Errorf("%s: outcome %s, %q passed", method, r.Outcome, got.downstream)
		}
		if n := b.telemetry.count(countPanic); n != btoi(method != "Drop") {
			t.Errorf("%s: %d panics were counted", method, n)
		}
	}
}

// An exchange that is not to be recorded passes as ever.
func TestRecordsNothing(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Record = func() Recording { return nil } })
	e := b.inline(buffered, streamed)
	play(t, e, buffered, streamed, shape{request: []string{`{"model":"m"}`}, response: []string{token}})
	e.hangUp()
	if r := b.one(); r.Outcome != meter.Truncated || b.telemetry.count(countPanic) != 0 {
		t.Errorf("outcome %s, %d panics", r.Outcome, b.telemetry.count(countPanic))
	}
}
