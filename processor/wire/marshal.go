package wire

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of the fields that are written, by message.
const (
	// Those of the phases are in responseNumbers.
	responseImmediate protowire.Number = 7
	responseMetadata  protowire.Number = 8

	phaseCommon    protowire.Number = 1 // of headers and bodies
	trailersHeader protowire.Number = 1

	commonHeaders    protowire.Number = 2
	commonBody       protowire.Number = 3
	commonClearRoute protowire.Number = 5

	mutationSet    protowire.Number = 1
	mutationRemove protowire.Number = 2
	optionHeader   protowire.Number = 1
	optionAction   protowire.Number = 3
	// overwriteOrAdd is OVERWRITE_IF_EXISTS_OR_ADD. It is explicit because the
	// default of the field appends.
	overwriteOrAdd = 2

	mutationBody     protowire.Number = 1
	mutationStreamed protowire.Number = 3
	streamedBody     protowire.Number = 1
	streamedEnd      protowire.Number = 2

	immediateStatus  protowire.Number = 1
	immediateHeaders protowire.Number = 2
	immediateBody    protowire.Number = 3
	immediateDetails protowire.Number = 5
	statusCode       protowire.Number = 1
)

// responseNumbers are the numbers of the phases' fields.
var responseNumbers = [...]protowire.Number{
	RequestHeaders: 1, ResponseHeaders: 2, RequestBody: 3, ResponseBody: 4, RequestTrailers: 5, ResponseTrailers: 6,
}

// Unchanging tells that r lets its phase pass as it came.
func (r *Reply) Unchanging() bool {
	return len(r.Set) == 0 && len(r.Remove) == 0 && !r.HasBody && !r.Streamed && !r.ClearRoute &&
		r.Endpoint == "" && len(r.Metadata) == 0 && r.Immediate == nil
}

// Marshal appends the beginning of r as a ProcessingResponse to b. The rest of it
// is body: bytes of r itself, which may be long and are not copied. It fails for
// a reply to no phase.
func (r *Reply) Marshal(b []byte) (begin, body []byte, err error) {
	if r.Phase < RequestHeaders || r.Phase > ResponseTrailers {
		return nil, nil, fmt.Errorf("write a reply: %d is no phase", r.Phase)
	}
	w := writer{b: b}
	w.metadata(r)
	if r.Immediate != nil {
		w.immediate(r.Immediate)
		return w.b, w.tail, nil
	}
	phase := w.begin(responseNumbers[r.Phase])
	if r.Phase == RequestTrailers || r.Phase == ResponseTrailers {
		w.mutation(trailersHeader, r.Set, r.Remove)
	} else {
		w.common(r)
	}
	w.end(phase)
	return w.b, w.tail, nil
}

// writer writes one message. What is in tail follows all that is in b: the one
// long field stands last in every message that it is a part of, as the order
// of fields is free.
type writer struct {
	b    []byte
	tail []byte
}

// begin begins a message as the field of that number; end ends it.
func (w *writer) begin(num protowire.Number) (at int) {
	w.b = protowire.AppendTag(w.b, num, protowire.BytesType)
	return len(w.b)
}

// end puts before the message that began at that place how long it is.
func (w *writer) end(at int) {
	n := len(w.b) - at
	var room [10]byte
	length := protowire.AppendVarint(room[:0], uint64(n+len(w.tail)))
	w.b = append(w.b, length...)
	copy(w.b[at+len(length):], w.b[at:at+n])
	copy(w.b[at:], length)
}

func (w *writer) text(num protowire.Number, s string) {
	w.b = protowire.AppendTag(w.b, num, protowire.BytesType)
	w.b = protowire.AppendString(w.b, s)
}

func (w *writer) number(num protowire.Number, n uint64) {
	w.b = protowire.AppendTag(w.b, num, protowire.VarintType)
	w.b = protowire.AppendVarint(w.b, n)
}

// last writes the field that nothing follows.
func (w *writer) last(num protowire.Number, data []byte) {
	w.b = protowire.AppendTag(w.b, num, protowire.BytesType)
	w.b = protowire.AppendVarint(w.b, uint64(len(data)))
	w.tail = data
}

func (w *writer) common(r *Reply) {
	c := w.begin(phaseCommon)
	w.mutation(commonHeaders, r.Set, r.Remove)
	if r.ClearRoute {
		w.number(commonClearRoute, 1)
	}
	if r.Streamed || r.HasBody {
		m := w.begin(commonBody)
		if r.Streamed {
			w.streamed(r)
		} else {
			w.last(mutationBody, r.Body)
		}
		w.end(m)
	}
	w.end(c)
}

func (w *writer) streamed(r *Reply) {
	s := w.begin(mutationStreamed)
	if r.EndOfStream {
		w.number(streamedEnd, 1)
	}
	if len(r.Body) > 0 {
		w.last(streamedBody, r.Body)
	}
	w.end(s)
}

func (w *writer) immediate(i *Immediate) {
	m := w.begin(responseImmediate)
	s := w.begin(immediateStatus)
	if i.Status != 0 {
		w.number(statusCode, uint64(i.Status))
	}
	w.end(s)
	w.mutation(immediateHeaders, i.Headers, nil)
	if i.Details != "" {
		w.text(immediateDetails, validText(i.Details))
	}
	if len(i.Body) > 0 {
		w.last(immediateBody, i.Body)
	}
	w.end(m)
}

// mutation overwrites and removes headers; Envoy removes first.
func (w *writer) mutation(num protowire.Number, set []Header, remove []string) {
	if len(set) == 0 && len(remove) == 0 {
		return
	}
	m := w.begin(num)
	for _, h := range set {
		option := w.begin(mutationSet)
		header := w.begin(optionHeader)
		w.text(headerKey, h.Name)
		w.text(headerRawValue, h.Value)
		w.end(header)
		w.number(optionAction, overwriteOrAdd)
		w.end(option)
	}
	for _, name := range remove {
		w.text(mutationRemove, name)
	}
	w.end(m)
}

// metadata writes the dynamic metadata of r: its top level names the namespaces.
func (w *writer) metadata(r *Reply) {
	if r.Endpoint == "" && len(r.Metadata) == 0 {
		return
	}
	md := w.begin(responseMetadata)
	if r.Endpoint != "" {
		ns := w.beginNamespace(lbNamespace)
		w.textValue(endpointKey, r.Endpoint)
		w.endNamespace(ns)
	}
	if len(r.Metadata) > 0 {
		ns := w.beginNamespace(ownNamespace)
		for k, v := range r.Metadata {
			w.textValue(k, v)
		}
		w.endNamespace(ns)
	}
	w.end(md)
}

// beginNamespace begins a field of a Struct that is a Struct itself.
func (w *writer) beginNamespace(key string) (at [3]int) {
	at[0] = w.begin(structFields)
	w.text(mapKey, key)
	at[1] = w.begin(mapValue)
	at[2] = w.begin(valueStruct)
	return at
}

func (w *writer) endNamespace(at [3]int) {
	w.end(at[2])
	w.end(at[1])
	w.end(at[0])
}

// textValue writes a field of a Struct that is a string.
func (w *writer) textValue(key, value string) {
	field := w.begin(structFields)
	w.text(mapKey, key)
	v := w.begin(mapValue)
	w.text(valueString, validText(value))
	w.end(v)
	w.end(field)
}

// validText is s as protobuf text, which must be UTF-8: names can be a client's
// own bytes.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
