package wire

import (
	"io"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	data "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	accesslog "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// logs carries messages of access-log entries.
type logs struct {
	messages []*accesslog.StreamAccessLogsMessage
	sent     []any
}

func (l *logs) RecvMsg(m any) error {
	if len(l.messages) == 0 {
		return io.EOF
	}
	proto.Merge(m.(proto.Message), l.messages[0])
	l.messages = l.messages[1:]
	return nil
}

func (l *logs) SendMsg(m any) error { l.sent = append(l.sent, m); return nil }

func httpLogs(es ...*data.HTTPAccessLogEntry) *accesslog.StreamAccessLogsMessage {
	return &accesslog.StreamAccessLogsMessage{LogEntries: &accesslog.StreamAccessLogsMessage_HttpLogs{
		HttpLogs: &accesslog.StreamAccessLogsMessage_HTTPAccessLogEntries{LogEntry: es},
	}}
}

var started = time.Date(2026, 11, 30, 10, 10, 22, 81_548_123, time.UTC)

// hungUp is what Envoy 1.40 says of a client that hung up.
func hungUp() *data.HTTPAccessLogEntry {
	ours, _ := structpb.NewStruct(map[string]any{"span_id": "00f067aa0ba902b7", "model": "m"})
	return &data.HTTPAccessLogEntry{
		CommonProperties: &data.AccessLogCommon{
			StartTime:                   timestamppb.New(started),
			Duration:                    durationpb.New(95 * time.Millisecond),
			TimeToLastUpstreamRxByte:    durationpb.New(80 * time.Millisecond),
			TimeToLastDownstreamTxByte:  durationpb.New(83 * time.Millisecond),
			ResponseFlags:               &data.ResponseFlags{DownstreamConnectionTermination: true},
			Metadata:                    &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"inferspan": ours}},
			UpstreamRequestAttemptCount: 2,
			AccessLogType:               data.AccessLogType_DownstreamEnd,
		},
		Request: &data.HTTPRequestProperties{RequestId: "req-1"},
		Response: &data.HTTPResponseProperties{
			ResponseCode: wrapperspb.UInt32(200), ResponseBodyBytes: 512,
			ResponseCodeDetails: "downstream_remote_disconnect",
		},
	}
}

func TestLogEntries(t *testing.T) {
	bare := &data.HTTPAccessLogEntry{}
	whole := hungUp()
	whole.CommonProperties.ResponseFlags = nil
	whole.CommonProperties.AccessLogType = data.AccessLogType_NotSet
	whole.Response.ResponseCodeDetails = "via_upstream"
	odd := hungUp()
	odd.CommonProperties.Duration = durationpb.New(-time.Second)
	odd.CommonProperties.TimeToLastDownstreamTxByte = durationpb.New(79 * time.Millisecond)
	odd.CommonProperties.StartTime = &timestamppb.Timestamp{Nanos: -1}
	odd.CommonProperties.UpstreamRequestAttemptCount = 1 << 31
	begun, intermediate := hungUp(), hungUp()
	begun.CommonProperties.AccessLogType = data.AccessLogType_DownstreamStart
	intermediate.CommonProperties.AccessLogType = data.AccessLogType_NotSet
	intermediate.CommonProperties.IntermediateLogEntry = true //nolint:staticcheck // of older Envoys

	l := &logs{messages: []*accesslog.StreamAccessLogsMessage{
		{}, httpLogs(begun, hungUp(), intermediate), httpLogs(whole, bare, odd),
	}}
	s := NewLogStream(l)
	var got []LogEntry
	var err error
	for err == nil {
		got, err = s.Recv(got)
	}
	full := LogEntry{
		SpanID: "00f067aa0ba902b7", RequestID: "req-1", Start: started,
		Duration: 95 * time.Millisecond, HasDuration: true, Drain: 3 * time.Millisecond, HasDrain: true,
		Status: 200, Bytes: 512, Attempts: 2, Flags: FlagClient,
	}
	complete := full
	complete.Flags, complete.Complete = 0, true
	strange := LogEntry{
		SpanID: full.SpanID, RequestID: full.RequestID, Status: 200, Bytes: 512, Flags: FlagClient,
	}
	if diff := cmp.Diff([]LogEntry{full, complete, {}, strange}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if err := s.Close(); err != nil || len(l.sent) != 1 {
		t.Errorf("%d answers, %v", len(l.sent), err)
	}
}

// Every flag that Envoy knows says whose doing the end was, or that it was of
// another kind.
func TestFlags(t *testing.T) {
	want := map[string]Flags{
		"downstream_connection_termination": FlagClient, "downstream_remote_reset": FlagClient, "downstream_protocol_error": FlagClient,
		"upstream_connection_termination": FlagUpstream, "upstream_remote_reset": FlagUpstream,
		"upstream_connection_failure": FlagUpstream, "upstream_protocol_error": FlagUpstream,
		"upstream_request_timeout": FlagTimeout, "stream_idle_timeout": FlagTimeout,
		"duration_timeout": FlagTimeout, "upstream_max_stream_duration_reached": FlagTimeout,
	}
	fields := (&data.ResponseFlags{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f, field := &data.ResponseFlags{}, fields.Get(i)
		if field.Message() != nil {
			f.UnauthorizedDetails = &data.ResponseFlags_Unauthorized{}
		} else {
			f.ProtoReflect().Set(field, protoreflect.ValueOfBool(true))
		}
		name := string(field.Name())
		expected, ok := want[name]
		if !ok {
			expected = FlagOther
		}
		if got := flags(f); got != expected {
			t.Errorf("%s: %b, want %b", name, got, expected)
		}
		delete(want, name)
	}
	if len(want) != 0 {
		t.Errorf("flags that Envoy does not have: %v", want)
	}
	if got := flags(nil); got != 0 {
		t.Errorf("none: %b", got)
	}
}

// Whatever comes, what is read of it stays within its bounds.
func FuzzLogEntry(f *testing.F) {
	seed, err := proto.Marshal(hungUp())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var e data.HTTPAccessLogEntry
		if proto.Unmarshal(b, &e) != nil {
			return
		}
		ended(e.GetCommonProperties())
		got := logEntry(&e)
		if got.Duration < 0 || got.Duration > maxSpan || got.Drain < 0 || got.Drain > maxSpan ||
			got.Attempts < 0 || got.Attempts > maxAttempts || got.Complete && got.Flags != 0 {
			t.Errorf("%+v", got)
		}
	})
}
