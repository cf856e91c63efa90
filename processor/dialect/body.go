package dialect

// Body reads a JSON body, given in pieces cut anywhere, with memory that does
// not grow with it. It never fails: a body that is none says nothing.
type Body struct {
	dialect Dialect
	prune   pruner
	facts   Facts
}

// NewBody returns a Body for a response of dialect d, which must be Known.
func NewBody(d Dialect) *Body {
	return &Body{dialect: d, prune: pruner{keep: apis[d].keep}}
}

// Write takes the next bytes and keeps no reference to them.
func (b *Body) Write(piece []byte) { b.prune.write(piece) }

// Facts returns what the body says; Skipped where it is no whole JSON object.
// It is valid until the next call of Facts or Write.
func (b *Body) Facts() *Facts {
	f := &b.facts
	f.Reset()
	if !b.prune.whole() || !apis[b.dialect].body(f, b.prune.out) {
		f.Reset()
		f.Skipped = true
	}
	return f
}
