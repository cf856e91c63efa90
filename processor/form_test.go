package processor

import (
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/meter"
	"github.com/inferspan/inferspan/processor/route"
)

// formHead are the headers of a form.
func formHead(path string) []string {
	return []string{
		":method", "POST", ":path", path, "x-request-id", "req-1",
		"content-type", `multipart/form-data; boundary="b b"`,
	}
}

func formField(disposition, content string) string {
	return "--b b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + content + "\r\n"
}

// form is one with a file of size bytes before the fields, and JSON where no
// part is yet.
func form(size int) string {
	return `{"model":"no","stream":true}` + "\r\n" +
		formField(`name="file"; filename="a.wav"`, strings.Repeat("\r\n--b", size/5)) +
		formField(`name="model"`, "alias") + formField(`name="stream"`, "true") +
		formField(`name="stream_include_usage"`, "true") + "--b b--\r\n"
}

func renamed() route.Config {
	return route.Config{
		Pools: []route.Pool{{Name: testPool, Endpoints: []route.Endpoint{{Address: testEndpoint}}}},
		Models: []route.Model{
			{Name: "alias", Targets: []route.Target{{Pool: testPool, Model: "real-name", Weight: 1}}},
		},
	}
}

// A form is routed by its model, cut anywhere, and keeps its bytes: neither is
// the model renamed nor usage asked for.
func TestForms(t *testing.T) {
	body := form(50_000)
	for _, mode := range deciding {
		for _, path := range []string{"/v1/audio/transcriptions", "/v1/chat/completions", "/v1/images/edits"} {
			for name, request := range map[string][]string{
				"whole": {body}, "in three": {body[:20], body[20:50_100], body[50_100:]},
			} {
				t.Run(mode.String()+path+"/"+name, func(t *testing.T) {
					b := newBench(t, func(c *Config) { c.AskUsage = AskAlways })
					b.useRouter(renamed())
					e := b.inline(mode, streamed)
					got := play(t, e, mode, streamed, shape{head: formHead(path), request: request, response: []string{"{}"}})
					e.hangUp()
					if got.upstream != body {
						t.Errorf("%d bytes went on, want the %d that came", len(got.upstream), len(body))
					}
					if _, set := got.set["content-length"]; set {
						t.Error("content-length is set")
					}
					if got.set[destinationHeader] != testEndpoint || got.metadata["inferspan/model"] != "alias" {
						t.Errorf("it goes to %q, for the model %q", got.set[destinationHeader], got.metadata["inferspan/model"])
					}
					if r := b.one(); r.Asked.Model != "alias" || r.Route.Pool != testPool {
						t.Errorf("the record has the model %q, pool %q", r.Asked.Model, r.Route.Pool)
					}
				})
			}
		}
	}
}

// Of a form that only passes by, the record has what was asked.
func TestObservedForm(t *testing.T) {
	b := newBench(t)
	e := b.observed()
	e.send(requestHeaders(false, formHead("/v1/audio/translations")...))
	for _, line := range strings.SplitAfter(form(500), "\n") {
		e.send(requestBody(line, line == ""))
	}
	e.send(responseHeaders(true, ":status", "204"))
	e.ended()
	want := dialect.Request{
		Dialect: dialect.Transcription, Model: "alias", HasModel: true,
		Stream: true, IncludeUsage: true, N: -1, MaxTokens: -1,
	}
	if r := b.one(); r.Asked != want {
		t.Errorf("asked %+v, want %+v", r.Asked, want)
	}
}

// A form is held for its model up to the same limit as JSON.
func TestHoldLimitOfForms(t *testing.T) {
	for _, c := range []struct {
		size    int
		outcome meter.Outcome
	}{{5_000, meter.OK}, {50_000, meter.Rejected}} {
		b := newBench(t, func(c *Config) { c.HoldLimit = 20_000 })
		b.useRouter(renamed())
		e := b.inline(duplex, streamed)
		body := form(c.size)
		file, fields := body[:c.size], body[c.size:]
		got := play(t, e, duplex, streamed, shape{
			head: formHead("/v1/audio/transcriptions"), request: []string{file, fields},
			responseHead: []string{":status", "200", "content-type", "application/json"}, response: []string{`{"text":"a"}`},
		})
		if c.outcome == meter.Rejected {
			checkRejection(t, got, 413, "too_large")
		}
		e.hangUp()
		if r := b.one(); r.Outcome != c.outcome {
			t.Errorf("with a file of %d bytes the outcome is %s, want %s", c.size, r.Outcome, c.outcome)
		}
	}
}
