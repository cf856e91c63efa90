package processor

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/inferspan/inferspan/processor/wire"
)

// codec is how the gRPC server reads and writes messages: those of ext_proc
// straight from and to the bytes, all others by the code that is generated for
// them. Of a frame that changes nothing, generated code costs more than all the
// work that is done on it.
type codec struct{ others encoding.CodecV2 }

func newCodec() codec { return codec{others: encoding.GetCodecV2(proto.Name)} }

// Name is that of all others: what goes over the wire is the same.
func (codec) Name() string { return proto.Name }

// unchanged are the replies that change nothing, by phase: nearly every frame of
// every response gets one. Nobody writes to them.
var unchanged = func() (all [wire.ResponseTrailers + 1]mem.BufferSlice) {
	for p := wire.RequestHeaders; p <= wire.ResponseTrailers; p++ {
		b, _, err := (&wire.Reply{Phase: p}).Marshal(nil)
		if err != nil {
			panic(err) //nolint:forbidigo // all of these are phases
		}
		all[p] = mem.BufferSlice{mem.SliceBuffer(b)}
	}
	return all
}()

// usualReply is the length in bytes that most replies stay below.
const usualReply = 512

// Marshal writes v. A body is copied: gRPC sends it when the reply's owner has
// gone on.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*wire.Reply)
	if !ok {
		return c.others.Marshal(v)
	}
	if r.Unchanging() && int(r.Phase) < len(unchanged) && r.Phase != 0 {
		return unchanged[r.Phase], nil
	}
	room := bodies.Get(usualReply)
	begin, body, err := r.Marshal((*room)[:0])
	if err != nil {
		bodies.Put(room)
		return nil, err
	}
	out := make(mem.BufferSlice, 1, 2)
	if cap(begin) == cap(*room) {
		*room = begin
		out[0] = mem.NewBuffer(room, bodies)
	} else { // it has outgrown it
		bodies.Put(room)
		out[0] = mem.SliceBuffer(begin)
	}
	if len(body) > 0 {
		out = append(out, mem.Copy(body, bodies))
	}
	return out, nil
}

// Unmarshal reads v from data. A message keeps what its body is a part of until
// the next one is waited for.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*wire.Message)
	if !ok {
		return c.others.Unmarshal(data, v)
	}
	b := data.MaterializeToBuffer(bodies)
	if err := m.Unmarshal(b.ReadOnlyData()); err != nil {
		b.Free()
		return fmt.Errorf("a message that is no ext_proc: %w", err)
	}
	m.Own(b)
	return nil
}
