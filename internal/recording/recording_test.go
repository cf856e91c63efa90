package recording_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/inferspan/inferspan/internal/recording"
)

const streams = "../testkit/testdata/streams"

func TestReadEveryRecording(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(streams, "*.jsonl"))
	if err != nil || len(files) < 80 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		rec, err := recording.ReadFile(file)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if name := strings.TrimSuffix(filepath.Base(file), ".jsonl"); rec.Name != name {
			t.Errorf("%s: name %q", file, rec.Name)
		}
	}
}

const (
	first = `{"format":"inferspan-exchange/1","name":"x","server":"s","note":"n","request":{"method":"POST","path":"/v1/completions?a=b","headers":[["X-Request-ID","r1"]],"body":"{\"model\":\"m\"}"}}`
	head  = `{"at_us":10,"status":200,"headers":[["Date","Mon, 30 Nov 2026 10:35:03 GMT"],["content-type","text/event-stream"]]}`
	text  = `{"at_us":20,"data":"data: é\n\n"}`
	b64   = `{"at_us":20,"data_b64":"/wA="}`
	end   = `{"at_us":30,"end":"eof"}`
	count = `{"counted":{"vllm:generation_tokens_total":24.0}}`
)

func read(lines ...string) (*recording.Recording, error) {
	return recording.Read(strings.NewReader(strings.Join(lines, "\n")), "x.jsonl")
}

func TestRead(t *testing.T) {
	t.Parallel()
	rec, err := read(first, head, text, b64, end, count, "")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case rec.Name != "x" || rec.Server != "s" || rec.Note != "n":
		t.Errorf("names %q %q %q", rec.Name, rec.Server, rec.Note)
	case rec.Request.Method != http.MethodPost || rec.Request.Path != "/v1/completions?a=b" || string(rec.Request.Body) != `{"model":"m"}`:
		t.Errorf("request %+v", rec.Request)
	case rec.Request.Headers.Get("x-request-id") != "r1" || rec.Request.Headers.Get("no") != "":
		t.Errorf("headers %v", rec.Request.Headers)
	case rec.Head.At != 10*time.Microsecond || rec.Head.Status != 200 || len(rec.Head.Headers) != 2:
		t.Errorf("head %+v", rec.Head)
	case len(rec.Pieces) != 2 || string(rec.Pieces[0].Data) != "data: é\n\n" || string(rec.Pieces[1].Data) != "\xff\x00":
		t.Errorf("pieces %q", rec.Pieces)
	case rec.Pieces[0].At != 20*time.Microsecond || rec.EndAt != 30*time.Microsecond || rec.End != recording.EndEOF:
		t.Errorf("times %+v", rec)
	case rec.Counted["vllm:generation_tokens_total"] != 24:
		t.Errorf("counted %v", rec.Counted)
	}
}

func TestReadWithoutHeadOrCount(t *testing.T) {
	t.Parallel()
	rec, err := read(first, `{"at_us":30,"end":"client_closed"}`)
	if err != nil || rec.Head != nil || rec.Counted != nil || rec.End != recording.EndClientClosed {
		t.Errorf("got %+v, %v", rec, err)
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lines []string
		want  string
	}{
		"empty":            {[]string{""}, "x.jsonl:0: the recording breaks off, want the request: unexpected EOF"},
		"no JSON":          {[]string{"data: x"}, "x.jsonl:1: want the request: invalid character 'd' looking for beginning of value"},
		"another file":     {[]string{`{"a":1}`}, `x.jsonl:1: no "format": this is no recording, want "inferspan-exchange/1"`},
		"another format":   {[]string{`{"format":"inferspan-exchange/9"}`}, `x.jsonl:1: format "inferspan-exchange/9", want "inferspan-exchange/1"`},
		"no name":          {[]string{`{"format":"inferspan-exchange/1"}`}, `x.jsonl:1: no "name"`},
		"no request":       {[]string{`{"format":"inferspan-exchange/1","name":"x"}`}, `x.jsonl:1: no "request"`},
		"no path":          {[]string{`{"format":"inferspan-exchange/1","name":"x","request":{"method":"GET"}}`}, `x.jsonl:1: request "GET" "", want a method and a path`},
		"two bodies":       {[]string{`{"format":"inferspan-exchange/1","name":"x","request":{"method":"GET","path":"/","body":"","body_b64":""}}`}, `x.jsonl:1: "body" and "body_b64": want one of them`},
		"odd header":       {[]string{`{"format":"inferspan-exchange/1","name":"x","request":{"method":"GET","path":"/","headers":[["a"]]}}`}, `x.jsonl:1: request: header ["a"], want [name, value]`},
		"odd response":     {[]string{first, `{"at_us":1,"status":200,"headers":[["a","b","c"]]}`}, `x.jsonl:2: response: header ["a" "b" "c"], want [name, value]`},
		"odd status":       {[]string{first, `{"at_us":1,"status":2}`}, "x.jsonl:2: status 2, want three digits"},
		"no time":          {[]string{first, `{"status":200}`}, `x.jsonl:2: no "at_us": want the response's head or the end`},
		"body before head": {[]string{first, text}, "x.jsonl:2: want the response's head or the end"},
		"two heads":        {[]string{first, head, "", head}, "x.jsonl:4: want a piece of the body or the end"},
		"odd type":         {[]string{first, head, `{"at_us":20,"data":5}`}, "x.jsonl:3: want a piece of the body or the end: json: cannot unmarshal number into Go struct field line.data of type string"},
		"odd base64":       {[]string{first, head, `{"at_us":20,"data_b64":"*"}`}, "x.jsonl:3: want a piece of the body or the end: illegal base64 data at input byte 0"},
		"back in time":     {[]string{first, head, `{"at_us":9,"data":"x"}`}, "x.jsonl:3: at_us 9 is before the line above, at 10"},
		"below zero":       {[]string{first, `{"at_us":-1,"status":200}`}, "x.jsonl:2: at_us -1 is before the line above, at 0"},
		"far below zero":   {[]string{first, `{"at_us":-9223372036854775808,"status":200}`}, "x.jsonl:2: at_us -9223372036854775808 is before the line above, at 0"},
		"beyond a year":    {[]string{first, head, `{"at_us":20000000000000000,"data":"x"}`}, "x.jsonl:3: at_us 20000000000000000 is more than 31536000000000"},
		"two forms":        {[]string{first, head, `{"at_us":20,"data":"x","data_b64":"eA=="}`}, `x.jsonl:3: "data" and "data_b64": want one of them`},
		"odd end":          {[]string{first, head, `{"at_us":20,"end":"done"}`}, `x.jsonl:3: end "done", want eof, truncated, reset, client_closed, timeout, aborted or lost`},
		"no end":           {[]string{first, head, text}, "x.jsonl:3: the recording breaks off, want a piece of the body or the end: unexpected EOF"},
		"piece after end":  {[]string{first, head, end, text}, "x.jsonl:4: after the end: want what the server counted, or nothing"},
		"line after count": {[]string{first, head, end, count, count}, "x.jsonl:5: a line after the last one"},
		"cut in a line":    {[]string{first, head[:20]}, "x.jsonl:2: want the response's head or the end: unexpected end of JSON input"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := read(tt.lines...); err == nil || err.Error() != tt.want {
				t.Errorf("\n got %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestReadBoundsItsLines(t *testing.T) {
	t.Parallel()
	long := make([]byte, 32<<20+1)
	for i := range long {
		long[i] = ' '
	}
	_, err := recording.Read(bytes.NewReader(long), "x.jsonl")
	if want := "x.jsonl:1: the line is longer than 33554432 bytes"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReadPassesFaultsOn(t *testing.T) {
	t.Parallel()
	fault := errors.New("disk is gone")
	if _, err := recording.Read(iotest.ErrReader(fault), "x.jsonl"); !errors.Is(err, fault) {
		t.Errorf("got %v", err)
	}
	if _, err := recording.ReadFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("0123456789"), 300)
	recorded := []recording.Piece{{At: 1, Data: body}, {At: 2, Data: nil}, {At: 3, Data: body[:7]}}
	tests := map[string]func(sizes []int) bool{
		"frames":   func(s []int) bool { return slices.Equal(s, []int{3000, 0, 7}) },
		"bytes":    func(s []int) bool { return len(s) == 3000+1+7 },
		"1":        func(s []int) bool { return len(s) == 3000+1+7 },
		"2999":     func(s []int) bool { return slices.Equal(s, []int{2999, 1, 0, 7}) },
		"random:0": func(s []int) bool { return len(s) > 6 && slices.Max(s) <= 512 },
		"random:1": func(s []int) bool { return len(s) > 6 },
	}
	for name, check := range tests {
		c, err := recording.ParseCut(name)
		if err != nil {
			t.Fatal(err)
		}
		joined := map[time.Duration][]byte{}
		var sizes []int
		for f := range c.Frames(recorded) {
			joined[f.At] = append(joined[f.At], f.Data...)
			sizes = append(sizes, len(f.Data))
		}
		if !check(sizes) {
			t.Errorf("%s: parts of %d", name, sizes)
		}
		if len(joined) != 3 || !bytes.Equal(joined[1], body) || !bytes.Equal(joined[3], body[:7]) {
			t.Errorf("%s: the bytes or their times changed", name)
		}
		var again []int
		for f := range c.Frames(recorded) {
			again = append(again, len(f.Data))
		}
		if !slices.Equal(sizes, again) {
			t.Errorf("%s: cut otherwise the second time", name)
		}
	}
}

func TestParseCutErrors(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":          `cut "": must be frames, bytes, a number of bytes from 1 up, or random:SEED`,
		"0":         `cut "0": must be frames, bytes, a number of bytes from 1 up, or random:SEED`,
		"-3":        `cut "-3": must be frames, bytes, a number of bytes from 1 up, or random:SEED`,
		"lines":     `cut "lines": must be frames, bytes, a number of bytes from 1 up, or random:SEED`,
		"random:":   `cut "random:": the seed must be a whole number from 0 up`,
		"random:-1": `cut "random:-1": the seed must be a whole number from 0 up`,
	} {
		if _, err := recording.ParseCut(s); err == nil || err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
}
