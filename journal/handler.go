package journal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Handler serves GET /api/v1/requests/{id}: the records that have id as request
// id, trace id or response id, one JSON object a line, newest first. Faults are
// JSON too: an object with `error`, and with a 404 `records` and `since`, how
// many records are held and when the first of them began.
func (j *Journal) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/requests/{id}", j.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, fault{Error: "not found: ask for /api/v1/requests/{request id | trace id | response id}"})
	})
	return mux
}

type fault struct {
	Error   string `json:"error"`
	Records *int   `json:"records,omitempty"`
	Since   string `json:"since,omitempty"`
}

func (j *Journal) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, fault{Error: "want GET"})
		return
	}
	id := r.PathValue("id")
	if len(id) > MaxID {
		fail(w, http.StatusBadRequest, fault{Error: fmt.Sprintf("the id is %d bytes long, want at most %d", len(id), MaxID)})
		return
	}
	records := j.Lookup(id)
	if len(records) == 0 {
		count, since := j.Held()
		f := fault{Error: fmt.Sprintf("no record of %q", id), Records: &count}
		if count > 0 {
			f.Since = since.UTC().Format(time.RFC3339Nano)
		}
		fail(w, http.StatusNotFound, f)
		return
	}
	header(w, "application/x-ndjson")
	for _, rec := range records {
		// A client that went away is its own affair; the next write fails too.
		if _, err := w.Write(rec); err != nil { //nolint:gosec // JSON, and the header forbids to take it for HTML
			return
		}
		if _, err := w.Write([]byte{'\n'}); err != nil {
			return
		}
	}
}

func header(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

func fail(w http.ResponseWriter, status int, f fault) {
	header(w, "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(f); err != nil {
		return // as above: what can't be written has no reader
	}
}
