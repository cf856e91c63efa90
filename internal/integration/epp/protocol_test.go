//go:build integration

package epp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/inferspan/inferspan/internal/testkit"
)

const ask = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`

// P1, P2: the service is Envoy's, and streams in full duplex both ways. Frames
// go back as they came, the end of each direction once, trailers after it.
func TestP2FullDuplex(t *testing.T) {
	a := newPod(t, 0, 0)
	p := start(t, pool("default", a))
	g := p.open(t)
	g.send(headers(false, chat...))
	g.send(requestBody(ask[:20], false))
	g.send(requestBody(ask[20:], false))
	g.send(requestTrailers("x-signature", "9"))
	if header, _, _ := g.picked(); header != a.addr {
		t.Errorf("picked %q, want %q", header, a.addr)
	}
	if got, ended := g.body(len(ask)); string(got) != ask || ended {
		t.Errorf("the body is %q, ended %t", got, ended)
	}
	if r := g.recv(); r.GetRequestTrailers() == nil {
		t.Errorf("got %v, want the reply to the trailers", r)
	}
	g.send(responseHeaders(false, ":status", "200", "content-type", "text/event-stream"))
	if r := g.recv(); r.GetResponseHeaders() == nil {
		t.Errorf("got %v, want the reply to the response's headers", r)
	}
	for _, event := range []string{"data: {}\n\n", "data: [DONE]\n\n"} {
		g.send(responseBody(event, false))
		// The next frame is not sent before this one came back.
		if got, ended := g.body(len(event)); string(got) != event || ended {
			t.Errorf("the event is %q, ended %t", got, ended)
		}
	}
	g.send(responseTrailers("x-checksum", "7"))
	if r := g.recv(); r.GetResponseTrailers() == nil {
		t.Errorf("got %v, want the reply to the response's trailers", r)
	}
}

// P3, P4, P5, P6: the subset hint, with a body and without one.
func TestP4SubsetHint(t *testing.T) {
	a, b, c := newPod(t, 0, 0), newPod(t, 0, 0), newPod(t, 0, 0)
	p := start(t, pool("default", a, b, c))
	host, _, _ := strings.Cut(b.addr, ":")
	for name, k := range map[string]struct {
		hint *core.Metadata
		want []string // none: 503
	}{
		"no hint":            {nil, []string{a.addr, b.addr, c.addr}},
		"one":                {subset(t, b.addr), []string{b.addr}},
		"two, one unknown":   {subset(t, "10.9.9.9:8000", c.addr), []string{c.addr}},
		"as one string":      {metadata(t, "envoy.lb.subset_hint", subsetHint, a.addr+","+c.addr), []string{a.addr, c.addr}},
		"another port":       {subset(t, host+":1"), nil},
		"no port":            {subset(t, host), nil},
		"none of the pool":   {subset(t, "192.168.1.99:8000"), nil},
		"empty":              {subset(t), nil},
		"what is no address": {subset(t, 7.0, true), nil},
	} {
		for _, shape := range []string{"body", "body, hint on the headers only", "no body"} {
			t.Run(name+"/"+shape, func(t *testing.T) {
				g := p.open(t)
				switch shape {
				case "no body":
					g.send(headers(true, ":method", "GET", ":path", "/v1/models"), k.hint)
				case "body":
					g.lasting = k.hint
					g.send(headers(false, chat...))
					g.send(requestBody(ask, true))
				default:
					g.send(headers(false, chat...), k.hint)
					g.send(requestBody(ask, true))
				}
				if len(k.want) == 0 {
					checkError(t, g.rejected(), 503)
					return
				}
				header, md, _ := g.picked()
				if !strings.Contains(strings.Join(k.want, " "), header) || header != md {
					t.Errorf("picked %q, in the metadata %q, want one of %q", header, md, k.want)
				}
			})
		}
	}
}

// checkError holds an answer of ours against the form of OpenAI's errors.
func checkError(t *testing.T, i *extproc.ImmediateResponse, status int) {
	t.Helper()
	if got := int(i.GetStatus().GetCode()); got != status {
		t.Errorf("status %d, want %d: %s", got, status, i.GetBody())
	}
	var body struct {
		Error struct {
			Message, Type string
			Code          int
		}
	}
	if err := json.Unmarshal(i.GetBody(), &body); err != nil || body.Error.Message == "" || body.Error.Code != status {
		t.Errorf("the body is %s (%v)", i.GetBody(), err)
	}
	set := map[string]string{}
	for _, o := range i.GetHeaders().GetSetHeaders() {
		set[o.GetHeader().GetKey()] = string(o.GetHeader().GetRawValue())
	}
	if set["content-type"] != "application/json" || set["x-inferspan-reason"] == "" {
		t.Errorf("the headers are %v", set)
	}
	if i.GetDetails() != "inferspan_"+set["x-inferspan-reason"] {
		t.Errorf("the details are %q", i.GetDetails())
	}
}

// P5, P10: without an endpoint it is 503, with a body and without one.
func TestP10EmptyPool(t *testing.T) {
	p := start(t, "pools:\n- name: default\n")
	g := p.open(t)
	g.send(headers(true, ":method", "GET", ":path", "/v1/models"))
	checkError(t, g.rejected(), 503)
	g = p.open(t)
	g.send(headers(false, chat...))
	g.send(requestBody(ask, true))
	checkError(t, g.rejected(), 503)
}

// P7, P11: the pick is in a header and in the metadata, and both are equal. Only
// what changed is set, and a client's own destination does not outlive it.
func TestP7HeaderAndMetadata(t *testing.T) {
	a := newPod(t, 0, 0)
	p := start(t, pool("default", a))
	for name, end := range map[string]bool{"body": false, "no body": true} {
		t.Run(name, func(t *testing.T) {
			g := p.open(t)
			g.send(headers(end, append([]string{destination, "10.6.6.6:1", served, "10.6.6.6:1", "hi", "mom"}, chat...)...))
			if !end {
				g.send(requestBody(ask, true))
			}
			header, md, set := g.picked()
			if header != a.addr || md != a.addr {
				t.Errorf("picked %q, in the metadata %q, want %q", header, md, a.addr)
			}
			if got := names(set); fmt.Sprint(got) != "[traceparent "+destination+"]" {
				t.Errorf("it sets %q, want the destination and the trace context only", got)
			}
		})
	}
}

// P12: Envoy reports who served. It is on the record, and in the counts.
func TestP12ServedEndpoint(t *testing.T) {
	a, b := newPod(t, 0, 0), newPod(t, 0, 0)
	p := start(t, pool("default", a, b))
	g := p.open(t)
	g.lasting = subset(t, a.addr)
	if got := g.pick(ask); got != a.addr {
		t.Fatalf("picked %q, want %q", got, a.addr)
	}
	g.lasting = metadata(t, "envoy.lb", served, b.addr)
	g.send(responseHeaders(false, ":status", "200", "content-type", "application/json"))
	g.recv()
	// What is in flight is so at the endpoint that served: the next goes elsewhere.
	if got := p.open(t).pick(ask); got != a.addr {
		t.Errorf("the next goes to %q, want %q, which serves nothing", got, a.addr)
	}
	g.send(responseBody(`{}`, true))
	g.body(3)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := testkit.Poll(ctx, func(ctx context.Context) error {
		records, err := p.Lookup(ctx, "epp-1")
		if err != nil {
			return err
		}
		for _, r := range records {
			route, _ := r["route"].(map[string]any)
			if route["endpoint"] == a.addr && route["served"] == b.addr {
				return nil
			}
		}
		return fmt.Errorf("no record of %s served by %s: %v", a.addr, b.addr, records)
	})
	if err != nil {
		t.Error(err)
	}
}

// P13: the three names of health.
func TestP13Health(t *testing.T) {
	p := start(t, pool("default", newPod(t, 0, 0)))
	client := grpc_health_v1.NewHealthClient(p.conn)
	for _, name := range []string{"liveness", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor"} {
		r, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || r.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%s: %v, %v", name, r.GetStatus(), err)
		}
	}
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "another"}); err == nil {
		t.Error("a name that nobody knows is served")
	}
	watch, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "readiness"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := watch.Recv(); err != nil || r.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("watched: %v, %v", r.GetStatus(), err)
	}
}

// A body larger than gRPC's usual limit passes in pieces that Envoy takes.
func TestLargeMessages(t *testing.T) {
	a := newPod(t, 0, 0)
	p := start(t, pool("default", a))
	body := `{"model":"m","prompt":"` + strings.Repeat("x", 5<<20) + `"}`
	g := p.open(t)
	g.send(headers(false, chat...))
	g.send(requestBody(body, true))
	if header, _, _ := g.picked(); header != a.addr {
		t.Errorf("picked %q", header)
	}
	if got, ended := g.body(len(body) + 1); !bytes.Equal(got, []byte(body)) || !ended {
		t.Errorf("got %d bytes, ended %t, want %d", len(got), ended, len(body))
	}
}
