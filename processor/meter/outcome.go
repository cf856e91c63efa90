package meter

import "net/http"

// The outcome, definitions 5, and why there is no first token, definitions 3.

// outcome returns how the exchange ended, the first that applies.
func (m *Meter) outcome(c Cause) Outcome {
	r := &m.response
	switch {
	case c == CauseRejected:
		return Rejected
	case r.status >= http.StatusBadRequest:
		return HTTPError
	case m.failed:
		return ErrorInStream
	case m.done && m.choices.anyFinished():
		return OK
	case m.done:
		return OKNoFinish
	}
	switch c {
	case CauseEnd:
		return m.cleanEnd()
	case CauseClient:
		if m.choices.finished() {
			return ClientCancelledAfterFinish
		}
		return ClientCancelled
	case CauseUpstream:
		return UpstreamReset
	case CauseTimeout:
		return Timeout
	case CauseLost:
		return Lost
	default:
		return Aborted
	}
}

// cleanEnd returns the outcome of a response below 400 that is complete, without
// an end mark or an error.
func (m *Meter) cleanEnd() Outcome {
	r := &m.response
	// Of a body with a content coding only its emptiness can be told.
	legible := !r.opaque || r.bytes == 0
	success := r.status >= http.StatusOK && r.status < http.StatusMultipleChoices
	switch {
	case r.status == 0:
		// No response: there was nothing to end cleanly.
		return Aborted
	case m.choices.finished():
		return OK
	case r.stream && legible && r.status == http.StatusOK && r.events == 0:
		return Empty
	case r.stream && legible && m.known:
		return Truncated
	case m.known && success && !r.bodyRead:
		return Unparsed
	default:
		return OK
	}
}

// noFirstToken says why a stream of a known dialect has no first token; nothing
// where it has one, and where none was to be expected. What was asked for as a
// stream and got no response, or a failure for one, is one too.
func (m *Meter) noFirstToken(r *Record) NoTokenReason {
	expected := r.Stream || m.asked.Stream && (r.Status == 0 || r.Status >= http.StatusBadRequest)
	if r.FirstToken.OK || !m.known || !m.dialect.Streams() || !expected {
		return ""
	}
	switch r.Outcome {
	case ClientCancelled:
		return NoTokenCancelled
	case Aborted:
		return NoTokenAborted
	case ErrorInStream:
		return NoTokenError
	case HTTPError:
		if r.Class() == ClassFailed {
			return NoTokenError
		}
		return "" // refused: it was never to have any
	case UpstreamReset:
		return NoTokenReset
	case Timeout:
		return NoTokenTimeout
	case Truncated:
		return NoTokenTruncated
	case Empty:
		return NoTokenEmpty
	case OK, OKNoFinish, ClientCancelledAfterFinish:
		if r.OutputTokens.V > 0 {
			return NoTokenHidden
		}
		return NoTokenEmpty
	default:
		return "" // not ours to tell: rejected, lost, unparsed
	}
}
