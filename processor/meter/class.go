package meter

import "net/http"

// Class returns the class of an exchange that ended with outcome o and the
// given status of its response.
func (o Outcome) Class(status int) Class {
	switch o {
	case OK, OKNoFinish, ClientCancelledAfterFinish:
		return ClassDone
	case ClientCancelled, Aborted:
		return ClassCancelled
	case ErrorInStream, UpstreamReset, Timeout, Empty, Truncated:
		return ClassFailed
	case HTTPError:
		if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			return ClassFailed
		}
		return ClassRefused
	case Rejected:
		return ClassRejected
	default:
		return ClassUnknown
	}
}

// Class returns the class of the record's outcome.
func (r *Record) Class() Class { return r.Outcome.Class(r.Status) }
