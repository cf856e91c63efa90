package testkit

import (
	"fmt"
	"net/http"
)

// asker is the user agent of Inferspan's own questions. They are neither kept
// nor answered by a script: tests are about the requests of clients.
const asker = "inferspan"

// SetHealth makes status the answer to Inferspan's questions for the server's
// health; it begins with 200.
func (v *VLLM) SetHealth(status int) { v.health.Store(int64(status)) }

// SetQueue makes the server say that n requests wait; none ever does.
func (v *VLLM) SetQueue(n int) { v.queued.Store(int64(n)) }

// tell answers a question of Inferspan's: how the server is, and what it has to
// do.
func (v *VLLM) tell(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/health":
		w.WriteHeader(int(v.health.Load()))
	case "/metrics":
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		const labels = `{engine="0",model_name="tiny"}`
		_, _ = fmt.Fprintf(w, "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"+
			"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running%s %d.0\n"+
			"vllm:num_requests_waiting%s %d.0\nvllm:kv_cache_usage_perc%s 0.0\n", labels, v.playing.Load(), labels, v.queued.Load(), labels)
	default:
		http.NotFound(w, r)
	}
}
