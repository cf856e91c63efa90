//go:build integration

package integration

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/inferspan/inferspan/internal/testkit"
)

// The delivered configurations, by file name.
const (
	inline      = "inline"
	duplex      = "inline-duplex"
	observe     = "observe"
	split       = "split"
	splitDuplex = "split-duplex"
)

// forms are all of them, deciding those that decide where requests go.
var (
	forms    = []string{inline, duplex, observe, split, splitDuplex}
	deciding = []string{inline, duplex, split, splitDuplex}
)

// routed tells whether a form decides where requests go.
func routed(form string) bool { return slices.Contains(deciding, form) }

// whole tells whether a form has the request in one piece before it decides, and
// streams whether it decides while the request's pieces go through it.
func whole(form string) bool   { return form == inline || form == split }
func streams(form string) bool { return form == duplex || form == splitDuplex }

// watched tells whether a form has the response in observability mode.
func watched(form string) bool { return form == observe || handsOver(form) }

// handsOver tells whether two filters share the work.
func handsOver(form string) bool { return form == split || form == splitDuplex }

// stats are the names of a form's filters in Envoy's statistics.
func stats(form string) []string {
	if handsOver(form) {
		return []string{"http.inference.ext_proc.route.", "http.inference.ext_proc.observe."}
	}
	return []string{"http.inference.ext_proc."}
}

// patience bounds every wait for something that should happen soon.
const patience = 30 * time.Second

// edge is one Envoy with a delivered configuration, two model servers behind
// it, and inferspan and an OTLP receiver beside it.
type edge struct {
	t         testing.TB
	form      string
	addr      string // of Envoy's listener
	listen    string // where inferspan listens; "" before it does
	envoy     *testkit.Envoy
	vllm      [2]*testkit.VLLM
	servers   [2]string          // the addresses of vllm, or of others in their place
	inferspan *testkit.Inferspan // nil: absent
	sink      *testkit.Sink
	adapt     replacer // of Envoy's configuration, nil: it is taken as it is
	client    *testkit.Client
	client2   *testkit.Client // HTTP/2

	mu      sync.Mutex
	scripts map[string]testkit.Script // by request id
	unseen  map[string]bool           // request ids that the processor must not see
	serial  int
}

// replacer changes a configuration; a *strings.Replacer is one.
type replacer interface{ Replace(config string) string }

// startEdge starts all parts.
func startEdge(t *testing.T, form string) *edge {
	t.Helper()
	e := newEdge(t, form)
	e.startInferspan(e.config("default"))
	e.startEnvoy()
	return e
}

// config serves the model servers as the named pool, the model tiny also under
// a name that they don't know, and a model whose pool is empty.
func (e *edge) config(pool string) string {
	return fmt.Sprintf(`pools:
- {name: %[1]s, endpoints: [%[2]q, %[3]q]}
- {name: drained, endpoints: []}
models:
- {name: renamed, targets: [{pool: %[1]s, model: tiny}]}
- {name: drained, targets: [{pool: drained}]}
`, pool, e.servers[0], e.servers[1])
}

// newEdge starts the model servers and the receiver.
func newEdge(t testing.TB, form string) *edge {
	t.Helper()
	e := &edge{t: t, form: form, scripts: map[string]testkit.Script{}, unseen: map[string]bool{}}
	for i := range e.vllm {
		v, err := testkit.NewVLLM(testkit.VLLMOptions{Choose: e.choose, Keep: 1000})
		e.must(err)
		t.Cleanup(func() { _ = v.Close() })
		e.vllm[i], e.servers[i] = v, v.Addr()
	}
	var err error
	e.sink, err = testkit.NewSink()
	e.must(err)
	t.Cleanup(e.sink.Close)
	return e
}

func (e *edge) startInferspan(config string) {
	e.t.Helper()
	e.inferspan = e.startReplica(e.listen, config)
	e.listen = e.inferspan.Listen
}

// startReplica starts an inferspan that listens at listen, or where there is room.
func (e *edge) startReplica(listen, config string) *testkit.Inferspan {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	i, err := testkit.StartInferspan(ctx, testkit.InferspanOptions{
		Binary: binary, Dir: e.t.TempDir(), Listen: listen, Config: config, Env: e.sink.Env(),
	})
	e.must(err)
	e.t.Cleanup(func() {
		i.Kill()
		if e.t.Failed() {
			e.t.Logf("inferspan wrote:\n%s", i.Log())
		}
	})
	return i
}

func (e *edge) startEnvoy() {
	e.t.Helper()
	root, err := testkit.ModuleRoot()
	e.must(err)
	file, err := os.ReadFile(filepath.Join(root, "deploy", "envoy", e.form+".yaml"))
	e.must(err)
	config, err := testkit.RenderEnvoy(string(file), testkit.EnvoyAddrs{
		Processor: e.listen, VLLM: e.servers,
	})
	e.must(err)
	if e.adapt != nil {
		adapted := e.adapt.Replace(config)
		if adapted == config {
			e.t.Fatal("nothing of the configuration was adapted")
		}
		config = adapted
	}
	dir := e.t.TempDir()
	path := filepath.Join(dir, "envoy.yaml")
	e.must(os.WriteFile(path, []byte(config), 0o600))

	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	e.envoy, err = testkit.StartEnvoy(ctx, path, dir)
	e.must(err)
	e.t.Cleanup(func() {
		e.client.Close()
		e.client2.Close()
		e.envoy.Kill()
		if e.t.Failed() {
			e.t.Logf("Envoy wrote:\n%s", e.envoy.Log())
		}
	})
	e.addr, err = e.envoy.ListenerAddr(ctx, "inference")
	e.must(err)
	e.client, e.client2 = testkit.NewClient(e.addr, false), testkit.NewClient(e.addr, true)
}

func (e *edge) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// choose answers a request by the script of its request id.
func (e *edge) choose(r *http.Request, _ []byte) (testkit.Script, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.scripts[r.Header.Get("x-request-id")]
	return s, ok
}

// exchange is one call through the edge, and what came of it.
type exchange struct {
	*testkit.Answer
	id string // its x-request-id
}

// play sends call through Envoy and has the model server answer it by s.
func (e *edge) play(ctx context.Context, s testkit.Script, call testkit.Call) (exchange, error) {
	return e.playBy(ctx, e.client, s, call)
}

func (e *edge) playBy(ctx context.Context, c *testkit.Client, s testkit.Script, call testkit.Call) (exchange, error) {
	e.mu.Lock()
	e.serial++
	id := fmt.Sprintf("%s-%s-%d", e.form, s.Name, e.serial)
	e.scripts[id] = s
	e.mu.Unlock()
	call.Header = append([]testkit.Header{{Name: "x-request-id", Value: id}}, call.Header...)
	ctx, cancel := context.WithTimeout(ctx, patience+20*time.Second)
	defer cancel()
	a, err := c.Do(ctx, call)
	return exchange{a, id}, err
}

// mustPlay is play for answers that must have a head.
func (e *edge) mustPlay(t *testing.T, s testkit.Script, call testkit.Call) exchange {
	t.Helper()
	x, err := e.play(t.Context(), s, call)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// unmeasured notes that the exchange with this id is to have no record.
func (e *edge) unmeasured(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unseen[id] = true
}

// upstream returns the one request with this id that a model server got.
func (e *edge) upstream(t *testing.T, id string) testkit.Received {
	t.Helper()
	var all []testkit.Received
	for _, v := range e.vllm {
		all = append(all, v.Received(func(r testkit.Received) bool { return r.Header.Get("x-request-id") == id })...)
	}
	if len(all) != 1 {
		t.Fatalf("%d requests with the id %s arrived at the model servers, want 1", len(all), id)
	}
	return all[0]
}

// span waits for the span of the exchange with this id.
func (e *edge) span(t *testing.T, id string) testkit.Span {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := e.sink.WaitSpan(ctx, func(s testkit.Span) bool {
		_, has := testkit.Attr(s.GetAttributes(), "inferspan.outcome")
		return has && testkit.HasAttrs(s.GetAttributes(), map[string]any{"inferspan.request.id": id})
	})
	if err != nil {
		t.Fatalf("the span of %s: %v", id, err)
	}
	return s
}

// record waits for the record of the exchange with this id and wants it to be
// the only one.
func (e *edge) record(t *testing.T, id string) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var records []map[string]any
	err := testkit.Poll(ctx, func(ctx context.Context) (err error) {
		records, err = e.inferspan.Lookup(ctx, id)
		return err
	})
	if err != nil {
		t.Fatalf("the record of %s: %v", id, err)
	}
	if len(records) != 1 {
		t.Fatalf("%d records of %s, want 1", len(records), id)
	}
	return records[0]
}

// trap listens where nothing may connect. Its func returns how many did.
func trap(t *testing.T) (addr string, connections func() int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan int)
	go func() {
		n := 0
		for {
			conn, err := ln.Accept()
			if err != nil {
				done <- n
				return
			}
			n++
			_ = conn.Close()
		}
	}()
	return ln.Addr().String(), func() int { _ = ln.Close(); return <-done }
}

// refusing returns an address that refuses connections for as long as the test
// runs: a socket is bound to it that does not listen.
func refusing(t testing.TB) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}
