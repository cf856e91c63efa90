package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/inferspan/inferspan/internal/recording"
)

// recordOf returns a record without what belongs to where it was made: its
// name, its ids, its start and its route.
func recordOf(t *testing.T, line string) map[string]any {
	t.Helper()
	var r map[string]any
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	for _, name := range []string{"name", "trace_id", "span_id", "start", "route"} {
		if _, ok := r[name]; !ok {
			t.Errorf("no %s in %s", name, line)
		}
		delete(r, name)
	}
	return r
}

// What is recorded of an exchange replays to the record that the journal has of
// it, and has nothing of its content.
func TestServe_Record(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	s := startServe(t, atAnyPort+onePool+"record: {dir: "+dir+", every: 2}\n")
	conn := dial(t, s.listen, insecure.NewCredentials())
	rec, err := recording.ReadFile(streams + "chat-tool-auto.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		stream := openStream(t, conn)
		stream.ask(requestHeaders(filterv3.ProcessingMode_BUFFERED))
		stream.ask(requestBody(string(rec.Request.Body)))
		stream.ask(responseHeaders())
		for i, p := range rec.Pieces {
			stream.ask(responseBody(string(p.Data), i == len(rec.Pieces)-1))
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err == nil {
			t.Fatal("the stream goes on")
		}
	}
	found := inferspan(t, "lookup", "--json", "req-1", "--admin", s.admin)
	lines := strings.Split(strings.TrimSpace(found.Stdout), "\n")
	if found.Code != 0 || len(lines) != 2 {
		t.Fatalf("lookup: %+v", found)
	}
	s.stop()
	if code := s.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v: want one of two exchanges", files, err)
	}
	replayed := inferspan(t, "replay", "--json", files[0])
	if replayed.Code != 0 {
		t.Fatalf("replay: %+v", replayed)
	}
	// The first of the two is recorded, and the newest is found first.
	if diff := cmp.Diff(recordOf(t, lines[1]), recordOf(t, replayed.Stdout)); diff != "" {
		t.Errorf("(-journal +recording)\n%s", diff)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"explain", "get_weather", "city"} {
		if !strings.Contains(string(rec.Request.Body), word) || strings.Contains(string(text), word) {
			t.Errorf("%q is in the recording, or was not in the request", word)
		}
	}
}

// A directory that can't be used is told of at the start.
func TestServe_RecordFault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	logs := make(logLines, 10)
	code := run(t.Context(), []string{"serve", "--config", write(t, atAnyPort+"admin: 127.0.0.1:0\nrecord: {dir: "+file+"}\n")}, os.Stdout, logs)
	if line := logs.await(t, "stop"); code != 1 || !strings.HasPrefix(line["error"].(string), "record.dir: record in "+file+": make the directory: ") {
		t.Errorf("exit code %d, %v", code, line)
	}
}
