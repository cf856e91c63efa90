package wire

import (
	"fmt"
	"strings"
	"time"

	data "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	accesslog "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The names under which Envoy sends its access log.
const (
	AccessLogServiceName = "envoy.service.accesslog.v3.AccessLogService"
	AccessLogMethodName  = "StreamAccessLogs"
)

// SpanKey is the key of an exchange's span id, in hex, in the dynamic metadata
// of our namespace. The access log brings it back.
const SpanKey = "span_id"

// Flags are Envoy's response flags, as far as they tell who ended an exchange.
type Flags uint8

// The flags, by whose doing the end was. FlagOther is any other that Envoy set.
const (
	FlagClient   Flags = 1 << iota // DC, DR, DPE
	FlagUpstream                   // UC, UR, UF, UPE
	FlagTimeout                    // UT, SI, DT, UMSDR
	FlagOther
)

// LogEntry is Envoy's own account of one HTTP exchange that is over. Its strings
// are its own.
type LogEntry struct {
	// SpanID is what stands under SpanKey, in hex; "" where we set nothing.
	SpanID    string
	RequestID string // x-request-id
	// Start is when Envoy had the first byte of the request; zero: it did not say.
	Start time.Time
	// Duration counts from Start to the end.
	Duration    time.Duration
	HasDuration bool
	// Drain is how long after the last byte from the server the last one went to
	// the client.
	Drain    time.Duration
	HasDrain bool
	Status   int    // 0: no response
	Bytes    uint64 // of the response's body, sent to the client
	Attempts int    // 0: not known
	Flags    Flags
	// Complete: the whole response came from the server and was sent on.
	Complete bool
}

// viaUpstream is the response code detail of a response that came whole from the
// server.
const viaUpstream = "via_upstream"

// LogStream is one stream of access-log entries. Its methods may not be called
// by two goroutines at once.
type LogStream struct {
	t  Transport
	in accesslog.StreamAccessLogsMessage
}

// NewLogStream returns the LogStream that t carries.
func NewLogStream(t Transport) *LogStream { return &LogStream{t: t} }

// Recv waits for the next message and appends the entries of exchanges that are
// over to es. Its error is the transport's.
func (s *LogStream) Recv(es []LogEntry) ([]LogEntry, error) {
	s.in.Reset()
	if err := s.t.RecvMsg(&s.in); err != nil {
		return es, err
	}
	for _, e := range s.in.GetHttpLogs().GetLogEntry() {
		if ended(e.GetCommonProperties()) {
			es = append(es, logEntry(e))
		}
	}
	return es, nil
}

// Close answers the stream, which takes the place of an end of its own.
func (s *LogStream) Close() error {
	if err := s.t.SendMsg(&accesslog.StreamAccessLogsResponse{}); err != nil {
		return fmt.Errorf("answer a stream of access-log entries: %w", err)
	}
	return nil
}

// ended leaves out entries of exchanges that go on.
func ended(c *data.AccessLogCommon) bool {
	switch c.GetAccessLogType() {
	case data.AccessLogType_DownstreamEnd:
		return true
	case data.AccessLogType_NotSet:
		// Envoys that know no types have this instead.
		return !c.GetIntermediateLogEntry() //nolint:staticcheck // deprecated by the types
	default:
		return false
	}
}

func logEntry(e *data.HTTPAccessLogEntry) LogEntry {
	c, response := e.GetCommonProperties(), e.GetResponse()
	out := LogEntry{
		SpanID:    strings.Clone(c.GetMetadata().GetFilterMetadata()[ownNamespace].GetFields()[SpanKey].GetStringValue()),
		RequestID: strings.Clone(e.GetRequest().GetRequestId()),
		Status:    int(response.GetResponseCode().GetValue()),
		Bytes:     response.GetResponseBodyBytes(),
		Flags:     flags(c.GetResponseFlags()),
	}
	if at := c.GetStartTime(); at.IsValid() {
		out.Start = at.AsTime()
	}
	if n := c.GetUpstreamRequestAttemptCount(); n <= maxAttempts {
		out.Attempts = int(n)
	}
	out.Duration, out.HasDuration = span(c.GetDuration())
	sent, hasSent := span(c.GetTimeToLastDownstreamTxByte())
	got, hasGot := span(c.GetTimeToLastUpstreamRxByte())
	if hasSent && hasGot && sent >= got {
		out.Drain, out.HasDrain = sent-got, true
	}
	out.Complete = out.Flags == 0 && response.GetResponseCodeDetails() == viaUpstream
	return out
}

// maxSpan bounds what an entry may say that something took.
const maxSpan = 30 * 24 * time.Hour

func span(d *durationpb.Duration) (time.Duration, bool) {
	if !d.IsValid() || d.AsDuration() < 0 || d.AsDuration() > maxSpan {
		return 0, false
	}
	return d.AsDuration(), true
}

func flags(f *data.ResponseFlags) Flags {
	var out Flags
	if f.GetDownstreamConnectionTermination() || f.GetDownstreamRemoteReset() || f.GetDownstreamProtocolError() {
		out |= FlagClient
	}
	if f.GetUpstreamConnectionTermination() || f.GetUpstreamRemoteReset() ||
		f.GetUpstreamConnectionFailure() || f.GetUpstreamProtocolError() {
		out |= FlagUpstream
	}
	if f.GetUpstreamRequestTimeout() || f.GetStreamIdleTimeout() || f.GetDurationTimeout() ||
		f.GetUpstreamMaxStreamDurationReached() {
		out |= FlagTimeout
	}
	if f.GetFailedLocalHealthcheck() || f.GetNoHealthyUpstream() || f.GetLocalReset() || f.GetUpstreamOverflow() ||
		f.GetNoRouteFound() || f.GetDelayInjected() || f.GetFaultInjected() || f.GetRateLimited() ||
		f.GetUnauthorizedDetails() != nil || f.GetRateLimitServiceError() || f.GetUpstreamRetryLimitExceeded() ||
		f.GetInvalidEnvoyRequestHeaders() || f.GetResponseFromCacheFilter() || f.GetNoFilterConfigFound() ||
		f.GetNoClusterFound() || f.GetOverloadManager() || f.GetDnsResolutionFailure() {
		out |= FlagOther
	}
	return out
}
