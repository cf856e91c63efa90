package processor

import (
	"slices"
	"strconv"
	"strings"

	"github.com/inferspan/inferspan/processor/dialect"
	"github.com/inferspan/inferspan/processor/handover"
	"github.com/inferspan/inferspan/processor/wire"
)

// Headers of ours and of the endpoint picker protocol. Clients may send none of
// them.
const (
	destinationHeader = "x-gateway-destination-endpoint"
	ownPrefix         = "x-inferspan-"
	poolHeader        = ownPrefix + "pool"
	reasonHeader      = ownPrefix + "reason"
	retryHeader       = "retry-after"

	contentLengthHeader = "content-length"
)

// control tells that name steers routing or telemetry: the destination, its
// subset and served variants, and all that is ours.
func control(name string) bool {
	return hasPrefixFold(name, destinationHeader) || hasPrefixFold(name, ownPrefix)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// requestHead is what we keep of a request's headers.
type requestHead struct {
	method, path, requestID string
	traceparent, tracestate string
	acceptEncoding          string
	contentType             string
	contentLength           int64    // 0: not said
	session                 string   // of the conversation, "" for none
	handover                string   // of the deciding filter, "" for none
	baggage                 bool     // it has some
	control                 []string // names of control headers, each once
}

// maxSession is how much of a conversation's name is kept.
const maxSession = 256

// readRequestHead copies what it keeps: a message's strings end with it. Of the
// headers named by sessions, the first in their order that says something names
// the conversation.
func readRequestHead(hs []wire.Header, sessions []string) requestHead {
	var h requestHead
	first := len(sessions)
	for _, e := range hs {
		for i, name := range sessions[:first] {
			if e.Value != "" && strings.EqualFold(e.Name, name) {
				first, h.session = i, strings.Clone(e.Value[:min(len(e.Value), maxSession)])
				break
			}
		}
		switch name := strings.ToLower(e.Name); name {
		case ":method":
			h.method = strings.Clone(e.Value)
		case ":path":
			path, _, _ := strings.Cut(e.Value, "?")
			h.path = strings.Clone(path)
		case "x-request-id":
			h.requestID = strings.Clone(e.Value)
		case traceparentHeader:
			h.traceparent = strings.Clone(e.Value)
		case tracestateHeader:
			h.tracestate = joined(h.tracestate, e.Value)
		case baggageHeader:
			h.baggage = true
		case "content-type":
			h.contentType = strings.Clone(e.Value)
		case contentLengthHeader:
			// What is no number leaves 0, which stands for none.
			h.contentLength, _ = strconv.ParseInt(e.Value, 10, 64)
		case acceptEncoding:
			h.acceptEncoding = joined(h.acceptEncoding, e.Value)
		default:
			if name == handover.Header {
				h.handover = joined(h.handover, e.Value)
			}
			if control(name) && !slices.Contains(h.control, name) {
				h.control = append(h.control, strings.Clone(name))
			}
		}
	}
	return h
}

// responseHead is what the meter needs of a response's headers.
type responseHead struct {
	status                       int // 0: none that could be read
	contentType, contentEncoding string
	hasLength                    bool // it says its content-length
}

func readResponseHead(hs []wire.Header) responseHead {
	var h responseHead
	for _, e := range hs {
		switch strings.ToLower(e.Name) {
		case ":status":
			// What is no number leaves 0, which stands for no status.
			h.status, _ = strconv.Atoi(e.Value)
		case "content-type":
			h.contentType = strings.Clone(e.Value)
		case contentLengthHeader:
			h.hasLength = true
		case "content-encoding":
			h.contentEncoding = joined(h.contentEncoding, e.Value)
		}
	}
	return h
}

// joined is a list whose members came in several headers, in order, copied.
func joined(list, more string) string {
	if list == "" {
		return strings.Clone(more)
	}
	return list + "," + more
}

// eventStream tells whether contentType is that of server-sent events.
func eventStream(contentType string) bool { return isMedia(contentType, "text/event-stream") }

// isMedia tells whether contentType is media, whatever its parameters.
func isMedia(contentType, media string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(t), media)
}

// unasked is what a request of dialect d asks for that has no body, or one that
// could not be read.
func unasked(d dialect.Dialect) dialect.Request {
	return dialect.Request{Dialect: d, N: -1, MaxTokens: -1}
}
