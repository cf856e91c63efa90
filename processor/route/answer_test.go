package route

import (
	"strings"
	"testing"
)

func TestDecideListsTheModels(t *testing.T) {
	target := []Target{{Pool: "default", Model: "served", Weight: 1}}
	pools := []Pool{{Name: "default", Endpoints: at(a1)}}
	r := mustNew(t, Config{Pools: pools, Models: []Model{
		{Name: "z", Aliases: []string{"y", "a"}, Prefixes: []string{"org/"}, Targets: target},
		{Name: "meta/llama-3:8b", Targets: target},
	}})
	none := mustNew(t, Config{Pools: pools})

	card := func(id string) string {
		return `{"id":"` + id + `","object":"model","created":0,"owned_by":"inferspan"}`
	}
	list := `{"object":"list","data":[` + strings.Join([]string{card("z"), card("y"), card("a"), card("meta/llama-3:8b")}, ",") + `]}`
	// want: the body; a status for a rejection; the endpoint where it is passed on
	f := func(r *Router, method, path, want string) {
		t.Helper()
		d := r.Decide(Request{Method: method, Path: path})
		got := d.Endpoint
		switch {
		case d.Answer != nil:
			got = string(d.Answer.Body)
			if d.Answer.Status != 200 || d.Answer.ContentType != "application/json" || d.Reason != ReasonModels || d.Pool != "" {
				t.Errorf("%s %s: got %+v", method, path, d)
			}
		case d.Reject != nil:
			got = string(d.Reject.Body())
			if d.Reason != ReasonUnknownModel || d.Reject.Reason != d.Reason {
				t.Errorf("%s %s: got %+v", method, path, d)
			}
		}
		if got != want {
			t.Errorf("%s %s:\n got %s\nwant %s", method, path, got, want)
		}
	}
	unknown := func(id string) string { return string(unknownModel(id).Body()) }
	f(r, "GET", "/v1/models", list)
	f(r, "HEAD", "/v1/models", list)
	f(r, "GET", "/team/v1/models", list)
	f(r, "GET", "/v1/models/z", card("z"))
	f(r, "HEAD", "/v1/models/y", card("y"))
	f(r, "GET", "/v1/models/meta/llama-3:8b", card("meta/llama-3:8b"))
	f(r, "GET", "/v1/models/meta%2Fllama-3%3A8b", card("meta/llama-3:8b"))
	f(r, "GET", "/v1/models/org/any", card("org/any")) // requests for it are routed by the prefix
	f(r, "GET", "/v1/models/gpt", unknown("gpt"))
	f(r, "GET", "/v1/models/%zz", unknown("%zz"))
	f(r, "GET", "/v1/models/z/", unknown("z/"))

	// Not ours to answer.
	f(r, "GET", "/v1/models/", a1)
	f(r, "GET", "/v1/modelsx", a1)
	f(r, "GET", "/v1/model", a1)
	f(r, "POST", "/v1/models", a1)
	f(r, "OPTIONS", "/v1/models", a1)
	f(r, "", "", a1)
	f(none, "GET", "/v1/models", a1)
	f(none, "GET", "/v1/models/z", a1)
}

// What is listed changes with the configuration.
func TestApplyChangesTheList(t *testing.T) {
	c := Config{Pools: []Pool{{Name: "p"}}, Models: []Model{{Name: "old", Targets: []Target{{Pool: "p", Weight: 1}}}}}
	r := mustNew(t, c)
	c.Models[0].Name = "new"
	if err := r.Apply(c); err != nil {
		t.Fatal(err)
	}
	d := r.Decide(Request{Method: "GET", Path: "/v1/models"})
	if want := `{"object":"list","data":[{"id":"new","object":"model","created":0,"owned_by":"inferspan"}]}`; string(d.Answer.Body) != want {
		t.Errorf("got %s, want %s", d.Answer.Body, want)
	}
}
