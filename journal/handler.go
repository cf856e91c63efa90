package journal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Prefix begins the path of every id.
const Prefix = "/api/v1/requests/"

// Path returns the path that [Journal.Handler] serves id at, escaped so that none
// on the way takes a part of it for a path's own.
func Path(id string) string {
	if id == "." || id == ".." {
		return Prefix + strings.ReplaceAll(id, ".", "%2E")
	}
	return Prefix + url.PathEscape(id)
}

// Handler serves GET /api/v1/requests/{id}: the records that have id as request
// id, trace id or response id, one JSON object a line, newest first. Faults are
// JSON too: an object with `error`, and with a 404 `records` and `since`, how
// many records are held and when the first of them began.
//
// An id is one segment of the path, escaped, and may be any text. So no
// [http.ServeMux] may stand before it, which takes some for a path to clean.
func (j *Journal) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id, ok := idOf(r.URL.EscapedPath()); ok {
			j.serve(w, r, id)
			return
		}
		fail(w, http.StatusNotFound, fault{Error: "not found: ask for " + Prefix + "{request id | trace id | response id}"})
	})
}

// idOf returns the id that an escaped path names.
func idOf(path string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(path, Prefix)
	if !ok || rest == "" || strings.Contains(rest, "/") {
		return "", false
	}
	id, err := url.PathUnescape(rest)
	return id, err == nil
}

type fault struct {
	Error   string `json:"error"`
	Records *int   `json:"records,omitempty"`
	Since   string `json:"since,omitempty"`
}

func (j *Journal) serve(w http.ResponseWriter, r *http.Request, id string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, fault{Error: "want GET"})
		return
	}
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
