package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/journal"
)

// jaegerAnswer is an answer of Jaeger 1.76: a request that came to its end, its
// child, and the span of another service.
const jaegerAnswer = `{"data":[{"traceID":"0102030405060708090a0b0c0d0e0f10","spans":[
{"traceID":"0102030405060708090a0b0c0d0e0f10","spanID":"1112131415161718","operationName":"chat llama","startTime":1796072400000000,"duration":210000,
 "references":[{"refType":"CHILD_OF","traceID":"0102030405060708090a0b0c0d0e0f10","spanID":"2122232425262728"}],
 "tags":[{"key":"gen_ai.request.model","type":"string","value":"llama\u001b"},{"key":"gen_ai.response.id","type":"string","value":"chatcmpl-7"},
  {"key":"gen_ai.response.finish_reasons","type":"string","value":"[\"stop\",\"error\"]"},{"key":"http.response.status_code","type":"int64","value":200},
  {"key":"inferspan.request.id","type":"string","value":"req-1"},{"key":"inferspan.outcome","type":"string","value":"ok"},
  {"key":"inferspan.output_tokens","type":"int64","value":24},{"key":"inferspan.usage.source","type":"string","value":"usage"},
  {"key":"inferspan.time_to_first_event","type":"float64","value":0.02},{"key":"inferspan.time_to_first_token","type":"float64","value":0.021001},
  {"key":"inferspan.pool","type":"string","value":"default"},{"key":"inferspan.endpoint","type":"string","value":"10.0.0.1:8000"},
  {"key":"inferspan.route.candidates","type":"string","value":"[\"10.0.0.1:8000\",\"10.0.0.2:8000\"]"},
  {"key":"inferspan.engine.queue.duration","type":"float64","value":0.5}],
 "logs":[{"timestamp":1796072400200000,"fields":[{"key":"event","type":"string","value":"inferspan.last_token"}]}]},
{"traceID":"0102030405060708090a0b0c0d0e0f10","spanID":"3132333435363738","operationName":"route","startTime":1796072400000100,"duration":7,
 "references":[{"refType":"CHILD_OF","traceID":"0102030405060708090a0b0c0d0e0f10","spanID":"1112131415161718"}],"tags":[],"logs":[]},
{"traceID":"0102030405060708090a0b0c0d0e0f10","spanID":"4142434445464748","operationName":"POST","startTime":1796072400000000,"duration":210000,"tags":[],"logs":[]}
]}]}`

const jaegerRecord = `{"bytes":null,"cached_tokens":null,"choices":null,"client_drain_us":null,"end_us":210000,"events":null,"evidence_events":null,` +
	`"finish":["stop",null],"first_answer_us":null,"first_byte_us":null,"first_event_us":20000,"first_token_kind":null,"first_token_us":21001,` +
	`"frames":null,"keep_alives":null,"last_token_us":200000,"longest_gap_us":null,"model":null,"name":null,"outcome":"ok","output_source":"usage",` +
	`"output_tokens":24,"prompt_tokens":null,"reasoning_tokens":null,"request_id":"req-1","request_model":"llama\u001b","response_id":"chatcmpl-7",` +
	`"role_us":null,"route":{"pool":"default","endpoint":"10.0.0.1:8000","served":null,"policy":null,"reason":null,` +
	`"candidates":["10.0.0.1:8000","10.0.0.2:8000"],"attempts":null,"start_us":100,"duration_us":7},"sent_bytes":null,` +
	`"server_metrics":{"time_to_first_token_ms":null,"generation_time_ms":null,"queue_time_ms":500,"mean_itl_ms":null,"tokens_per_second":null},` +
	`"shared_frames":null,"span_id":"1112131415161718","start":"2026-11-30T21:00:00.000000Z","status":200,"stream":true,` +
	`"trace_id":"0102030405060708090a0b0c0d0e0f10"}`

// What the journal no longer has is found in Jaeger, by each of its ids.
func TestLookup_Jaeger(t *testing.T) {
	admin := adminOf(t, journal.New(0).Handler())
	asked := make(chan string, 10)
	url := adminOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked <- r.URL.Path + " " + q.Get("service") + " " + q.Get("tags")
		switch {
		case strings.HasSuffix(r.URL.Path, "/0102030405060708090a0b0c0d0e0f10"), strings.Contains(q.Get("tags"), `"req-1"`) && strings.Contains(q.Get("tags"), "request"):
			writef(w, "%s", jaegerAnswer)
		case r.URL.Path != "/api/traces":
			w.WriteHeader(http.StatusNotFound)
			writef(w, `{"errors":[{"code":404,"msg":"trace not found"}]}`)
		default:
			writef(w, `{"data":[]}`)
		}
	}))
	f := func(id string, want ...string) {
		t.Helper()
		r := inferspan(t, "lookup", id, "--admin", admin, "--jaeger", url, "--json")
		if r.Code != 0 || !strings.Contains(r.Stderr, "this is what Jaeger's span says") {
			t.Errorf("%+v", r)
		}
		var got, record map[string]any
		if err := json.Unmarshal([]byte(jaegerRecord), &record); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(record, got); diff != "" {
			t.Errorf("the record (-want +got):\n%s", diff)
		}
		for _, w := range want {
			if q := <-asked; q != w {
				t.Errorf("asked for %q, want %q", q, w)
			}
		}
	}
	f("0102030405060708090a0b0c0d0e0f10", "/api/traces/0102030405060708090a0b0c0d0e0f10  ")
	f("req-1", `/api/traces inferspan {"gen_ai.response.id":"req-1"}`, `/api/traces inferspan {"inferspan.request.id":"req-1"}`)

	r := inferspan(t, "lookup", "req-1", "--admin", admin, "--jaeger", url)
	if r.Code != 0 || !strings.Contains(r.Stdout, `llama\x1b`) || !strings.Contains(r.Stdout, "10.0.0.1:8000, pool default") {
		t.Errorf("as a waterfall: %+v", r)
	}
	for len(asked) > 0 {
		<-asked
	}
	r = inferspan(t, "lookup", "gone", "--admin", admin, "--jaeger", url, "--service", "other")
	want := `inferspan lookup: no record of "gone": the journal of ` + admin + " is empty (a request comes into it when it has ended; of several Inferspans, one has it); jaeger at " + url +
		" has no span of it either, of the service other within 7 days\n"
	if r.Code != 1 || r.Stderr != want {
		t.Errorf("without a trace: %+v, want %q", r, want)
	}
}

func TestLookup_JaegerFails(t *testing.T) {
	admin := adminOf(t, journal.New(0).Handler())
	url := adminOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writef(w, "<html>\x1b") }))
	r := inferspan(t, "lookup", "x", "--admin", admin, "--jaeger", url)
	if r.Code != 1 || !strings.Contains(r.Stderr, `; jaeger at `+url+` answered 200: "<html>\x1b"`) {
		t.Errorf("what is no Jaeger: %+v", r)
	}
	r = inferspan(t, "lookup", "x", "--admin", admin, "--jaeger", "http://a/?b")
	if r.Code != 2 || !strings.HasPrefix(r.Stderr, `inferspan lookup: --jaeger is "http://a/?b", want a URL such as`) {
		t.Errorf("what is no URL: %+v", r)
	}
}
