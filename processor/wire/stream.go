package wire

import "fmt"

// The names under which Envoy calls the service.
const (
	ServiceName = "envoy.service.ext_proc.v3.ExternalProcessor"
	MethodName  = "Process"
)

// Transport is what carries the protocol's messages: a gRPC server stream whose
// codec reads a *Message by its Unmarshal and writes a *Reply by its Marshal.
type Transport interface {
	RecvMsg(m any) error
	SendMsg(m any) error
}

// Stream is one ext_proc stream. One goroutine may receive while another
// sends; neither method may be called by two at once.
type Stream struct{ t Transport }

// NewStream returns the Stream that t carries.
func NewStream(t Transport) *Stream { return &Stream{t: t} }

// Recv waits for the next message and puts it into m. Its error is the
// transport's, which tells no more than that nothing more will come.
func (s *Stream) Recv(m *Message) error {
	// Waiting can take minutes: nothing of the last message, which may be a whole
	// prompt, is kept meanwhile.
	m.release()
	return s.t.RecvMsg(m)
}

// Send sends r, of which it keeps nothing.
func (s *Stream) Send(r *Reply) error {
	if err := s.t.SendMsg(r); err != nil {
		return fmt.Errorf("send the reply to %s: %w", r.Phase, err)
	}
	return nil
}
