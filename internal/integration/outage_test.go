//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/inferspan/inferspan/internal/testkit"
)

// controlHeaders are what Envoy and inferspan tell each other by.
var controlHeaders = []string{
	"x-gateway-destination-endpoint", "x-gateway-destination-endpoint-served",
	"x-gateway-destination-endpoint-subset", "x-inferspan-pool", "x-inferspan-ctx",
}

const tinyChat = `{"model":"tiny","messages":[{"role":"user","content":"hello"}],"stream":true}`

func chatCall() testkit.Call {
	return testkit.Call{
		Method: http.MethodPost, Path: "/v1/chat/completions", Body: []byte(tinyChat),
		Header: []testkit.Header{{Name: "content-type", Value: "application/json"}},
	}
}

// chatScript answers with a stream of three frames; the second waits for gate,
// where there is one.
func chatScript(name string, gate <-chan struct{}) testkit.Script {
	head := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"tiny","choices":[{"index":0,`
	return testkit.Script{
		Name: name, Status: http.StatusOK,
		Header: []testkit.Header{{Name: "content-type", Value: "text/event-stream; charset=utf-8"}},
		Pieces: []testkit.Piece{
			{Data: []byte(head + `"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n")},
			{Data: []byte(head + `"delta":{"content":"Hi"},"finish_reason":null}]}` + "\n\n"), After: gate},
			{Data: []byte(head + `"delta":{"content":"!"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")},
		},
	}
}

func TestProcessorAbsentAtTheStart(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t, form)
			e.listen = refusing(t)
			e.startEnvoy()
			e.withoutProcessor(t)
		})
	}
}

// withoutProcessor says what holds while no processor answers and Envoy knows
// it: requests pass by the fallback policy, wherever the client would like them
// to go.
func (e *edge) withoutProcessor(t *testing.T) {
	t.Helper()
	e.wantUnmeasured(t, "no processor", chatScript("absent", nil), chatCall())
	e.wantUnmeasured(t, "no processor and no body", testkit.Script{Name: "models", Status: 200, Pieces: []testkit.Piece{{Data: []byte("{}")}}},
		testkit.Call{Method: http.MethodGet, Path: "/v1/models"})

	spoofed, connections := trap(t)
	for _, name := range controlHeaders {
		call := chatCall()
		call.Header = append(call.Header, testkit.Header{Name: name, Value: spoofed})
		e.wantUnmeasured(t, "spoofed "+name, chatScript("spoofed", nil), call)
	}
	if n := connections(); n != 0 {
		t.Errorf("%d connections to the address that the client named, want none", n)
	}
}

func (e *edge) wantUnmeasured(t *testing.T, what string, s testkit.Script, call testkit.Call) {
	t.Helper()
	x := e.mustPlay(t, s, call)
	if x.Status != s.Status || !bytes.Equal(x.Body, s.Body()) || x.Broken {
		t.Errorf("%s: status %d, %d bytes, broken %t; want %d, %d, whole", what, x.Status, len(x.Body), x.Broken, s.Status, len(s.Body()))
		return
	}
	up := e.upstream(t, x.id)
	for _, name := range controlHeaders {
		if v := up.Header.Get(name); v != "" {
			t.Errorf("%s: the client's %s: %s reached the model server", what, name, v)
		}
	}
}

func TestProcessorKilledInMidStream(t *testing.T) {
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			e := startEdge(t, form)
			gate := make(chan struct{})
			s, call := chatScript("killed", gate), chatCall()
			call.OnPiece = func(body []byte) {
				if bytes.Equal(body, s.Pieces[0].Data) {
					e.inferspan.Kill()
					close(gate)
				}
			}
			x := e.mustPlay(t, s, call)
			if x.Status != http.StatusOK {
				t.Fatalf("status %d, want 200", x.Status)
			}
			if form == duplex {
				if !x.Broken || !bytes.HasPrefix(s.Body(), x.Body) {
					t.Errorf("got %d of %d bytes, broken %t; want a cut stream", len(x.Body), len(s.Body()), x.Broken)
				}
			} else if x.Broken || !bytes.Equal(x.Body, s.Body()) {
				t.Errorf("got %d of %d bytes, broken %t; want all of it", len(x.Body), len(s.Body()), x.Broken)
			}
			if streams(form) {
				e.failsUntilKnown(t)
			}
			e.withoutProcessor(t)
			e.comesBack(t)
		})
	}
}

// failsUntilKnown waits until Envoy has found out that the processor is dead.
// Up to then a FULL_DUPLEX_STREAMED request with a body gets a 500.
func (e *edge) failsUntilKnown(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := testkit.Poll(ctx, func(ctx context.Context) error {
		x, err := e.play(ctx, chatScript("unknown", nil), chatCall())
		if err != nil {
			return err
		}
		switch x.Status {
		case http.StatusOK:
			return nil
		case http.StatusInternalServerError:
		default:
			t.Errorf("with the processor just killed: status %d, want 500 or 200", x.Status)
		}
		return fmt.Errorf("status %d", x.Status)
	})
	e.must(err)
}

// comesBack starts inferspan anew and waits until Envoy uses it again.
func (e *edge) comesBack(t *testing.T) {
	t.Helper()
	e.startInferspan(e.config("default"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	played := map[any]bool{}
	err := testkit.Poll(ctx, func(ctx context.Context) error {
		x, err := e.play(ctx, chatScript("back", nil), chatCall())
		if err != nil {
			return err
		}
		played[x.id] = true
		measured := e.sink.Spans(func(s testkit.Span) bool {
			id, _ := testkit.Attr(s.GetAttributes(), "inferspan.request.id")
			return played[id] && testkit.HasAttrs(s.GetAttributes(), map[string]any{"inferspan.outcome": "ok"})
		})
		if len(measured) == 0 {
			return fmt.Errorf("no span of %d requests", len(played))
		}
		return nil
	})
	if err != nil {
		t.Errorf("after the restart: %v", err)
	}
}
