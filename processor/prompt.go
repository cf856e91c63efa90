package processor

// byPrefix tells whether a pool picks by the prompt's prefix, so that this
// stream, if it decides at all, needs it.
func (x *exchange) byPrefix() bool {
	wants := false
	if !x.observe {
		x.guard("route", func() { wants = x.s.cfg.Router.WantsPrefix() })
	}
	return wants
}

// session names the request's conversation, "" for none.
func (x *exchange) session() string {
	if x.request.head.session != "" {
		return x.request.head.session
	}
	return x.request.prompt.Session
}

// promptSize is how many bytes of the request's body the prompt takes, for the
// decision. Where the body is not all there, its announced length stands for it,
// most of which the prompt is. Of a form, most of which is sound, nothing is known.
func (x *exchange) promptSize() int {
	r := &x.request
	if r.form {
		return 0
	}
	if !r.ended && r.hasBody {
		return int(max(r.prompt.Bytes, r.head.contentLength))
	}
	return int(r.prompt.Bytes)
}
