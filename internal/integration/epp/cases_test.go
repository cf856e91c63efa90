//go:build integration

package epp

import (
	"strconv"
	"strings"
	"testing"
)

// The cases here are those that the reference implementation of the protocol
// tests itself by, with what this one does where the two differ: frames go back
// as they come, only what changed is set, and what names no model goes to the
// pool `default`.

// The least loaded is picked by what the pods' metrics say.
func TestPicksByMetrics(t *testing.T) {
	pods := []*pod{newPod(t, 3, .2), newPod(t, 0, .1), newPod(t, 10, .2)}
	p := start(t, pool("default", pods...))
	scraped(t, pods...)
	for range 3 {
		g := p.open(t)
		if got := g.pick(ask); got != pods[1].addr {
			t.Errorf("picked %q, want %q, where nothing waits", got, pods[1].addr)
		}
	}
}

// The pod that runs the adapter is picked although its cache is fuller.
func TestPicksByAdapter(t *testing.T) {
	pods := []*pod{newPod(t, 0, .2, "foo", "bar"), newPod(t, 0, .4, "foo", "m"), newPod(t, 0, .2, "foo")}
	p := start(t, pool("default", pods...)+"  policy: lora\n")
	scraped(t, pods...)
	if got := p.open(t).pick(ask); got != pods[1].addr {
		t.Errorf("picked %q, want %q, which runs the adapter", got, pods[1].addr)
	}
}

// A subset wins over the load.
func TestSubsetBeatsLoad(t *testing.T) {
	pods := []*pod{newPod(t, 0, .1), newPod(t, 10, .9)}
	p := start(t, pool("default", pods...))
	scraped(t, pods...)
	g := p.open(t)
	g.lasting = subset(t, pods[1].addr)
	if got := g.pick(ask); got != pods[1].addr {
		t.Errorf("picked %q, want the only one of the subset", got)
	}
}

// Nobody is shed unasked: saturated pods still get what comes.
func TestSaturatedIsStillRouted(t *testing.T) {
	a := newPod(t, 100, 1)
	p := start(t, pool("default", a))
	scraped(t, a)
	g := p.open(t)
	g.send(headers(false, append([]string{"x-gateway-inference-objective", "sheddable"}, chat...)...))
	g.send(requestBody(ask, true))
	if header, _, _ := g.picked(); header != a.addr {
		t.Errorf("picked %q", header)
	}
}

// The decision goes out as soon as the model is known, before the body's end.
func TestDecidesBeforeTheEnd(t *testing.T) {
	a := newPod(t, 0, 0)
	p := start(t, pool("default", a))
	body := `{"max_tokens":100,"model":"sql-lora-sheddable","prompt":"test1","temperature":0}`
	g := p.open(t)
	g.send(headers(false, chat...))
	g.send(requestBody(body[:25], false)) // ends within the name
	g.send(requestBody(body[25:48], false))
	if header, _, _ := g.picked(); header != a.addr {
		t.Errorf("picked %q", header)
	}
	if got, ended := g.body(48); string(got) != body[:48] || ended {
		t.Errorf("the first frames are %q, ended %t", got, ended)
	}
	g.send(requestBody(body[48:], true))
	if got, ended := g.body(len(body)); string(got) != body[48:] || !ended {
		t.Errorf("the rest is %q, ended %t", got, ended)
	}
}

// What names no model goes to the pool `default` and keeps its bytes; without
// such a pool it is refused.
func TestBodiesWithoutAModel(t *testing.T) {
	a := newPod(t, 0, 0)
	withDefault, without := start(t, pool("default", a)), start(t, pool("other", a))
	for _, body := range []string{"no healthy upstream", `{"prompt":"hello world"}`, "\x00\x00\x00\x00\x05grpc!", ""} {
		if got := withDefault.open(t).pick(body); got != a.addr {
			t.Errorf("%q: picked %q", body, got)
		}
		g := without.open(t)
		g.send(headers(false, chat...))
		g.send(requestBody(body, true))
		checkError(t, g.rejected(), 400)
	}
}

// A model that is to be called otherwise is so in the body, and its client's name
// in what comes back.
func TestRewritesTheModel(t *testing.T) {
	a := newPod(t, 0, 0)
	p := start(t, pool("default", a)+"models:\n- {name: asked, targets: [{pool: default, model: rewritten-model}]}\n")
	g := p.open(t)
	g.send(headers(false, chat...))
	g.send(requestBody(`{"model":"as`, false))
	g.send(requestBody(`ked","prompt":"a \"model\": \"asked\""}`, true))
	g.picked()
	want := `{"model":"rewritten-model","prompt":"a \"model\": \"asked\""}`
	if got, ended := g.body(len(want) + 1); string(got) != want || !ended {
		t.Errorf("the body is %q, ended %t, want %q", got, ended, want)
	}
	g.send(responseHeaders(false, ":status", "200", "content-type", "text/event-stream"))
	g.recv()
	event := `data: {"id":"1","object":"chat.completion.chunk","model":"rewritten-model","choices":[{"index":0,"delta":{"content":"\"model\":\"rewritten-model\""}}]}` + "\n\n"
	g.send(responseBody(event[:60], false))
	g.send(responseBody(event[60:], false))
	g.send(responseBody("data: [DONE]\n\n", true))
	back := strings.Replace(event, `"model":"rewritten-model",`, `"model":"asked",`, 1) + "data: [DONE]\n\n"
	if got, ended := g.body(len(back) + 1); string(got) != back || !ended {
		t.Errorf("the response is %q, ended %t, want %q", got, ended, back)
	}
}

// A stream that shows only the response passes as it comes, whatever it is.
func TestResponseOnly(t *testing.T) {
	p := start(t, pool("default", newPod(t, 0, 0)))
	for name, frames := range map[string][]string{
		"json in two":        {`{"max_tokens":100,"model":"sql-lo`, `ra-sheddable"}`},
		"an empty last one":  {`{"max_tokens":100}`, ""},
		"no JSON":            {"no healthy upstream"},
		"events":             {"data: {}\n\n", `data: {"usage":{"prompt_tokens":7,"total_tokens":17,"completion_tokens":10}}` + "\ndata: [DONE]\n\n", ""},
		"130 KB in one":      {strings.Repeat("x", 130<<10)},
		"nothing but an end": {""},
	} {
		t.Run(name, func(t *testing.T) {
			g := p.open(t)
			g.send(responseHeaders(false, ":status", "200", "content-type", "text/event-stream"))
			if r := g.recv(); r.GetResponseHeaders() == nil {
				t.Fatalf("got %v, want the reply to the headers", r)
			}
			for i, f := range frames {
				g.send(responseBody(f, i == len(frames)-1))
			}
			all := strings.Join(frames, "")
			if got, ended := g.body(len(all) + 1); string(got) != all || !ended {
				t.Errorf("%d bytes came back, ended %t, want %d", len(got), ended, len(all))
			}
		})
	}
}

// What the picker thinks of the candidates is no metadata of anybody else's.
func TestOnlyTheProtocolsMetadata(t *testing.T) {
	a := newPod(t, 0, 0)
	p := start(t, pool("default", a))
	g := p.open(t)
	g.send(headers(true, ":method", "GET", ":path", "/v1/models"))
	lb := g.recv().GetDynamicMetadata().GetFields()["envoy.lb"].GetStructValue().GetFields()
	if len(lb) != 1 || lb[destination].GetStringValue() != a.addr {
		t.Errorf("envoy.lb is %v, want the destination alone", lb)
	}
}

// P8: a list of endpoints, the picked one first, each ip:port and each once.
func TestP8FallbackList(t *testing.T) {
	pods := []*pod{newPod(t, 9, .5), newPod(t, 0, 0), newPod(t, 3, .2)}
	p := start(t, pool("default", pods...)+"  fallback_endpoints: 2\n")
	scraped(t, pods...)
	g := p.open(t)
	if got, want := g.pick(ask), pods[1].addr+","+pods[2].addr; got != want {
		t.Errorf("the list is %q, want the two best in order, %q", got, want)
	}
	g = p.open(t)
	g.lasting = subset(t, pods[0].addr)
	if got := g.pick(ask); got != pods[0].addr {
		t.Errorf("the list is %q, want %q, the only one of the subset", got, pods[0].addr)
	}
}

// P10: what may be dropped gets 429 where the pods have enough to do, and is told
// when to come back; the rest is served.
func TestP10Shed(t *testing.T) {
	a := newPod(t, 50, .9)
	p := start(t, pool("default", a)+"  shed: {queue: 10}\ntrusted: {header: x-tier, value: internal}\n")
	scraped(t, a)
	head := append([]string{"x-tier", "internal", "x-inferspan-priority", "-1"}, chat...)
	g := p.open(t)
	g.send(headers(false, head...))
	g.send(requestBody(ask, true))
	i := g.rejected()
	checkError(t, i, 429)
	after := ""
	for _, o := range i.GetHeaders().GetSetHeaders() {
		if o.GetHeader().GetKey() == "retry-after" {
			after = string(o.GetHeader().GetRawValue())
		}
	}
	if n, err := strconv.Atoi(after); err != nil || n < 1 {
		t.Errorf("retry-after is %q, want seconds", after)
	}
	for name, head := range map[string][]string{
		"no priority": chat,
		"nobody's":    append([]string{"x-inferspan-priority", "-1"}, chat...),
	} {
		g := p.open(t)
		g.send(headers(false, head...))
		g.send(requestBody(ask, true))
		if header, _, _ := g.picked(); header != a.addr {
			t.Errorf("%s: picked %q", name, header)
		}
	}
}
