package processor

import (
	"strconv"
	"strings"

	"github.com/inferspan/inferspan/processor/wire"
)

const (
	acceptEncoding = "accept-encoding"
	identity       = "identity"
)

// plainOnly has the model server asked for a response without a content coding,
// once, where the client would take one. A client that refuses one without keeps
// its word.
func (x *exchange) plainOnly() {
	if x.cfg.PreventCompression {
		x.narrow()
	}
}

// narrow is plainOnly whatever the configuration says.
func (x *exchange) narrow() {
	h := &x.request.head
	if takesCoding(h.acceptEncoding) {
		x.reply.Set = append(x.reply.Set, wire.Header{Name: acceptEncoding, Value: identity})
		h.acceptEncoding = ""
	}
}

// takesCoding tells whether a client with this accept-encoding takes a coded
// response, and one that is not coded too.
func takesCoding(list string) bool {
	coded, plain := codings(list)
	return coded && plain
}

// codedOnly tells whether a client with this accept-encoding refuses a response
// that is not coded.
func codedOnly(list string) bool {
	_, plain := codings(list)
	return !plain
}

// codings tells whether a client with this accept-encoding takes a coded
// response, and whether it takes one that is not coded.
func codings(list string) (coded, plain bool) {
	plain, named := true, false
	for member := range strings.SplitSeq(list, ",") {
		name, parameters, _ := strings.Cut(member, ";")
		name = strings.TrimSpace(name)
		refused := refuses(parameters)
		switch {
		case strings.EqualFold(name, identity):
			plain, named = !refused, true
		case name == "*" && refused:
			plain = plain && named
		case name != "" && !refused:
			coded = true
		}
	}
	return coded, plain
}

// refuses tells whether a member's parameters give it the weight 0.
func refuses(parameters string) bool {
	name, value, _ := strings.Cut(parameters, "=")
	if !strings.EqualFold(strings.TrimSpace(name), "q") {
		return false
	}
	weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return err == nil && weight <= 0
}
