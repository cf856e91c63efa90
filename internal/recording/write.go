package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Append appends rec in the form that Read reads, a line for each part, to b.
func Append(b []byte, rec *Recording) ([]byte, error) {
	e := encoder{}
	first := firstLine{
		Format: Format, Name: rec.Name, Server: rec.Server, Note: rec.Note,
		Request: requestLine{Method: rec.Request.Method, Path: rec.Request.Path, Headers: pairsOf(rec.Request.Headers)},
	}
	if rec.Request.Body != nil {
		first.Request.Body, first.Request.BodyB64 = textOrBytes(rec.Request.Body)
	}
	e.line(first)
	if h := rec.Head; h != nil {
		e.line(headLine{h.At.Microseconds(), h.Status, pairsOf(h.Headers)})
	}
	for _, p := range rec.Pieces {
		l := pieceLine{AtUS: p.At.Microseconds()}
		l.Data, l.DataB64 = textOrBytes(p.Data)
		e.line(l)
	}
	e.line(endLine{rec.EndAt.Microseconds(), rec.End})
	if rec.Counted != nil {
		e.line(countedLine{rec.Counted})
	}
	if e.err != nil {
		return b, fmt.Errorf("write a recording: %w", e.err)
	}
	return append(b, e.buf.Bytes()...), nil
}

type firstLine struct {
	Format  string      `json:"format"`
	Name    string      `json:"name"`
	Server  string      `json:"server"`
	Note    string      `json:"note"`
	Request requestLine `json:"request"`
}

type requestLine struct {
	Method  string     `json:"method"`
	Path    string     `json:"path"`
	Headers [][]string `json:"headers"`
	Body    *string    `json:"body,omitempty"`
	BodyB64 []byte     `json:"body_b64,omitempty"`
}

type headLine struct {
	AtUS    int64      `json:"at_us"`
	Status  int        `json:"status"`
	Headers [][]string `json:"headers"`
}

type pieceLine struct {
	AtUS    int64   `json:"at_us"`
	Data    *string `json:"data,omitempty"`
	DataB64 []byte  `json:"data_b64,omitempty"`
}

type endLine struct {
	AtUS int64 `json:"at_us"`
	End  End   `json:"end"`
}

type countedLine struct {
	Counted map[string]float64 `json:"counted"`
}

// encoder writes lines; after an error it writes no more.
type encoder struct {
	buf bytes.Buffer
	err error
}

func (e *encoder) line(v any) {
	if e.err != nil {
		return
	}
	j := json.NewEncoder(&e.buf)
	j.SetEscapeHTML(false)
	e.err = j.Encode(v)
}

// textOrBytes returns b as text, or as bytes where it is none.
func textOrBytes(b []byte) (text *string, raw []byte) {
	if !utf8.Valid(b) {
		return nil, b
	}
	s := string(b)
	return &s, nil
}

func pairsOf(headers Headers) [][]string {
	out := make([][]string, 0, len(headers))
	for _, h := range headers {
		out = append(out, []string{h.Name, h.Value})
	}
	return out
}
