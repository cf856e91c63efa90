package scrape

import (
	"bufio"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// BenchmarkRead reads a real page; library is how long Prometheus's own parser
// takes.
func BenchmarkRead(b *testing.B) {
	text := realPage(b)
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		r := bufio.NewReaderSize(nil, lineBytes)
		for b.Loop() {
			r.Reset(strings.NewReader(text))
			if p, err := Read(r); err != nil || !p.Running.OK {
				b.Fatal(p, err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			parser := expfmt.NewTextParser(model.LegacyValidation)
			if _, err := parser.TextToMetricFamilies(strings.NewReader(text)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
