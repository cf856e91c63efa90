package testkit

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func start(t *testing.T, o VLLMOptions) (*VLLM, *Client) {
	t.Helper()
	v, err := NewVLLM(o)
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(v.Addr(), false)
	t.Cleanup(func() {
		c.Close()
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v, c
}

func do(t *testing.T, c *Client, call Call) *Answer {
	t.Helper()
	a, err := c.Do(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func pieces(data ...string) []Piece {
	all := make([]Piece, len(data))
	for i, d := range data {
		all[i].Data = []byte(d)
	}
	return all
}

func TestVLLMPlaysEachPieceByItself(t *testing.T) {
	second := make(chan struct{})
	s := Script{
		Status:  http.StatusOK,
		Header:  []Header{{"content-type", "text/event-stream"}, {"set-cookie", "a=1"}, {"set-cookie", "b=2"}},
		Pieces:  pieces("data: 1\n\n", "data: 2\n\n"),
		Trailer: []Header{{"x-checksum", "7"}},
	}
	s.Pieces[1].After = second
	_, c := start(t, VLLMOptions{Scripts: map[string]Script{"s": s}})
	seen := 0
	a := do(t, c, Call{Method: "GET", Path: "/v1/x?script=s", OnPiece: func(body []byte) {
		if seen++; seen == 1 {
			if string(body) != "data: 1\n\n" {
				t.Errorf("the first piece arrived as %q", body)
			}
			close(second)
		}
	}})
	if want := "data: 1\n\ndata: 2\n\n"; string(a.Body) != want || a.Broken {
		t.Errorf("got %q, broken %t; want %q, whole", a.Body, a.Broken, want)
	}
	if got := a.Header.Values("Set-Cookie"); !cmp.Equal(got, []string{"a=1", "b=2"}) {
		t.Errorf("cookies: %q", got)
	}
	if got := a.Trailer.Get("X-Checksum"); got != "7" {
		t.Errorf("trailer: %q", got)
	}
}

func TestVLLMBreaksOff(t *testing.T) {
	for _, end := range []End{EndTruncated, EndReset} {
		t.Run(string(end), func(t *testing.T) {
			// The end waits until the piece was read: a reset discards what is under way.
			read := make(chan struct{})
			_, c := start(t, VLLMOptions{Scripts: map[string]Script{
				"s": {Status: http.StatusOK, Pieces: pieces("data: 1\n\n"), End: end, EndAfter: read},
			}})
			a := do(t, c, Call{Method: "GET", Path: "/", Header: []Header{{ScriptHeader, "s"}}, OnPiece: func([]byte) { close(read) }})
			if !a.Broken || string(a.Body) != "data: 1\n\n" {
				t.Errorf("got %q, broken %t; want the piece, broken", a.Body, a.Broken)
			}
		})
	}
}

func TestVLLMHoldsUntilTheClientHangsUp(t *testing.T) {
	_, c := start(t, VLLMOptions{Scripts: map[string]Script{
		"s": {Status: http.StatusOK, Pieces: pieces("12345"), End: EndHold},
	}})
	a := do(t, c, Call{Method: "GET", Path: "/?script=s", HangUpAfter: 5})
	if !a.HungUp || string(a.Body) != "12345" {
		t.Errorf("got %q, hung up %t", a.Body, a.HungUp)
	}
}

func TestVLLMChoosesAndRemembers(t *testing.T) {
	v, c := start(t, VLLMOptions{
		Keep: 2,
		Choose: func(r *http.Request, body []byte) (Script, bool) {
			return Script{Status: http.StatusAccepted, Pieces: []Piece{{Data: body}}}, r.URL.Path == "/chosen"
		},
	})
	v.Enqueue(Script{Status: http.StatusTeapot})
	var got []int
	for _, path := range []string{"/queued", "/chosen", "/unknown", "/health"} {
		got = append(got, do(t, c, Call{Method: "POST", Path: path, Body: []byte("b"), Chunked: true}).Status)
	}
	if want := []int{418, 202, 404, 200}; !cmp.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
	kept := v.Received(func(Received) bool { return true })
	if len(kept) != 2 || kept[0].Path != "/unknown" || string(kept[0].Body) != "b" || kept[0].ContentLength != -1 {
		t.Errorf("kept %+v", kept)
	}
	if _, err := v.WaitReceived(t.Context(), func(r Received) bool { return r.Path == "/health" }); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.WaitReceived(ended, func(r Received) bool { return r.Path == "/gone" }); err == nil {
		t.Error("a request that never came was found")
	}
}

func TestVLLMEchoesUpgradedConnections(t *testing.T) {
	v, _ := start(t, VLLMOptions{})
	conn, err := Upgrade(t.Context(), v.Addr(), "/ws")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFreshIDs(t *testing.T) {
	s := Script{Pieces: pieces(
		`data: {"id":"chatcmpl-bc552a20`, `c0f54b35","choices":[{"delta":{"content":"the id is bc552a20c0f54b35"}}]}`+"\n\n",
		`data: {"id": "chatcmpl-bc552a20c0f54b35","usage":null}`+"\n\n",
	)}
	old := s.Body()
	f := s.FreshIDs()
	if !bytes.Equal(s.Body(), old) {
		t.Error("the script itself was changed")
	}
	if bytes.Contains(f.Body(), []byte(`-bc552a20c0f54b35"`)) || !bytes.Contains(f.Body(), []byte("id is bc552a20c0f54b35")) {
		t.Errorf("got %q: every id changes, text does not", f.Body())
	}
	for i, p := range f.Pieces {
		if len(p.Data) != len(s.Pieces[i].Data) {
			t.Errorf("piece %d has %d bytes, before %d", i, len(p.Data), len(s.Pieces[i].Data))
		}
	}
	if id := f.Body()[22:38]; !bytes.Contains(f.Pieces[2].Data, append(append([]byte(`"id": "chatcmpl-`), id...), '"')) {
		t.Errorf("the events of one response have different ids: %q", f.Body())
	}
}
