// Package wire stands between Envoy's ext_proc protocol and the loop: it turns
// a ProcessingRequest into a Message, and a Reply into a ProcessingResponse.
// It is the only package that knows the protocol's form. Of ext_proc it reads
// and writes the few fields that count, from and to the bytes; the code that is
// generated from the protocol's definition is its reference in tests.
package wire

import (
	"slices"
	"sync"
)

// Phase is the part of an exchange that a message carries.
type Phase uint8

// The phases.
const (
	RequestHeaders Phase = iota + 1
	RequestBody
	RequestTrailers
	ResponseHeaders
	ResponseBody
	ResponseTrailers
)

// phaseNames are the phases as telemetry shows them.
var phaseNames = [...]string{
	"none", "request_headers", "request_body", "request_trailers",
	"response_headers", "response_body", "response_trailers",
}

// String names p as telemetry shows it; "none" for what is no phase.
func (p Phase) String() string {
	if int(p) >= len(phaseNames) {
		p = 0
	}
	return phaseNames[p]
}

// BodyMode is how Envoy sends the body of one direction.
type BodyMode uint8

// The body modes. ModeUnknown: Envoy did not say (no protocol_config).
const (
	ModeUnknown BodyMode = iota
	ModeNone
	ModeBuffered
	ModeBufferedPartial
	ModeStreamed
	ModeFullDuplex
)

// Header is one header entry; Value is what stood in raw_value, else in value.
type Header struct{ Name, Value string }

// Message is one message from Envoy. EndOfStream says that nothing follows in
// its direction; trailers always say so. Phase is 0 where a message carries no
// phase, and no reply is owed to it. Body stays valid until the next Recv, and so
// do the slices; the strings are copies, many of which share one memory.
type Message struct {
	Phase       Phase
	EndOfStream bool
	Headers     []Header
	Body        []byte
	// Observe is observability_mode: no reply may be sent.
	Observe bool
	// HasConfig tells whether protocol_config came; it comes on the first
	// message only, and never in observe mode.
	HasConfig                 bool
	RequestMode, ResponseMode BodyMode
	Attributes                Attributes
	// Subset is the endpoint picker protocol's subset hint; HasSubset tells an
	// empty list from none.
	Subset    []string
	HasSubset bool
	// SkipSubset is set by who has no use for the hints of messages to come: that
	// of a large pool takes longer to read than all else.
	SkipSubset bool
	// ServedEndpoint is the endpoint that the proxy reports as having served.
	ServedEndpoint string

	buffer Buffer    // that Body is a part of; nil: nobody wants it back
	room   *[]Header // that Headers is in; nil: nobody wants it back
}

// Buffer is memory that is used again once it is freed.
type Buffer interface{ Free() }

// Own has m free b, which its Body is a part of, when the next message is waited
// for.
func (m *Message) Own(b Buffer) { m.buffer = b }

// headerRooms has room for the headers of a message. Most of a stream's messages
// have none: with room of its own each of thousands of streams would hold it for
// nothing.
var headerRooms = sync.Pool{New: func() any { return new([]Header) }}

// usualHeaders is how many headers most messages have at most.
const usualHeaders = 24

// takeRoom gives the message room for headers.
func (m *Message) takeRoom() {
	if m.Headers != nil {
		return
	}
	m.room, _ = headerRooms.Get().(*[]Header) // the pool has no others
	m.Headers = slices.Grow(*m.room, usualHeaders)
}

// release lets go of all that the message holds, but for what is asked of the next.
func (m *Message) release() {
	if m.buffer != nil {
		m.buffer.Free()
	}
	if m.room != nil {
		clear(m.Headers)
		*m.room = m.Headers[:0]
		headerRooms.Put(m.room)
	}
	*m = Message{SkipSubset: m.SkipSubset}
}

// Attributes are the request and response attributes that were asked for.
// Absent ones are empty; Attempts is 0.
type Attributes struct {
	RequestTime, RequestID, UpstreamAddress, CodeDetails, Flags string
	Attempts                                                    int
}

// Reply answers one message.
type Reply struct {
	// Phase is the phase that is answered.
	Phase  Phase
	Set    []Header // overwrite if present, else add
	Remove []string
	// HasBody: Body replaces the body (BUFFERED and STREAMED).
	HasBody bool
	Body    []byte
	// Streamed: Body is one piece of a FULL_DUPLEX_STREAMED body.
	Streamed    bool
	EndOfStream bool
	ClearRoute  bool
	// Endpoint goes into the metadata envoy.lb x-gateway-destination-endpoint.
	Endpoint string
	// Metadata goes into the dynamic metadata namespace "inferspan".
	Metadata map[string]string
	// Immediate, when set, ends the exchange with our own answer; only Metadata
	// counts beside it.
	Immediate *Immediate
}

// Immediate is an answer of our own.
type Immediate struct {
	Status  int
	Headers []Header
	Body    []byte
	Details string // response code details
}
