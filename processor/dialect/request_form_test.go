package dialect_test

import (
	"bytes"
	"fmt"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

const formType = "multipart/form-data; boundary=b"

// scanForm feeds the pieces of a form to a Scanner, and spoils each after.
func scanForm(contentType string, pieces ...[]byte) asked {
	s := dialect.NewScanner(dialect.Transcription, contentType)
	for _, piece := range pieces {
		p := bytes.Clone(piece)
		s.Write(p)
		for i := range p {
			p[i] = '#'
		}
	}
	finished := s.Finished()
	s.Close()
	return asked{s.Request(), s.IsObject(), s.ModelKnown(), s.ModelTooLong(), finished}
}

// part is one part of a form with the boundary b.
func part(disposition, content string) string {
	return "--b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + content + "\r\n"
}

func field(name, content string) string { return part(`name="`+name+`"`, content) }

func TestScannerOfForms(t *testing.T) {
	t.Parallel()
	const end = "--b--\r\n"
	audio := part(`name="file"; filename="a.wav"`, "RIFF\r\n--\r\n--a\x00\r\r\n-\r--b--b\r\n--bb")
	f := func(name, body string, model string, hasModel, stream, usage, continuous bool) {
		t.Helper()
		want := dialect.Request{
			Dialect: dialect.Transcription, Model: model, HasModel: hasModel,
			Stream: stream, IncludeUsage: usage, ContinuousUsage: continuous, N: -1, MaxTokens: -1,
		}
		for cut, pieces := range cuts([]byte(body)) {
			if got := scanForm(formType, pieces...); got.request != want || got.object {
				t.Errorf("%s, %s:\n got %+v\nwant %+v", name, cut, got.request, want)
			}
		}
	}
	f("fields after the file", audio+field("model", "m")+field("stream", "true")+field("stream_include_usage", "1")+
		field("stream_continuous_usage_stats", "yes")+end, "m", true, true, true, true)
	f("fields before the file", field("stream", "true")+field("model", "m")+audio+end, "m", true, true, false, false)
	f("a preamble", `{"model":"no"}`+"\r\n-\r\n--\r\n"+field("model", "m")+end, "m", true, false, false, false)
	f("an epilogue", field("model", "m")+end+field("model", "no"), "m", true, false, false, false)
	f("the last wins", field("model", "a")+field("stream", "true")+field("model", "b")+field("stream", "off")+end, "b", true, false, false, false)
	f("an empty one is none", field("model", "")+field("stream", "")+end, "", false, false, false, false)
	f("the last is empty", field("model", "a")+field("model", "")+end, "", false, false, false, false)
	f("no line end for an empty one", "--b\r\nContent-Disposition: form-data; name=model\r\n\r\n"+field("stream", "true")+end, "", false, true, false, false)
	f("a file of that name", part(`name="model"; filename="x"`, "no")+part(`name=stream; filename*=UTF-8''x`, "true")+
		part(`filename=""; name="stream"`, "true")+end, "", false, false, false, false)
	f("other names", field("models", "no")+field("Model", "no")+field("file", "no")+part("model", "no")+part(`name`, "no")+end, "", false, false, false, false)
	f("without quotes", part("name=model", "m")+part("name = stream ;x", "true")+end, "m", true, true, false, false)
	f("escapes", part(`x="\";\\"; name="mo\del"`, "no")+part(`x="a;name=\"file\""; name="model"`, "m")+end, "m", true, false, false, false)
	f("header names in any case", "--b\r\nX-A: name=\"file\"\r\ncontent-DISPOSITION:form-data;NAME=\"model\"\r\nContent-Type: text/plain\r\n\r\nm\r\n"+end,
		"m", true, false, false, false)
	f("padding", "--b \t\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b  --", "m", true, false, false, false)
	f("lines in a value", field("model", "a\r\n-b\r\n--\r\n--bb\r\n\r\n")+end, "a\r\n-b\r\n--\r\n--bb\r\n\r\n", true, false, false, false)
	f("no part's headers end", field("model", "m")+"--b\r\nContent-Disposition: form-data; name=\"stream\"\r\n", "m", true, false, false, false)
	f("breaks off in a value", field("model", "m")+"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nno\r\n--", "m", true, false, false, false)
	f("breaks off at a delimiter", field("model", "m")+"--b", "", false, false, false, false)
	f("a delimiter that is none", field("model", "m")+"--b x\r\n"+field("model", "no"), "m", true, false, false, false)
	f("half a line end", field("model", "m")+"--b\r-\n"+field("model", "no"), "m", true, false, false, false)
	f("line feeds alone", "--b\nContent-Disposition: form-data; name=\"model\"\n\nno\n--b--\n", "", false, false, false, false)
	f("a name of no UTF-8", field("model", "\xff")+end, "\uFFFD", true, false, false, false)
	f("nothing", "", "", false, false, false, false)

	long := strings.Repeat("é", dialect.MaxModel/2) + "x"
	f("a long name", field("model", long)+end, long[:dialect.MaxModel], true, false, false, false)
	f("a long word", field("stream", "true"+strings.Repeat(" ", 100))+field("model", "m")+end, "m", true, false, false, false)
	f("a long header", part(`name="model"; x="`+strings.Repeat("x", 2000)+`"`, "no")+field("stream", "1")+end, "", false, true, false, false)
}

func TestFormOfContentType(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70)
	for _, c := range []struct {
		contentType, boundary string // "": no form
	}{
		{"multipart/form-data; boundary=b", "b"},
		{"Multipart/Form-Data;charset=utf-8; Boundary=\"a b\"; x=y", "a b"},
		{`multipart/form-data; boundary="a;\"b"`, `a;"b`},
		{"multipart/form-data; boundary= ==:/?= ", "==:/?="},
		{"multipart/form-data ; boundary=a; boundary=b", "a"},
		{"multipart/form-data; boundary=" + long, long},
		{"multipart/form-data; boundary=x" + long, ""},
		{"multipart/form-data; boundary=\"a\r\nb\"", ""},
		{"multipart/form-data; boundary=", ""},
		{"multipart/form-data; boundary", ""},
		{"multipart/form-data; boundary; boundary=b", "b"},
		{"multipart/form-data", ""},
		{"multipart/mixed; boundary=b", ""},
		{"application/json; boundary=b", ""},
		{"", ""},
	} {
		s := dialect.NewScanner(dialect.Transcription, c.contentType)
		if s.IsForm() != (c.boundary != "") {
			t.Errorf("%q: a form: %v", c.contentType, s.IsForm())
		}
		s.Write([]byte("--" + c.boundary + "\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--" + c.boundary + "--"))
		if got := s.Request().HasModel; got != (c.boundary != "") {
			t.Errorf("%q: a model: %v", c.contentType, got)
		}
	}
}

// Nothing is kept of a file, whatever its size and its bytes.
func TestFormIsNotHeld(t *testing.T) {
	head := part(`name="file"; filename="a.wav"`, "")
	frame := bytes.Repeat([]byte("\r\n--\rab\x00"), 8<<10)
	n := testing.AllocsPerRun(5, func() {
		s := dialect.NewScanner(dialect.Transcription, formType)
		s.Write([]byte(head))
		for range 64 {
			s.Write(frame)
		}
		s.Write([]byte("\r\n" + field("model", "m")))
		s.Write([]byte("--b--"))
		if !s.Finished() || s.Request().Model != "m" {
			t.Errorf("read %+v", s.Request())
		}
	})
	if n > 24 {
		t.Errorf("%v allocations for a form of %d bytes", n, 64*len(frame))
	}
}

// FuzzForm: for any body the cutting does not change what is read; for what
// mime/multipart writes, it is what mime/multipart reads.
func FuzzForm(f *testing.F) {
	f.Add([]byte(field("model", "m")+"--b--"), "b", "model", "m", "stream", "true", true, []byte{1, 7})
	f.Add([]byte("x\r\n--b\r\n\r\n\r\n--b-"), "a b'", "model", "\r\n--a b\r\n--", "model", "", false, []byte{0, 2, 1, 1, 1})
	f.Add([]byte("--b\r\nContent-Disposition: a; name=\"stream\r\n\r\n1\r\n--b\r\n"), "-", "file", "\r\n---\r", "stream_include_usage", "on", false, []byte{200})
	f.Fuzz(func(t *testing.T, wild []byte, boundary, name1, value1, name2, value2 string, file bool, places []byte) {
		if whole, cut := scanForm(formType, wild), scanForm(formType, pieces(wild, places)...); whole != cut {
			t.Fatalf("cut by %v:\n got %+v\nwant %+v", places, cut, whole)
		}
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		if w.SetBoundary(boundary) != nil || w.FormDataContentType() == "" {
			return
		}
		if delimiter := "--" + boundary; strings.Contains("\r\n"+value1, "\r\n"+delimiter) || strings.Contains("\r\n"+value2, "\r\n"+delimiter) {
			return // not a valid form
		}
		for i, p := range [][2]string{{name1, value1}, {name2, value2}, {"model", value1}, {name1, value2}} {
			disposition := fmt.Sprintf("form-data; name=%q", p[0])
			if file && i == 2 {
				disposition += `; filename="a"`
			}
			if strings.ContainsFunc(disposition, func(r rune) bool { return r < ' ' || r > '~' }) {
				return
			}
			pw, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}, "X": {"y"}})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = pw.Write([]byte(p[1]))
		}
		_ = w.Close()
		got := scanForm(w.FormDataContentType(), pieces(body.Bytes(), places)...)
		if want, ok := formOracle(t, w.FormDataContentType(), body.Bytes()); ok && got.request != want {
			t.Fatalf("mime/multipart reads otherwise of\n%q\n got %+v\nwant %+v", body.Bytes(), got.request, want)
		}
	})
}

// formOracle reads a valid form with mime/multipart, whole. ok is false where it
// does not take the form.
func formOracle(t *testing.T, contentType string, body []byte) (r dialect.Request, ok bool) {
	t.Helper()
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return r, false
	}
	last := map[string]string{}
	for m := multipart.NewReader(bytes.NewReader(body), params["boundary"]); ; {
		p, err := m.NextRawPart()
		if err != nil {
			break
		}
		_, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
		if err != nil {
			return r, false
		}
		var content bytes.Buffer
		if _, err := content.ReadFrom(p); err != nil {
			return r, false
		}
		if _, file := params["filename"]; !file {
			last[params["name"]] = content.String()
		}
	}
	text := func(name string) any { return last[name] }
	r = dialect.Request{Dialect: dialect.Transcription, N: -1, MaxTokens: -1}
	model := strings.ToValidUTF8(last["model"], "")
	if model != last["model"] || len(model) > dialect.MaxModel {
		return r, false
	}
	r.Model, r.HasModel = model, model != ""
	r.Stream = boolean(text("stream"), false)
	r.IncludeUsage = boolean(text("stream_include_usage"), false)
	r.ContinuousUsage = boolean(text("stream_continuous_usage_stats"), false)
	return r, true
}

// FormField is for who reads a form by other means than a Scanner.
func TestFormField(t *testing.T) {
	t.Parallel()
	f := func(line, want string, wantOK bool) {
		t.Helper()
		if field, ok := dialect.FormField([]byte(line)); field != want || ok != wantOK {
			t.Errorf("%.80q: got %q, %t, want %q, %t", line, field, ok, want, wantOK)
		}
	}
	f(`Content-Disposition: form-data; name="user"`, "user", true)
	f(`content-disposition: form-data; name=a; name=b`, "b", true)
	f(`content-disposition: form-data; name=model; filename=x`, "", true)
	f(`content-disposition`, "", true)
	f(`content-disposition: form-data; name=model`+strings.Repeat(" ", 1<<10), "", true)
	f(`content-type: text/plain; name=model`, "", false)
}
