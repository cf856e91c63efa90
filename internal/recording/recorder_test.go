package recording_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/inferspan/inferspan/internal/recording"
	"github.com/inferspan/inferspan/processor/meter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counts are the events that a recorder counted.
type counts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) add(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[event]++
}

func (c *counts) of(event string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[event]
}

// recorder returns a Recorder into a directory, tuned, and what it counts and
// logs.
func recorder(t *testing.T, tune ...func(*recording.RecorderConfig)) (*recording.Recorder, *counts, *bytes.Buffer) {
	t.Helper()
	c, log := &counts{}, &bytes.Buffer{}
	config := recording.RecorderConfig{
		Dir: t.TempDir(), MaxBytes: 64 << 20, Every: 1, Count: c.add, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	for _, f := range tune {
		f(&config)
	}
	r, err := recording.NewRecorder(config)
	if err != nil {
		t.Fatal(err)
	}
	return r, c, log
}

func into(dir string) func(*recording.RecorderConfig) {
	return func(c *recording.RecorderConfig) { c.Dir = dir }
}

func closed(t *testing.T, r *recording.Recorder) {
	t.Helper()
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// names returns what is in a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func readAll(t *testing.T, dir string) []*recording.Recording {
	t.Helper()
	var out []*recording.Recording
	for _, name := range names(t, dir) {
		rec, err := recording.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if rec.Name+".jsonl" != name {
			t.Errorf("%s has the name %s", name, rec.Name)
		}
		out = append(out, rec)
	}
	return out
}

func seq(headers recording.Headers) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, h := range headers {
			if !yield(h.Name, h.Value) {
				return
			}
		}
	}
}

var epoch = time.Date(2026, 11, 30, 10, 35, 3, 123456000, time.UTC)

// play hands a recording to a take, as an exchange that ended by c.
func play(t *recording.Take, rec *recording.Recording, c meter.Cause) {
	playAt(t, rec, c, epoch)
}

func playAt(t *recording.Take, rec *recording.Recording, c meter.Cause, start time.Time) {
	t.Request(rec.Request.Method, rec.Request.Path, seq(rec.Request.Headers))
	t.RequestBody(rec.Request.Body)
	if rec.Head != nil {
		t.Response(rec.Head.At, rec.Head.Status, seq(rec.Head.Headers))
	}
	for _, p := range rec.Pieces {
		t.Frame(p.At, p.Data)
	}
	t.End(c, &meter.Record{End: rec.EndAt, Start: start, Trace: meter.Trace{TraceID: [16]byte{1, 15: 2}}})
}

var causes = map[recording.End]meter.Cause{
	recording.EndEOF: meter.CauseEnd, recording.EndClientClosed: meter.CauseClient, recording.EndReset: meter.CauseUpstream,
	recording.EndTruncated: meter.CauseUpstream, recording.EndTimeout: meter.CauseTimeout,
	recording.EndAborted: meter.CauseAborted, recording.EndLost: meter.CauseLost,
}

// Each exchange that is recorded replays to the record that it had.
func TestRecorderWritesWhatReplaysEqual(t *testing.T) {
	t.Parallel()
	everyRecording(t, func(name string, read func() *recording.Recording) {
		dir := t.TempDir()
		r, _, log := recorder(t, into(dir))
		rec := read()
		play(r.Begin(), rec, causes[rec.End])
		closed(t, r)
		all := readAll(t, dir)
		if len(all) != 1 {
			t.Errorf("%s: %d files, %s", name, len(all), log)
			return
		}
		rec.Name = all[0].Name
		if diff := cmp.Diff(recording.Replay(rec, recording.Cut{}), recording.Replay(all[0], recording.Cut{})); diff != "" {
			t.Errorf("%s: (-recorded +written)\n%s", name, diff)
		}
	})
}

func TestRecorderEnds(t *testing.T) {
	t.Parallel()
	for end, cause := range causes {
		if end == recording.EndTruncated {
			continue // a broken connection is a reset
		}
		dir := t.TempDir()
		r, _, _ := recorder(t, into(dir))
		play(r.Begin(), exchange("/v1/completions", "{}", "text/event-stream", ""), cause)
		closed(t, r)
		if all := readAll(t, dir); len(all) != 1 || all[0].End != end {
			t.Errorf("%s: %+v", end, all)
		}
	}
}

// An end by another's account does not come before what came.
func TestRecorderEndsLast(t *testing.T) {
	t.Parallel()
	for _, pieces := range []int{0, 1} {
		dir := t.TempDir()
		r, _, _ := recorder(t, into(dir))
		rec := exchange("/", "", "text/plain", "x")
		rec.Head.At = time.Second
		rec.Pieces[0].At = 2 * time.Second
		rec.Pieces = rec.Pieces[:pieces]
		play(r.Begin(), rec, meter.CauseEnd)
		closed(t, r)
		if all := readAll(t, dir); len(all) != 1 || all[0].EndAt != time.Duration(1+pieces)*time.Second {
			t.Errorf("got %+v", all)
		}
	}
}

func TestRecorderContent(t *testing.T) {
	t.Parallel()
	for keep, want := range map[bool][2]string{
		false: {`{"prompt":"xxxxxx"}`, "content replaced by filler of the same length"},
		true:  {`{"prompt":"secret"}`, "content as it passed"},
	} {
		dir := t.TempDir()
		r, _, _ := recorder(t, into(dir), func(c *recording.RecorderConfig) { c.KeepContent = keep })
		rec := exchange("/v1/completions", `{"prompt":"secret"}`, "application/json", `{"x":"secret"}`)
		rec.Request.Headers = recording.Headers{{Name: "Authorization", Value: "Bearer key"}, {Name: "X-Request-ID", Value: "r"}, {Name: "x-request-id", Value: "r2"}}
		rec.Head.Headers = append(rec.Head.Headers, recording.Header{Name: "set-cookie", Value: "key"}, recording.Header{Name: "Server", Value: "uvicorn"})
		play(r.Begin(), rec, meter.CauseEnd)
		closed(t, r)
		all := readAll(t, dir)
		if len(all) != 1 {
			t.Fatalf("%d files", len(all))
		}
		got := all[0]
		if string(got.Request.Body) != want[0] || got.Note != want[1] || got.Server != "uvicorn" {
			t.Errorf("%q, %q, %q", got.Request.Body, got.Note, got.Server)
		}
		if diff := cmp.Diff(recording.Headers{{Name: "x-request-id", Value: "r2"}}, got.Request.Headers); diff != "" {
			t.Error(diff)
		}
		if got.Head.Headers.Get("set-cookie") != "" || got.Head.Headers.Get("content-type") == "" {
			t.Errorf("headers %v", got.Head.Headers)
		}
		info, err := os.Stat(filepath.Join(dir, got.Name+".jsonl"))
		if err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(got.Name, "20261130T103503.123456Z-01") {
			t.Errorf("%s: %v, %v", got.Name, info.Mode(), err)
		}
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A content coding is taken off: filler in it would be of another length.
func TestRecorderTakesACodingOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, c, _ := recorder(t, into(dir))
	const plain = "data: {\"choices\":[{\"index\":0,\"text\":\"secret\"}]}\n\ndata: [DONE]\n\n"
	coded := exchange("/v1/completions", "{}", "text/event-stream", gzipped(t, gzipped(t, plain)))
	coded.Head.Headers = append(coded.Head.Headers, recording.Header{Name: "content-encoding", Value: "gzip"},
		recording.Header{Name: "content-length", Value: "9"}, recording.Header{Name: "Content-Encoding", Value: "gzip"})
	play(r.Begin(), coded, meter.CauseEnd)
	broken := exchange("/v1/completions", "{}", "text/event-stream", plain)
	broken.Head.Headers = append(broken.Head.Headers, recording.Header{Name: "content-encoding", Value: "gzip"})
	play(r.Begin(), broken, meter.CauseEnd)
	broken.Head.Headers[1].Value = "made-up"
	play(r.Begin(), broken, meter.CauseEnd)
	closed(t, r)
	all := readAll(t, dir)
	if len(all) != 1 || c.of(recording.CountCoding) != 2 {
		t.Fatalf("%d files, %v", len(all), c.n)
	}
	if got := string(slices.Concat(all[0].Pieces[0].Data)); got != strings.ReplaceAll(plain, "secret", "xxxxxx") {
		t.Errorf("got %q", got)
	}
	if h := all[0].Head.Headers; len(h) != 1 || !strings.HasSuffix(all[0].Note, ", content coding gzip,gzip taken off") {
		t.Errorf("headers %v, note %q", h, all[0].Note)
	}
}

// What can't be a recording is none, and is not counted as lost.
func TestRecorderLeavesOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, c, _ := recorder(t, into(dir), func(c *recording.RecorderConfig) { c.Every = 2 })
	whole := func() *recording.Recording { return exchange("/", "{}", "text/plain", "x") }
	play(r.Begin(), whole(), meter.CauseRejected)
	if r.Begin() != nil {
		t.Error("the second of two is recorded")
	}
	begin := func() *recording.Take {
		take := r.Begin()
		r.Begin()
		return take
	}
	noMethod, noPath, noStatus := whole(), whole(), whole()
	noMethod.Request.Method, noPath.Request.Path, noStatus.Head.Status = "", "", 0
	for _, rec := range []*recording.Recording{noMethod, noPath, noStatus} {
		play(begin(), rec, meter.CauseEnd)
	}
	noHead := whole()
	noHead.Head = nil
	play(begin(), noHead, meter.CauseEnd)
	dropped := begin()
	dropped.Drop()
	dropped.Drop()
	play(dropped, whole(), meter.CauseEnd)
	closed(t, r)
	if n := names(t, dir); len(n) != 0 || len(c.n) != 0 {
		t.Errorf("%v, %v", n, c.n)
	}
}

// Memory is bounded: of an exchange, of all together, and of those that wait.
func TestRecorderBoundsItsMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, c, _ := recorder(t, into(dir))
	part := make([]byte, 1<<20)
	begin := func() *recording.Take {
		take := r.Begin()
		take.Request("POST", "/", seq(nil))
		take.Response(0, 200, seq(nil))
		return take
	}
	large := begin()
	for range 4 {
		large.RequestBody(part)
	}
	large.Frame(0, nil)
	large.RequestBody(part)
	large.End(meter.CauseEnd, &meter.Record{})
	small := begin()
	for range 4 << 20 / 16 {
		small.Frame(0, nil)
	}
	if n := c.of(recording.CountTooLarge); n != 1 {
		t.Errorf("%d too large, want 1: 4 MiB of frames without a byte are not", n)
	}
	small.Frame(0, nil)
	if n := c.of(recording.CountTooLarge); n != 2 {
		t.Errorf("%d too large, want 2", n)
	}

	var takes []*recording.Take
	for c.of(recording.CountMemory) == 0 && len(takes) < 100 {
		take := begin()
		take.RequestBody(part)
		takes = append(takes, take)
	}
	if len(takes) != 65 {
		t.Errorf("%d takes of 1 MiB fill the memory, want 65", len(takes))
	}
	for _, take := range takes {
		take.Drop()
	}
	again := begin()
	again.RequestBody(part)
	again.End(meter.CauseEnd, &meter.Record{})
	closed(t, r)
	if n := len(names(t, dir)); n != 1 || c.of(recording.CountMemory) != 1 {
		t.Errorf("%d files, %v", n, c.n)
	}
}

// Nobody waits for the disk.
func TestRecorderBoundsItsQueue(t *testing.T) {
	t.Parallel()
	busy, resume := make(chan struct{}), make(chan struct{})
	c := &counts{}
	dir := t.TempDir()
	r, _, _ := recorder(t, into(dir), func(config *recording.RecorderConfig) {
		config.Count = func(event string) {
			c.add(event)
			if event == recording.CountCoding {
				close(busy)
				<-resume
			}
		}
	})
	stuck := exchange("/", "", "text/plain", "x")
	stuck.Head.Headers = recording.Headers{{Name: "content-encoding", Value: "made-up"}}
	play(r.Begin(), stuck, meter.CauseEnd)
	<-busy
	for i := range 65 {
		playAt(r.Begin(), exchange("/", "", "text/plain", "x"), meter.CauseEnd, epoch.Add(time.Duration(i)*time.Second))
	}
	if n := c.of(recording.CountQueue); n != 1 {
		t.Errorf("%d found the queue full, want 1", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Close(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "64 exchanges were not written") {
		t.Errorf("closed with %v", err)
	}
	close(resume)
	// The directory goes with the test: nothing may still be put into it.
	underWay := func(name string) bool { return !strings.HasSuffix(name, ".jsonl") }
	for all := names(t, dir); len(all) < 64 || slices.ContainsFunc(all, underWay); all = names(t, dir) {
		if t.Context().Err() != nil {
			t.Fatal("what waited was not written")
		}
	}
}

// The directory has no more than it may: the oldest give way. What is not ours
// stays.
func TestRecorderBoundsItsDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "by", "it")
	tune := func(c *recording.RecorderConfig) { c.Dir, c.MaxBytes = dir, 1500 }
	one := func(r *recording.Recorder, n int) {
		playAt(r.Begin(), exchange("/", strings.Repeat("x", 120), "text/plain", ""), meter.CauseEnd, epoch.Add(time.Duration(n)*time.Hour))
	}
	r, c, log := recorder(t, tune)
	for n := range 5 {
		one(r, n)
	}
	one(r, 4) // under the same name
	closed(t, r)
	hours := func() (out []string) {
		for _, n := range names(t, dir) {
			if len(n) > 50 {
				n = n[9:11]
			}
			out = append(out, n)
		}
		return out
	}
	if got := hours(); !slices.Equal(got, []string{"13", "14"}) || c.of(recording.CountFailed) != 0 {
		t.Fatalf("left are %v, %v, %s", got, c.n, log)
	}
	for _, name := range []string{"other.jsonl", names(t, dir)[0] + ".tmp", "x" + names(t, dir)[0]} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 5000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, c, log = recorder(t, tune)
	one(r, 5)
	one(r, 6)
	closed(t, r)
	if got := hours(); !slices.Contains(got, "other.jsonl") || !slices.Equal(got[:3], []string{"14", "15", "16"}) || len(got) != 5 {
		t.Errorf("left are %v, %v, %s", got, c.n, log)
	}
}

// What can't be written is counted, and the first of several in a row is logged.
func TestRecorderFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small := func(c *recording.RecorderConfig) { c.Dir, c.MaxBytes = dir, 500 }
	r, c, log := recorder(t, small)
	play(r.Begin(), exchange("/", strings.Repeat("x", 500), "text/plain", ""), meter.CauseEnd)
	play(r.Begin(), exchange("/", strings.Repeat("x", 500), "text/plain", ""), meter.CauseEnd)
	closed(t, r)
	if c.of(recording.CountFailed) != 2 || strings.Count(log.String(), "bytes, and all may take 500") != 1 {
		t.Errorf("%v, %s", c.n, log)
	}
	r, c, log = recorder(t, small)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	play(r.Begin(), exchange("/", "x", "text/plain", ""), meter.CauseEnd)
	closed(t, r)
	if c.of(recording.CountFailed) != 1 || !strings.Contains(log.String(), "no such file or directory") {
		t.Errorf("%v, %s", c.n, log)
	}

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.NewRecorder(recording.RecorderConfig{Dir: file}); err == nil || !strings.Contains(err.Error(), "record in "+file+": make the directory: ") {
		t.Errorf("a file as the directory: %v", err)
	}
}
