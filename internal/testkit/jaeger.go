package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// Jaeger is a running Jaeger that keeps traces in memory.
type Jaeger struct {
	*Process
	// OTLP is where it takes spans over gRPC, Query where its API is.
	OTLP, Query string
}

// StartJaeger starts Jaeger on free ports and returns when it is ready.
func StartJaeger(ctx context.Context) (*Jaeger, error) {
	bin, err := Tool("jaeger")
	if err != nil {
		return nil, err
	}
	j := &Jaeger{}
	var admin, queryGRPC, otlpHTTP, oldGRPC, oldHTTP string
	var args []string
	for _, listen := range []struct {
		flag string
		addr *string
	}{
		{"collector.otlp.grpc.host-port", &j.OTLP},
		{"query.http-server.host-port", &j.Query},
		{"admin.http.host-port", &admin},
		{"query.grpc-server.host-port", &queryGRPC},
		{"collector.otlp.http.host-port", &otlpHTTP},
		{"collector.grpc-server.host-port", &oldGRPC},
		{"collector.http-server.host-port", &oldHTTP},
	} {
		if *listen.addr, err = FreeAddr(); err != nil {
			return nil, err
		}
		args = append(args, "--"+listen.flag+"="+*listen.addr)
	}
	j.Process, err = StartProcess("Jaeger", bin, args, []string{"SPAN_STORAGE_TYPE=memory"})
	if err != nil {
		return nil, err
	}
	if err := j.waitReady(ctx, "http://"+admin+"/"); err != nil {
		return nil, err
	}
	return j, nil
}

// JaegerSpan is a span as Jaeger's API shows it. Values are of JSON's types.
type JaegerSpan struct {
	TraceID, SpanID, Name string
	Start                 time.Time
	Duration              time.Duration
	Attributes            map[string]any
	Events                []JaegerEvent
}

// JaegerEvent is an event of a span, with its name among the attributes.
type JaegerEvent struct {
	At         time.Time
	Attributes map[string]any
}

// Trace returns the spans of a trace, none where there is no such trace.
func (j *Jaeger) Trace(ctx context.Context, id string) ([]JaegerSpan, error) {
	return j.spans(ctx, "/api/traces/"+url.PathEscape(id))
}

// Find returns the spans of the traces of a service in which a span has these
// attributes, at most limit traces.
func (j *Jaeger) Find(ctx context.Context, service string, attributes map[string]string, limit int) ([]JaegerSpan, error) {
	tags, err := json.Marshal(attributes)
	if err != nil {
		return nil, fmt.Errorf("asking Jaeger: %w", err)
	}
	form := url.Values{"service": {service}, "lookback": {"1h"}, "limit": {fmt.Sprint(limit)}}
	if len(attributes) > 0 {
		form.Set("tags", string(tags))
	}
	return j.spans(ctx, "/api/traces?"+form.Encode())
}

type jaegerTag struct {
	Key   string
	Value any
}

func jaegerAttributes(tags []jaegerTag) map[string]any {
	m := make(map[string]any, len(tags))
	for _, t := range tags {
		m[t.Key] = t.Value
	}
	return m
}

func (j *Jaeger) spans(ctx context.Context, path string) ([]JaegerSpan, error) {
	page, err := Get(ctx, "http://"+j.Query+path)
	if err != nil {
		return nil, fmt.Errorf("asking Jaeger: %w", err)
	}
	var answer struct {
		Data []struct {
			Spans []struct {
				TraceID       string
				SpanID        string
				OperationName string
				StartTime     int64 // µs
				Duration      int64 // µs
				Tags          []jaegerTag
				Logs          []struct {
					Timestamp int64 // µs
					Fields    []jaegerTag
				}
			}
		}
	}
	if err := json.Unmarshal(page, &answer); err != nil {
		return nil, fmt.Errorf("asking Jaeger: %w in %.200s", err, page)
	}
	var all []JaegerSpan
	for _, trace := range answer.Data {
		for _, s := range trace.Spans {
			span := JaegerSpan{
				TraceID: s.TraceID, SpanID: s.SpanID, Name: s.OperationName,
				Start: time.UnixMicro(s.StartTime), Duration: time.Duration(s.Duration) * time.Microsecond,
				Attributes: jaegerAttributes(s.Tags),
			}
			for _, l := range s.Logs {
				span.Events = append(span.Events, JaegerEvent{At: time.UnixMicro(l.Timestamp), Attributes: jaegerAttributes(l.Fields)})
			}
			all = append(all, span)
		}
	}
	return all, nil
}
