package route

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Answer is what the client gets from us where no server needs to be asked.
type Answer struct {
	Status      int
	ContentType string
	// Body may be shared: nobody changes it.
	Body []byte
}

const modelsPath = "/v1/models"

// card is a model as OpenAI's API shows it. When it was made and by whom nobody
// tells us: 0 says so, the same on every replica and after every change.
type card struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func newCard(id string) card { return card{ID: id, Object: "model", OwnedBy: "inferspan"} }

// answer decides requests for the list of models, or for one of them, where the
// configuration names any. It tells whether it did.
func (r *Router) answer(q Request) (d Decision, own bool) {
	c := &r.table.Load().models
	if len(c.entries) == 0 || q.Method != http.MethodGet && q.Method != http.MethodHead {
		return Decision{}, false
	}
	// Whatever stands before the version is Envoy's to take away.
	_, id, found := strings.Cut(q.Path, modelsPath)
	switch {
	case found && id == "":
		return Decision{Reason: ReasonModels, Answer: c.list}, true
	case !found || len(id) < len("/x") || id[0] != '/':
		return Decision{}, false
	}
	id = id[1:]
	if plain, err := url.PathUnescape(id); err == nil {
		id = plain
	}
	if c.find(id) == nil {
		return Decision{Reason: ReasonUnknownModel, Reject: unknownModel(id)}, true
	}
	return Decision{Reason: ReasonModels, Answer: newAnswer(newCard(id))}, true
}

// listing is the list of the names that can be told: prefixes stand for names
// that only the servers know.
func (c *catalogue) listing() *Answer {
	var list struct {
		Object string `json:"object"`
		Data   []card `json:"data"`
	}
	list.Object = "list"
	for _, e := range c.entries {
		list.Data = append(list.Data, newCard(e.name))
		for _, a := range e.aliases {
			list.Data = append(list.Data, newCard(a))
		}
	}
	return newAnswer(list)
}

func newAnswer(v any) *Answer {
	b, err := json.Marshal(v)
	if err != nil {
		//nolint:forbidigo // a violated invariant: strings and integers always marshal
		panic(fmt.Sprintf("route: marshal of an answer: %v", err))
	}
	return &Answer{Status: http.StatusOK, ContentType: "application/json", Body: b}
}
