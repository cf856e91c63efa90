package processor

import "github.com/inferspan/inferspan/processor/dialect"

// edit is what is to change in the request's body, as far as it was decided on:
// the model gets the name that its servers know it by, "" where that is the one
// asked for.
//
// A server takes the last of several models in a body. Where more of the body is
// to come it may name another, to which nobody would have routed it, so that each
// one is given the name that was decided on. The same goes for a name that is too
// long to be known whole: decided on was its beginning.
func (x *exchange) edit(model string) dialect.Edit {
	r := &x.request
	e := dialect.Edit{Model: model, SetModel: model != "", Ask: x.asks()}
	if model != "" && !r.tooLong && x.seesAnswer() {
		r.alias = r.asked.Model
		x.narrow() // into a coded answer it can't be put back
	}
	if model == "" && x.route.Endpoint != "" && r.object && r.asked.HasModel && (r.tooLong || !r.ended) {
		e.Model, e.SetModel = r.asked.Model, true
	}
	return e
}
