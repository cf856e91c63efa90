package meter_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/inferspan/inferspan/processor/meter"
)

// whole is a record with everything that its JSON tells.
func whole() *meter.Record {
	us := func(n int) meter.Opt[time.Duration] { return meter.Some(time.Duration(n) * time.Microsecond) }
	return &meter.Record{
		Name:      "chat-usage",
		RequestID: "r1",
		Trace: meter.Trace{
			TraceID: [16]byte{0xAB, 15: 1},
			SpanID:  [8]byte{7: 0xCD},
		},
		Start:           time.Date(2026, 11, 30, 10, 35, 3, 120_000, time.UTC),
		RequestModel:    meter.Some("llama"),
		Model:           meter.Some("llama-v2"),
		ResponseID:      meter.Some("chatcmpl-1"),
		Status:          200,
		Outcome:         meter.OK,
		Stream:          true,
		Choices:         3,
		Finish:          []meter.Opt[string]{meter.Some("stop"), {}, meter.Some("length")},
		PromptTokens:    meter.Some[int64](20),
		CachedTokens:    meter.Some[int64](0),
		ReasoningTokens: meter.Some[int64](3),
		OutputTokens:    meter.Some[int64](24),
		OutputSource:    meter.SourceUsage,
		FirstByte:       us(1), FirstEvent: us(2), Role: us(3), FirstToken: us(4), FirstTokenKind: meter.KindContent,
		FirstAnswer: us(5), LastToken: us(6), LongestGap: us(0), End: 7 * time.Microsecond,
		Events: 8, Frames: 9, SharedFrames: 10, KeepAlives: 11, Bytes: 12,
		Sent: meter.Some[int64](0), ClientDrain: us(13),
		EvidenceEvents: []int64{23, 0, 1},
		ServerMetrics:  &meter.ServerMetrics{TimeToFirstTokenMS: meter.Some(1.5), QueueTimeMS: meter.Some(0.0)},
		Route: meter.Route{
			Pool: "default", Endpoint: "127.0.0.1:8001", Served: "127.0.0.1:8002", Policy: "least-load", Reason: "picked",
			Candidates: []string{"127.0.0.1:8001", "127.0.0.1:8002"}, Attempts: 2,
			Start: 30 * time.Microsecond, Duration: 40 * time.Microsecond,
		},
	}
}

const wholeJSON = `{"name":"chat-usage","request_id":"r1","trace_id":"ab000000000000000000000000000001","span_id":"00000000000000cd",` +
	`"start":"2026-11-30T10:35:03.000120Z","request_model":"llama","model":"llama-v2","response_id":"chatcmpl-1","status":200,` +
	`"outcome":"ok","stream":true,"choices":3,"finish":["stop",null,"length"],` +
	`"prompt_tokens":20,"cached_tokens":0,"reasoning_tokens":3,"output_tokens":24,"output_source":"usage",` +
	`"first_byte_us":1,"first_event_us":2,"role_us":3,"first_token_us":4,"first_token_kind":"content","first_answer_us":5,` +
	`"last_token_us":6,"longest_gap_us":0,"end_us":7,"client_drain_us":13,"events":8,"frames":9,"shared_frames":10,"keep_alives":11,"bytes":12,"sent_bytes":0,` +
	`"evidence_events":{"0":23,"2":1},` +
	`"server_metrics":{"time_to_first_token_ms":1.5,"generation_time_ms":null,"queue_time_ms":0,"mean_itl_ms":null,"tokens_per_second":null},` +
	`"route":{"pool":"default","endpoint":"127.0.0.1:8001","served":"127.0.0.1:8002","policy":"least-load","reason":"picked",` +
	`"candidates":["127.0.0.1:8001","127.0.0.1:8002"],"attempts":2,"start_us":30,"duration_us":40}}`

const emptyJSON = `{"name":null,"request_id":null,"trace_id":null,"span_id":null,"start":null,"request_model":null,"model":null,` +
	`"response_id":null,"status":null,"outcome":null,"stream":false,"choices":0,"finish":[],"prompt_tokens":null,"cached_tokens":null,` +
	`"reasoning_tokens":null,"output_tokens":null,"output_source":null,"first_byte_us":null,"first_event_us":null,"role_us":null,` +
	`"first_token_us":null,"first_token_kind":null,"first_answer_us":null,"last_token_us":null,"longest_gap_us":null,"end_us":0,"client_drain_us":null,` +
	`"events":0,"frames":0,"shared_frames":0,"keep_alives":0,"bytes":0,"sent_bytes":null,"evidence_events":{},"server_metrics":null,"route":null}`

func TestRecordJSON(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]*meter.Record{wholeJSON: whole(), emptyJSON: {}} {
		if got := string(r.AppendJSON([]byte("x"))); got != "x"+want {
			t.Errorf("\n got %s\nwant x%s", got, want)
		}
		marshalled, err := json.Marshal(r)
		if err != nil || string(marshalled) != want {
			t.Errorf("Marshal: %v\n got %s\nwant %s", err, marshalled, want)
		}
		var back meter.Record
		if err := json.Unmarshal([]byte(want), &back); err != nil || !reflect.DeepEqual(&back, r) {
			t.Errorf("Unmarshal: %v\n got %+v\nwant %+v", err, back, *r)
		}
	}
}

func TestRecordJSONOfPartOfARoute(t *testing.T) {
	t.Parallel()
	r := meter.Record{Route: meter.Route{Reason: "unrouted"}}
	want := `"route":{"pool":null,"endpoint":null,"served":null,"policy":null,"reason":"unrouted","candidates":null,"attempts":null,"start_us":null,"duration_us":null}}`
	if got := string(r.AppendJSON(nil)); !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want its end %s", got, want)
	}
}

func TestRecordJSONRoundsDown(t *testing.T) {
	t.Parallel()
	r := meter.Record{
		Start:     time.Date(2026, 1, 1, 0, 0, 0, 999_999_999, time.FixedZone("", 3600)),
		FirstByte: meter.Some(1999 * time.Nanosecond),
		LastToken: meter.Some(-1 * time.Nanosecond),
	}
	got := string(r.AppendJSON(nil))
	for _, want := range []string{`"start":"2025-12-31T23:00:00.999999Z"`, `"first_byte_us":1,`, `"last_token_us":-1,`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s: no %s", got, want)
		}
	}
}

func TestRecordJSONOfHostileValues(t *testing.T) {
	t.Parallel()
	r := meter.Record{
		RequestID:    "\x00\xff\u2028\"\\",
		RequestModel: meter.Some("\xf0\x9f<script>\n"),
		Finish:       []meter.Opt[string]{meter.Some("\xc0")},
		ServerMetrics: &meter.ServerMetrics{
			MeanITLMS: meter.Some(math.Inf(1)), QueueTimeMS: meter.Some(math.NaN()), TokensPerSecond: meter.Some(2.0),
		},
	}
	line := r.AppendJSON(nil)
	if !json.Valid(line) || !utf8.Valid(line) || bytes.ContainsRune(line, '\n') {
		t.Fatalf("no valid line: %q", line)
	}
	var back meter.Record
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatal(err)
	}
	if back.RequestModel.V != "\uFFFD\uFFFD<script>\n" || back.RequestID != "\x00\uFFFD\u2028\"\\" {
		t.Errorf("model %q, request id %q", back.RequestModel.V, back.RequestID)
	}
	if m := back.ServerMetrics; m.MeanITLMS.OK || m.QueueTimeMS.OK || m.TokensPerSecond != meter.Some(2.0) {
		t.Errorf("server metrics %+v", m)
	}
}

func TestRecordFromJSONErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"status":"x"}`:                   "decode a record of 14 bytes: json: cannot unmarshal string into Go struct field recordJSON.status of type int",
		`{"start":"today"}`:                `decode a record: start: parsing time "today" as "2006-01-02T15:04:05.999999999Z07:00": cannot parse "today" as "2006"`,
		`{"trace_id":"ab"}`:                `decode a record: trace_id: "ab", want 32 hex digits`,
		`{"span_id":"zzzzzzzzzzzzzzzz"}`:   `decode a record: span_id: "zzzzzzzzzzzzzzzz", want 16 hex digits`,
		`{"evidence_events":{"-1":1}}`:     `decode a record: evidence_events: choice "-1", want 0 to 65535`,
		`{"evidence_events":{"100000":1}}`: `decode a record: evidence_events: choice "100000", want 0 to 65535`,
	} {
		r := meter.Record{Name: "before"}
		if err := r.UnmarshalJSON([]byte(line)); err == nil || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
		if r.Name != "before" {
			t.Errorf("%s: the record was changed", line)
		}
	}
}

func TestRecordFromJSONPassesOverNewMembers(t *testing.T) {
	t.Parallel()
	var r meter.Record
	if err := json.Unmarshal([]byte(`{"name":"x","novelty":{"a":1}}`), &r); err != nil || r.Name != "x" {
		t.Errorf("got %q, %v", r.Name, err)
	}
}
