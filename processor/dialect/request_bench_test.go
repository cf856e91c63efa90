package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/dialect"
)

func bodies() map[string][]byte {
	chat := func(n int) []byte {
		return []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`a line of \"text\", as prompts are\n`, n) + `"}],"stream":true}`)
	}
	return map[string][]byte{
		"chat_1KB":    chat(25),
		"chat_220KB":  chat(6100),
		"token_ids":   []byte(`{"prompt":[` + strings.Repeat("12345,", 36000) + `1],"model":"m"}`),
		"backslashes": []byte(`{"prompt":"` + strings.Repeat(`\\`, 110000) + `","model":"m"}`),
	}
}

// Not parallel, as the count is the process's.
func TestScannerAllocatesTheSameForAnyBody(t *testing.T) {
	for name, body := range bodies() {
		n := testing.AllocsPerRun(20, func() { dialect.NewScanner(dialect.Chat, "").Write(body) })
		// The Scanner, the buffer for names, the model's name and its place.
		if n > 6 {
			t.Errorf("%s: %v allocations for %d bytes", name, n, len(body))
		}
	}
}

func BenchmarkScanner(b *testing.B) {
	for name, body := range bodies() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				dialect.NewScanner(dialect.Chat, "").Write(body)
			}
		})
		b.Run(name+"/json.Valid", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				json.Valid(body)
			}
		})
	}
}
