package meter

import (
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

func TestClass(t *testing.T) {
	for _, c := range []struct {
		outcome Outcome
		status  int
		want    Class
	}{
		{OK, 200, ClassDone}, {OKNoFinish, 200, ClassDone}, {ClientCancelledAfterFinish, 200, ClassDone},
		{ClientCancelled, 200, ClassCancelled}, {Aborted, 200, ClassCancelled},
		{ErrorInStream, 200, ClassFailed}, {UpstreamReset, 200, ClassFailed}, {Timeout, 0, ClassFailed},
		{Empty, 200, ClassFailed}, {Truncated, 200, ClassFailed},
		{HTTPError, 500, ClassFailed}, {HTTPError, 429, ClassFailed}, {HTTPError, 404, ClassRefused},
		{Rejected, 404, ClassRejected}, {Lost, 200, ClassUnknown}, {Unparsed, 200, ClassUnknown},
	} {
		if got := c.outcome.Class(c.status); got != c.want {
			t.Errorf("Outcome(%s).Class(%d) = %s, want %s", c.outcome, c.status, got, c.want)
		}
	}
}

func TestOperation(t *testing.T) {
	for _, c := range []struct {
		dialect dialect.Dialect
		path    string
		want    string
	}{
		{dialect.Chat, "/v1/chat/completions", "chat"},
		{dialect.Completions, "/v1/completions", "text_completion"},
		{dialect.Unknown, "/v1/embeddings", "embeddings"},
		{dialect.Unknown, "/v1/responses", "chat"},
		{dialect.Unknown, "/v1/responses/resp_1", "other"},
		{dialect.Unknown, "/made/up/7f3a", "other"},
	} {
		if got := Operation(c.dialect, c.path); got != c.want {
			t.Errorf("Operation(%v, %q) = %s, want %s", c.dialect, c.path, got, c.want)
		}
	}
}
