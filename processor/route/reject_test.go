package route

import (
	"strings"
	"testing"
)

func TestRejectionBody(t *testing.T) {
	f := func(r *Rejection, want string) {
		t.Helper()
		if got := string(r.Body()); got != want {
			t.Errorf("body:\n got %s\nwant %s", got, want)
		}
	}
	f(unknownModel("gpt-4"), `{"error":{"message":"The model `+"`gpt-4`"+` does not exist. Ask for a model that is served here.","type":"NotFoundError","param":"model","code":404}}`)
	f(noModel(true), `{"error":{"message":"The request names no model. Send a JSON object with a top-level `+"`model`"+`.","type":"BadRequestError","param":"model","code":400}}`)
	f(noModel(false), `{"error":{"message":"Nothing is served at this path. Send a request that names a model.","type":"NotFoundError","param":null,"code":404}}`)
	f(noEndpoint("a", ReasonNoEndpoint, 1), `{"error":{"message":"The pool `+"`a`"+` has no endpoint. Try again later.","type":"Service Unavailable","param":null,"code":503}}`)
	f(saturated("a", 7), `{"error":{"message":"The servers of the pool `+"`a`"+` have as much to do as they may. Try again in 7 s.","type":"Too Many Requests","param":null,"code":429}}`)
}

func TestCleanCutsAtARune(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		if got := Clean(s); got != want {
			t.Errorf("Clean(%q): got %q, want %q", s, got, want)
		}
	}
	f("org/model-7b:latest", "org/model-7b:latest")
	f("a\x00\x1b[31m\u202eb\xffc", "a\ufffd\ufffd[31m\ufffdb\ufffdc")
	f(strings.Repeat("x", 128), strings.Repeat("x", 128))
	f(strings.Repeat("x", 129), strings.Repeat("x", 128))
	f(strings.Repeat("x", 127)+"ü", strings.Repeat("x", 127))
	f(strings.Repeat("\xff", 200), strings.Repeat("\ufffd", 42))
}
