//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// models asks for the list, for one model and for another.
func (e *edge) models(t *testing.T) {
	const one = `{"id":"renamed","object":"model","created":0,"owned_by":"inferspan"}`
	list := `{"object":"list","data":[` + one + "," + strings.Replace(one, "renamed", "drained", 1) + `]}`
	for path, want := range map[string]string{"/v1/models": list, "/v1/models/renamed": one} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			x := e.mustPlay(t, testkit.Script{Name: "models", Status: http.StatusTeapot}, testkit.Call{Method: method, Path: path})
			body := want
			if method == http.MethodHead {
				body = ""
			}
			if x.Status != http.StatusOK || string(x.Body) != body || x.Header.Get("content-type") != "application/json" || x.Header.Get("content-length") != fmt.Sprint(len(want)) {
				t.Errorf("%s %s: status %d, %s with %v", method, path, x.Status, x.Body, x.Header)
			}
			if r := e.record(t, x.id); r["outcome"] != "ok" || r["status"] != 200.0 {
				t.Errorf("%s %s: the record is %v", method, path, r)
			}
			e.span(t, x.id)
		}
	}
	e.wantRejected(t, testkit.Call{Method: http.MethodGet, Path: "/v1/models/tiny"}, http.StatusNotFound)
}

// TestConversationsKeepTheirTarget has a model at two servers, one a pool, and
// asks for it by its alias too.
func TestConversationsKeepTheirTarget(t *testing.T) {
	for _, form := range []string{inline, splitDuplex} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.startInferspan(fmt.Sprintf(`pools:
- {name: stable, endpoints: [%q]}
- {name: canary, endpoints: [%q]}
models:
- {name: llama, aliases: [gpt], targets: [{pool: stable, model: tiny}, {pool: canary, model: tiny}]}
`, e.vllm[0].Addr(), e.vllm[1].Addr()))
			e.startEnvoy()
			pools := map[any]int{}
			for s := range 12 {
				var first any
				for i := range 4 {
					name := []string{"llama", "gpt"}[i%2]
					call := chatCall()
					call.Body = []byte(strings.Replace(tinyChat, `"tiny"`, `"`+name+`"`, 1))
					call.Header = append(call.Header, testkit.Header{Name: "x-session-id", Value: fmt.Sprintf("chat-%d", s)})
					x := e.mustPlay(t, chatScript("session", nil), call)
					if up := e.upstream(t, x.id); x.Status != http.StatusOK || string(up.Body) != tinyChat {
						t.Errorf("%s: status %d, the server got %s", name, x.Status, up.Body)
					}
					route, _ := e.record(t, x.id)["route"].(map[string]any)
					if i == 0 {
						first = route["pool"]
						pools[first]++
					}
					if route["pool"] != first || route["endpoint"] != route["served"] {
						t.Errorf("request %d of the conversation %d went to %v, the first to %v", i, s, route, first)
					}
				}
			}
			if pools["stable"] == 0 || pools["canary"] == 0 {
				t.Errorf("the conversations are at %v, want both", pools)
			}
		})
	}
}
