package main

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inferspan/inferspan/internal/admin"
	"github.com/inferspan/inferspan/journal"
	"github.com/inferspan/inferspan/processor/meter"
)

// adminOf serves h as the admin side, until the test ends.
func adminOf(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func twoRecords() *journal.Journal {
	j := journal.New(1 << 20)
	for _, model := range []string{"older", "new\x1ber"} {
		j.Add(&meter.Record{
			RequestID:    "req/1",
			Start:        time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC),
			RequestModel: meter.Some(model),
			Outcome:      meter.OK,
			Status:       200,
		})
	}
	return j
}

func TestLookup_Found(t *testing.T) {
	url := adminOf(t, twoRecords().Handler())
	for _, args := range [][]string{
		{"lookup", "req/1", "--admin", url},
		{"lookup", "--admin", url + "/", "req/1"},
		{"lookup", "--admin=" + strings.TrimPrefix(url, "http://"), "req/1"},
	} {
		r := inferspan(t, args...)
		if r.Code != 0 || r.Stderr != "" {
			t.Fatalf("%q: %+v", args, r)
		}
		newer, older := strings.Index(r.Stdout, `new\x1ber`), strings.Index(r.Stdout, "older")
		if newer < 0 || older < newer || strings.Count(r.Stdout, "\n\n") == 0 {
			t.Errorf("%q: want two waterfalls, the newest first:\n%s", args, r.Stdout)
		}
		for line := range strings.Lines(r.Stdout) {
			if len(line) > waterfallWidth+1 || strings.ContainsFunc(line, func(c rune) bool { return c < ' ' && c != '\n' || c > '~' }) {
				t.Errorf("%q: not 80 printable columns: %q", args, line)
			}
		}
	}
}

// A client chose these request ids.
func TestLookup_IDsLikePaths(t *testing.T) {
	j := journal.New(1 << 20)
	s := admin.New(admin.Config{Metrics: http.NotFoundHandler(), Requests: j.Handler(), Logger: slog.New(slog.DiscardHandler)})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	for _, id := range []string{".", "..", "/", "a/b", "../..", "%2e", "a?b"} {
		j.Add(&meter.Record{RequestID: id, Outcome: meter.OK, Status: 200})
		r := inferspan(t, "lookup", id, "--json", "--admin", l.Addr().String())
		if want := string(j.Lookup(id)[0]) + "\n"; r.Code != 0 || r.Stdout != want {
			t.Errorf("%q: %+v, want %s", id, r, want)
		}
	}
	if err := errors.Join(s.Shutdown(t.Context()), <-done); err != nil {
		t.Error(err)
	}
}

func TestLookup_JSON(t *testing.T) {
	j := twoRecords()
	var want strings.Builder
	for _, line := range j.Lookup("req/1") {
		want.Write(line)
		want.WriteByte('\n')
	}
	r := inferspan(t, "lookup", "req/1", "--json", "--admin", adminOf(t, j.Handler()))
	if diff := cmp.Diff(result{Stdout: want.String()}, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLookup_Failure(t *testing.T) {
	f := func(h http.Handler, want string) {
		t.Helper()
		url := adminOf(t, h)
		r := inferspan(t, "lookup", "gone\x1b", "--admin", url)
		r.Stderr = strings.ReplaceAll(r.Stderr, url, "URL")
		if diff := cmp.Diff(result{Code: 1, Stderr: "inferspan lookup: " + want + "\n"}, r); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			writef(w, "%s", body)
		}
	}
	f(twoRecords().Handler(), `no record of "gone\x1b": the journal of URL holds 2, the first begun 2026-11-30T21:00:00Z (a request comes into it when it has ended; of several Inferspans, one has it)`)
	f(journal.New(0).Handler(), `no record of "gone\x1b": the journal of URL is empty (a request comes into it when it has ended; of several Inferspans, one has it)`)
	f(http.NotFoundHandler(), "URL answered 404 and is no Inferspan: set --admin to the `admin` address of its configuration")
	f(answer(500, `{"error":"out of\u001b luck"}`), `URL answered 500: "out of\x1b luck"`)
	f(answer(200, "<html>\x1b"), `the answer of URL is no record: "<html>\x1b"`)
	f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		writef(w, "{}")
	}), "read the answer of URL: unexpected EOF")
}

func TestLookup_NoRecord(t *testing.T) {
	url := adminOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writef(w, `{"start":5}`) }))
	r := inferspan(t, "lookup", "x", "--admin", url)
	if r.Code != 1 || r.Stdout != "" || !strings.HasPrefix(r.Stderr, "inferspan lookup: show a record: ") {
		t.Errorf("an object that is no record: %+v", r)
	}
	r = inferspan(t, "lookup", "x", "--admin", url, "--json")
	if r.Code != 0 || r.Stdout != "{\"start\":5}\n" {
		t.Errorf("an object that is no record, as JSON: %+v", r)
	}
}

func TestLookup_Refused(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	r := inferspan(t, "lookup", "x", "--admin", s.URL)
	want := "inferspan lookup: nobody listens at " + s.URL + " (connection refused): is inferspan serve running? If elsewhere, set --admin to the `admin` address of its configuration\n"
	if r.Code != 1 || r.Stderr != want {
		t.Errorf("%+v, want %q", r, want)
	}
}
