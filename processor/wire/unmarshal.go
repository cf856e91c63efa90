package wire

import (
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of the fields that are read, by message.
const (
	// Those of the phases begin at 2, in the order of requestPhases.
	requestMetadata   protowire.Number = 8
	requestAttributes protowire.Number = 9
	requestObserve    protowire.Number = 10
	requestConfig     protowire.Number = 11

	configRequestMode  protowire.Number = 1
	configResponseMode protowire.Number = 2

	headersHeaders     protowire.Number = 1 // of trailers too
	headersEndOfStream protowire.Number = 3
	bodyBody           protowire.Number = 1
	bodyEndOfStream    protowire.Number = 2

	headerMapHeaders protowire.Number = 1
	headerKey        protowire.Number = 1
	headerValue      protowire.Number = 2
	headerRawValue   protowire.Number = 3

	metadataFilter protowire.Number = 1

	mapKey       protowire.Number = 1
	mapValue     protowire.Number = 2
	structFields protowire.Number = 1
	listValues   protowire.Number = 1

	valueNull   protowire.Number = 1
	valueNumber protowire.Number = 2
	valueString protowire.Number = 3
	valueBool   protowire.Number = 4
	valueStruct protowire.Number = 5
	valueList   protowire.Number = 6
)

// requestPhases are the phases in the order of their fields.
var requestPhases = [...]Phase{
	RequestHeaders, ResponseHeaders, RequestBody, ResponseBody, RequestTrailers, ResponseTrailers,
}

// firstPhase is the number of the field of requestPhases[0].
const firstPhase protowire.Number = 2

// Unmarshal reads a ProcessingRequest from b into m, which is empty or the zero
// Message. m.Body is a part of b; the strings are copies. It reads the fields
// that Message has and skips all others; it takes whatever the code that is
// generated from the protocol's definition takes, as that would.
func (m *Message) Unmarshal(b []byte) error {
	f := walk(b)
	for f.next() {
		var err error
		switch {
		case f.typ == protowire.BytesType && f.num >= firstPhase && f.num < firstPhase+protowire.Number(len(requestPhases)):
			err = m.readPhase(requestPhases[f.num-firstPhase], f.data)
		case f.isBytes(requestMetadata):
			err = m.readMetadata(f.data)
		case f.isBytes(requestAttributes):
			err = m.readAttributes(f.data)
		case f.isVarint(requestObserve):
			m.Observe = f.n != 0
		case f.isBytes(requestConfig):
			err = m.readConfig(f.data)
		}
		if err != nil {
			return fmt.Errorf("read field %d of a ProcessingRequest: %w", f.num, err)
		}
	}
	if f.err != nil {
		return fmt.Errorf("read a ProcessingRequest of %d bytes: %w", len(b), f.err)
	}
	return nil
}

func (m *Message) readConfig(b []byte) error {
	if !m.HasConfig {
		m.HasConfig, m.RequestMode, m.ResponseMode = true, ModeNone, ModeNone
	}
	f := walk(b)
	for f.next() {
		switch {
		case f.isVarint(configRequestMode):
			m.RequestMode = mode(f.n)
		case f.isVarint(configResponseMode):
			m.ResponseMode = mode(f.n)
		}
	}
	return f.err
}

// modes are the body modes by their number in the protocol.
var modes = [...]BodyMode{ModeNone, ModeStreamed, ModeBuffered, ModeBufferedPartial, ModeFullDuplex}

func mode(n uint64) BodyMode {
	// Readers of protobuf take the lower half of a number as an enum.
	if i := uint32(n); i < uint32(len(modes)) {
		return modes[i]
	}
	return ModeUnknown
}

// readPhase reads the message of phase p. Of several the last counts; those of
// one phase are one.
func (m *Message) readPhase(p Phase, b []byte) error {
	if p != m.Phase {
		clear(m.Headers)
		m.Phase, m.Headers, m.Body, m.EndOfStream = p, m.Headers[:0], nil, false
	}
	switch p {
	case RequestBody, ResponseBody:
		return m.readBody(b)
	case RequestTrailers, ResponseTrailers:
		m.EndOfStream = true
	default:
	}
	// One copy for all names and values.
	text := string(b)
	m.takeRoom()
	f := walk(b)
	for f.next() {
		switch {
		case f.isBytes(headersHeaders):
			if err := m.readHeaders(f.inside(), text); err != nil {
				return err
			}
		case f.isVarint(headersEndOfStream) && (p == RequestHeaders || p == ResponseHeaders):
			m.EndOfStream = f.n != 0
		}
	}
	return f.err
}

func (m *Message) readBody(b []byte) error {
	f := walk(b)
	for f.next() {
		switch {
		case f.isBytes(bodyBody):
			m.Body = f.data
		case f.isVarint(bodyEndOfStream):
			m.EndOfStream = f.n != 0
		}
	}
	return f.err
}

func (m *Message) readHeaders(f fields, text string) error {
	for f.next() {
		if !f.isBytes(headerMapHeaders) {
			continue
		}
		var name, value, raw string
		h := f.inside()
		for h.next() {
			switch {
			case h.isBytes(headerKey):
				name = h.from(text)
			case h.isBytes(headerValue):
				value = h.from(text)
			case h.isBytes(headerRawValue):
				raw = h.from(text)
			}
		}
		if h.err != nil {
			return h.err
		}
		if raw != "" {
			value = raw
		}
		m.Headers = append(m.Headers, Header{Name: name, Value: value})
	}
	return f.err
}

// keyOf is the key of an entry of a map, which may stand behind its value.
func keyOf(entry []byte) (key []byte, err error) {
	f := walk(entry)
	for f.next() {
		if f.isBytes(mapKey) {
			key = f.data
		}
	}
	return key, f.err
}

// scalar is a google.protobuf.Value that is a number or a string; of another
// kind it is neither.
type scalar struct {
	text     string
	number   float64
	isNumber bool
}

// isKind tells that the field in hand, of a Value, says what the Value is.
func (f *fields) isKind() bool {
	return f.num == valueNumber && f.typ == protowire.Fixed64Type ||
		f.isBytes(valueString) || f.isVarint(valueNull) || f.isVarint(valueBool) ||
		f.isBytes(valueStruct) || f.isBytes(valueList)
}

// read reads what f walks over, a Value, on top of what v was before.
func (v *scalar) read(f fields, text string) error {
	for f.next() {
		switch {
		case f.num == valueNumber && f.typ == protowire.Fixed64Type:
			*v = scalar{number: math.Float64frombits(f.n), isNumber: true}
		case f.isBytes(valueString):
			*v = scalar{text: f.from(text)}
		case f.isKind():
			*v = scalar{}
		}
	}
	return f.err
}

// eachField calls read for every field of a Struct that is the value of an entry of
// a map. What read gets walks over the field, and is inside of entry.
func eachField(entry []byte, read func(f fields) error) error {
	f := walk(entry)
	for f.next() {
		if !f.isBytes(mapValue) {
			continue
		}
		s := f.inside()
		for s.next() {
			if !s.isBytes(structFields) {
				continue
			}
			if err := read(s.inside()); err != nil {
				return err
			}
		}
		if s.err != nil {
			return s.err
		}
	}
	return f.err
}

// readAttributes reads one entry of the attributes' map.
func (m *Message) readAttributes(entry []byte) error {
	key, err := keyOf(entry)
	if err != nil || string(key) != attributesKey {
		return err
	}
	m.Attributes = Attributes{}
	text := string(entry)
	return eachField(entry, func(f fields) error { return m.readAttribute(f, text) })
}

func (m *Message) readAttribute(f fields, text string) error {
	var name string
	var v scalar
	for f.next() {
		switch {
		case f.isBytes(mapKey):
			name = f.from(text)
		case f.isBytes(mapValue):
			if err := v.read(f.inside(), text); err != nil {
				return err
			}
		}
	}
	a := &m.Attributes
	switch name {
	case "request.time":
		a.RequestTime = v.text
	case "request.id":
		a.RequestID = v.text
	case "upstream.address":
		a.UpstreamAddress = v.text
	case "response.code_details":
		a.CodeDetails = v.text
	case "response.flags":
		a.Flags = v.String()
	case "upstream.request_attempt_count":
		a.Attempts = v.attempts()
	}
	return f.err
}

// String is v as text, whether Envoy sent a string or a number.
func (v scalar) String() string {
	if v.isNumber {
		return strconv.FormatFloat(v.number, 'f', -1, 64)
	}
	return v.text
}

// maxAttempts bounds a count that comes as any number at all.
const maxAttempts = 1 << 16

// attempts is v as a count, 0 where it is none.
func (v scalar) attempts() int {
	n := v.number
	if v.text != "" {
		i, err := strconv.Atoi(v.text)
		if err != nil {
			return 0
		}
		n = float64(i)
	}
	// The comparison is false for what is not a number too.
	if n >= 1 && n <= maxAttempts {
		return int(n)
	}
	return 0
}
