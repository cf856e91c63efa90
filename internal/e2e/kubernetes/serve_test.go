//go:build e2e_k8s

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// edge is an Envoy with the inline filter before two servers, which are the
// pods of a pool.
type edge struct {
	space

	inferspan *testkit.Inferspan
	client    *testkit.Client
	vllm      [2]*testkit.VLLM
	port      string // of both
}

func newEdge(t *testing.T) *edge {
	t.Helper()
	e := &edge{space: newSpace(t)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var addrs [2]string
	for i, addr := range []string{"127.0.0.1:0", "127.0.0.2:"} {
		v, err := testkit.NewVLLM(testkit.VLLMOptions{Addr: addr + e.port, FreshIDs: true})
		e.must(err)
		t.Cleanup(func() { _ = v.Close() })
		_, e.port, err = net.SplitHostPort(v.Addr())
		e.must(err)
		e.vllm[i], addrs[i] = v, v.Addr()
	}
	e.apply("apiVersion: inference.networking.k8s.io/v1\nkind: InferencePool\nmetadata: {name: llama}\n" +
		"spec: {selector: {matchLabels: {app: vllm}}, targetPorts: [{number: " + e.port + "}]}\n")
	for _, name := range []string{"vllm-0", "vllm-1"} {
		e.pod(name, "vllm")
	}
	e.ready("vllm-0", "127.0.0.1", true)

	binary, err := testkit.BuildInferspan(ctx, t.TempDir())
	e.must(err)
	e.inferspan, err = testkit.StartInferspan(ctx, testkit.InferspanOptions{
		Binary: binary, Dir: t.TempDir(),
		Config: "kubernetes: {kubeconfig: " + e.config("") + "}\n" +
			"pools: [{name: default, discover: {inference_pool: {name: llama}}, scrape: {enabled: false}}]\n",
	})
	e.must(err)
	e.inferspan.KillAtEnd(t)

	envoy, err := testkit.StartDelivered(ctx, "inline.yaml", testkit.EnvoyAddrs{Processor: e.inferspan.Listen, VLLM: addrs}, t.TempDir())
	e.must(err)
	envoy.KillAtEnd(t)
	addr, err := envoy.ListenerAddr(ctx, "inference")
	e.must(err)
	e.client = testkit.NewClient(addr, false)
	t.Cleanup(e.client.Close)
	return e
}

// chat plays a stream at the server i; its end waits for gate, where there is one.
func (e *edge) chat(i int, id string, gate <-chan struct{}, onPiece func([]byte)) (*testkit.Answer, error) {
	chunk := `data: {"id":"chatcmpl-00000000","model":"llama","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":%s}]}` + "\n\n"
	e.vllm[i].Enqueue(testkit.Script{
		Status: http.StatusOK, Header: []testkit.Header{{Name: "content-type", Value: "text/event-stream"}},
		Pieces: []testkit.Piece{
			{Data: fmt.Appendf(nil, chunk, "Hi", "null")},
			{Data: fmt.Appendf(nil, chunk+"data: [DONE]\n\n", "!", `"stop"`), After: gate},
		},
	})
	return e.ask(id, onPiece)
}

func (e *edge) ask(id string, onPiece func([]byte)) (*testkit.Answer, error) {
	return e.client.Do(e.t.Context(), testkit.Call{
		Method: http.MethodPost, Path: "/v1/chat/completions", OnPiece: onPiece,
		Header: []testkit.Header{{Name: "content-type", Value: "application/json"}, {Name: "x-request-id", Value: id}},
		Body:   []byte(`{"model":"llama","stream":true,"messages":[{"role":"user","content":"Hi"}]}`),
	})
}

// record waits for the record of a request.
func (e *edge) record(id string) (record map[string]any) {
	e.t.Helper()
	e.eventually(func(ctx context.Context) error {
		records, err := e.inferspan.Lookup(ctx, id)
		if err == nil && len(records) != 1 {
			err = fmt.Errorf("%d records of %s", len(records), id)
		}
		if err == nil {
			record = records[0]
		}
		return err
	})
	return record
}

// discovered waits until so many endpoints are in use.
func (e *edge) discovered(n int) {
	e.t.Helper()
	want := fmt.Sprintf("\ninferspan_discovery_endpoints{inferspan_pool=\"default\"} %d\n", n)
	e.eventually(func(ctx context.Context) error {
		page, err := testkit.Get(ctx, "http://"+e.inferspan.Admin+"/metrics")
		if err == nil && !strings.Contains(string(page), want) {
			err = fmt.Errorf("no line %q", want)
		}
		return err
	})
}

func (e *edge) eventually(f func(context.Context) error) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	e.must(testkit.Poll(ctx, f))
}

// Requests go where the pods are. One that is being deleted gets no new one, and
// the stream that it has goes on to its end.
func TestServe(t *testing.T) {
	e := newEdge(t)
	f := func(i int, id string) {
		t.Helper()
		a, err := e.chat(i, id, nil, nil)
		e.must(err)
		route, _ := e.record(id)["route"].(map[string]any)
		if want := e.vllm[i].Addr(); a.Status != http.StatusOK || a.Broken || route["endpoint"] != want || route["served"] != want {
			t.Errorf("%s: status %d, broken %t, route %v, want %s", id, a.Status, a.Broken, route, want)
		}
	}
	f(0, "first")

	gate, begun, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		once := false
		a, err := e.chat(0, "long", gate, func([]byte) {
			if !once {
				once = true
				close(begun)
			}
		})
		if err != nil || a.Status != http.StatusOK || a.Broken || !strings.HasSuffix(string(a.Body), "[DONE]\n\n") {
			t.Errorf("the stream under way: %+v, %v", a, err)
		}
	}()
	<-begun
	e.remove("v1", "Pod", "vllm-0")
	e.discovered(0)
	a, err := e.ask("nowhere", nil)
	e.must(err)
	if a.Status != http.StatusServiceUnavailable || !strings.Contains(string(a.Body), "has no endpoint") {
		t.Errorf("with no pod: %d %s, want our 503", a.Status, a.Body)
	}
	e.ready("vllm-1", "127.0.0.2", true)
	e.discovered(1)
	for i := range 4 {
		f(1, fmt.Sprintf("later-%d", i))
	}
	close(gate)
	<-ended
	if r := e.record("long"); r["outcome"] != "ok" {
		t.Errorf("the stream under way: outcome %v", r["outcome"])
	}
	e.gone("vllm-0")

	// Without the API server all goes on.
	plane.StopAPI()
	f(1, "without")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	e.must(plane.StartAPI(ctx))
	e.ready("vllm-1", "127.0.0.2", false)
	e.discovered(0)
	if err := e.inferspan.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// A replica that may not see the pods takes no traffic, says why, and does as
// soon as it may: a roll-out stops there, and goes on by itself.
func TestReadiness(t *testing.T) {
	s := newSpace(t)
	s.pool("vllm", 8000)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	binary, err := testkit.BuildInferspan(ctx, t.TempDir())
	s.must(err)
	file := filepath.Join(t.TempDir(), "inferspan.yaml")
	s.must(os.WriteFile(file, []byte("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nkubernetes: {kubeconfig: "+s.config(s.account())+"}\n"+
		"pools: [{name: default, discover: {inference_pool: {name: llama}}}]\n"), 0o600))
	p, err := testkit.StartProcess("inferspan", binary, []string{"serve", "--config", file}, nil)
	s.must(err)
	p.KillAtEnd(t)
	var said struct{ Msg, Admin string }
	logged := func(msg string) {
		t.Helper()
		_, err := p.WaitLine(ctx, func(line string) bool { return json.Unmarshal([]byte(line), &said) == nil && said.Msg == msg })
		s.must(err)
	}
	logged("wait for endpoints")
	ready := "http://" + said.Admin + "/readyz"
	s.must(testkit.Poll(ctx, func(ctx context.Context) error {
		page, err := testkit.Get(ctx, ready)
		if err == nil {
			t.Fatalf("it is ready: %s", page)
		}
		if !strings.Contains(string(page), "not ready: pool default, inference_pool llama") || !strings.Contains(string(page), "is forbidden") {
			return fmt.Errorf("it says %q: %w", page, err)
		}
		return nil
	}))
	s.grant()
	logged("ready")
	_, err = testkit.Get(ctx, ready)
	s.must(err)
	s.must(p.Stop(ctx))
}
