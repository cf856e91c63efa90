package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// maxLine is the longest line that is read, in bytes: a piece is what one read
// from a socket gave, and a request's body rarely has more than a few megabytes.
const maxLine = 32 << 20

// maxAt is the latest time in a recording: no exchange lasts a year, and a
// Duration ends not far beyond a century.
const maxAt = 365 * 24 * time.Hour

// ReadFile reads the recording at path.
func ReadFile(path string) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a recording: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return Read(f, path)
}

// Read reads one recording from r; file names it in errors.
func Read(r io.Reader, file string) (*Recording, error) {
	d := decoder{in: bufio.NewReaderSize(r, 64<<10)}
	rec, err := d.recording()
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, d.number, err)
	}
	return rec, nil
}

// A status has three digits.
const minStatus, maxStatus = 100, 999

// line is any line of a recording: which one it is, its fields tell.
type line struct {
	Format  *string            `json:"format"`
	Name    string             `json:"name"`
	Server  string             `json:"server"`
	Note    string             `json:"note"`
	Request *request           `json:"request"`
	AtUS    *int64             `json:"at_us"`
	Status  *int               `json:"status"`
	Headers [][]string         `json:"headers"`
	Data    *string            `json:"data"`
	DataB64 *[]byte            `json:"data_b64"`
	End     *End               `json:"end"`
	Counted map[string]float64 `json:"counted"`
}

type request struct {
	Method  string     `json:"method"`
	Path    string     `json:"path"`
	Headers [][]string `json:"headers"`
	Body    *string    `json:"body"`
	BodyB64 *[]byte    `json:"body_b64"`
}

// decoder reads lines in the order that the form prescribes.
type decoder struct {
	in     *bufio.Reader
	number int           // of the last line that was read
	at     time.Duration // its time
}

func (d *decoder) recording() (*Recording, error) {
	rec := &Recording{}
	l, err := d.next("the request")
	if err != nil {
		return nil, err
	}
	if err := rec.begin(l); err != nil {
		return nil, err
	}
	for rec.End == "" {
		want := "the response's head or the end"
		if rec.Head != nil {
			want = "a piece of the body or the end"
		}
		if l, err = d.next(want); err != nil {
			return nil, err
		}
		if err := d.take(rec, l, want); err != nil {
			return nil, err
		}
	}
	return rec, d.counted(rec)
}

// begin takes the first line.
func (rec *Recording) begin(l *line) error {
	switch {
	case l.Format == nil:
		return fmt.Errorf(`no "format": this is no recording, want %q`, Format)
	case *l.Format != Format:
		return fmt.Errorf("format %q, want %q", *l.Format, Format)
	case l.Name == "":
		return errors.New(`no "name"`)
	case l.Request == nil:
		return errors.New(`no "request"`)
	case l.Request.Body != nil && l.Request.BodyB64 != nil:
		return errors.New(`"body" and "body_b64": want one of them`)
	case l.Request.Method == "" || l.Request.Path == "":
		return fmt.Errorf("request %q %q, want a method and a path", l.Request.Method, l.Request.Path)
	}
	headers, err := headersOf(l.Request.Headers)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	rec.Name, rec.Server, rec.Note = l.Name, l.Server, l.Note
	rec.Request = Request{Method: l.Request.Method, Path: l.Request.Path, Headers: headers}
	switch {
	case l.Request.Body != nil:
		rec.Request.Body = []byte(*l.Request.Body)
	case l.Request.BodyB64 != nil:
		rec.Request.Body = *l.Request.BodyB64
	}
	return nil
}

// take adds one line with a time.
func (d *decoder) take(rec *Recording, l *line, want string) error {
	if l.AtUS == nil {
		return fmt.Errorf(`no "at_us": want %s`, want)
	}
	switch {
	case *l.AtUS > maxAt.Microseconds():
		return fmt.Errorf("at_us %d is more than %d", *l.AtUS, maxAt.Microseconds())
	case *l.AtUS < d.at.Microseconds():
		return fmt.Errorf("at_us %d is before the line above, at %d", *l.AtUS, d.at.Microseconds())
	}
	at := time.Duration(*l.AtUS) * time.Microsecond
	d.at = at
	switch {
	case l.End != nil:
		switch *l.End {
		case EndEOF, EndTruncated, EndReset, EndClientClosed, EndTimeout, EndAborted, EndLost:
			rec.End, rec.EndAt = *l.End, at
			return nil
		}
		return fmt.Errorf("end %q, want eof, truncated, reset, client_closed, timeout, aborted or lost", *l.End)
	case l.Status != nil && rec.Head == nil:
		headers, err := headersOf(l.Headers)
		if err != nil {
			return fmt.Errorf("response: %w", err)
		}
		if *l.Status < minStatus || *l.Status > maxStatus {
			return fmt.Errorf("status %d, want three digits", *l.Status)
		}
		rec.Head = &Head{At: at, Status: *l.Status, Headers: headers}
		return nil
	case l.Data != nil && l.DataB64 != nil:
		return errors.New(`"data" and "data_b64": want one of them`)
	case l.Data != nil && rec.Head != nil:
		rec.Pieces = append(rec.Pieces, Piece{At: at, Data: []byte(*l.Data)})
		return nil
	case l.DataB64 != nil && rec.Head != nil:
		rec.Pieces = append(rec.Pieces, Piece{At: at, Data: *l.DataB64})
		return nil
	}
	return fmt.Errorf("want %s", want)
}

// counted takes what may follow the end.
func (d *decoder) counted(rec *Recording) error {
	const want = "what the server counted, or nothing"
	l, err := d.next(want)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	if err != nil {
		return err
	}
	if l.Counted == nil {
		return fmt.Errorf("after the end: want %s", want)
	}
	rec.Counted = l.Counted
	if _, err := d.next("nothing"); !errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("a line after the last one")
	}
	return nil
}

// next reads the next line that is not blank; want says what it should be.
func (d *decoder) next(want string) (*line, error) {
	for {
		text, err := d.line()
		if err != nil {
			return nil, err
		}
		if text == nil {
			return nil, fmt.Errorf("the recording breaks off, want %s: %w", want, io.ErrUnexpectedEOF)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("want %s: %w", want, err)
		}
		return &l, nil
	}
}

// line returns the next line, nil at the end of the file.
func (d *decoder) line() ([]byte, error) {
	var text []byte
	for {
		part, err := d.in.ReadSlice('\n')
		if len(text) == 0 && len(part) > 0 {
			d.number++
		}
		text = append(text, part...)
		switch {
		case len(text) > maxLine:
			return nil, fmt.Errorf("the line is longer than %d bytes", maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) || err == nil:
			return text, nil
		default:
			return nil, fmt.Errorf("read a recording: %w", err)
		}
	}
}

// headersOf checks that each header is a name and a value.
func headersOf(pairs [][]string) (Headers, error) {
	headers := make(Headers, 0, len(pairs))
	for _, p := range pairs {
		if len(p) != 2 {
			return nil, fmt.Errorf("header %q, want [name, value]", p)
		}
		headers = append(headers, Header{p[0], p[1]})
	}
	return headers, nil
}
