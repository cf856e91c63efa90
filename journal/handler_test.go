package journal

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHandler(t *testing.T) {
	j := New(1 << 20)
	h := j.Handler()
	get := func(method, path string) *httptest.ResponseRecorder {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
		return w
	}
	f := func(method, path string, status int, contentType, body string) {
		t.Helper()
		w := get(method, path)
		if w.Code != status || w.Header().Get("Content-Type") != contentType || w.Body.String() != body {
			t.Errorf("%s %s: got %d %s %q, want %d %s %q", method, path,
				w.Code, w.Header().Get("Content-Type"), w.Body, status, contentType, body)
		}
	}
	const fault, lines = "application/json", "application/x-ndjson"

	f("GET", "/api/v1/requests/x", 404, fault, `{"error":"no record of \"x\"","records":0}`+"\n")
	j.Add(record(1, "a/b c"))
	j.Add(record(2, "a/b c"))
	older, newer := string(j.Lookup("chatcmpl-1")[0]), string(j.Lookup("chatcmpl-2")[0])
	f("GET", "/api/v1/requests/a%2Fb%20c", 200, lines, newer+"\n"+older+"\n")
	f("GET", "/api/v1/requests/chatcmpl-1", 200, lines, older+"\n")
	f("HEAD", "/api/v1/requests/chatcmpl-1", 200, lines, older+"\n") // a server cuts the body
	f("GET", "/api/v1/requests/x%00%22", 404, fault,
		`{"error":"no record of \"x\\x00\\\"\"","records":2,"since":"2026-11-30T21:25:30Z"}`+"\n")
	f("POST", "/api/v1/requests/x", 405, fault, `{"error":"want GET"}`+"\n")
	if got := get("DELETE", "/api/v1/requests/x").Header().Get("Allow"); got != "GET, HEAD" {
		t.Errorf("Allow: got %q", got)
	}
	f("GET", "/api/v1/requests/"+strings.Repeat("x", 513), 400, fault, `{"error":"the id is 513 bytes long, want at most 512"}`+"\n")
	for _, id := range []string{".", "..", "/", "//", "a/b", "../x", "%2F", "%", "a?b#c", "é ", "\x01"} {
		j.Add(record(3, id))
		f("GET", Path(id), 200, lines, string(j.Lookup(id)[0])+"\n")
	}
	f("GET", "/api/v1/requests/..", 200, lines, string(j.Lookup("..")[0])+"\n")
	const where = `{"error":"not found: ask for /api/v1/requests/{request id | trace id | response id}"}` + "\n"
	f("GET", "/api/v1/requests/", 404, fault, where)
	f("GET", "/api/v1/requests/a/b", 404, fault, where)
	f("GET", "/api/v1/streams", 404, fault, where)
}
