package journal

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files; only commit a change that you understand")

func draw(t testing.TB, line []byte, width int) []byte {
	t.Helper()
	r, err := Decode(line)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	var b bytes.Buffer
	if err := Waterfall(&b, r, width); err != nil {
		t.Fatalf("Waterfall: %v", err)
	}
	return b.Bytes()
}

func TestWaterfall(t *testing.T) {
	files, err := filepath.Glob("testdata/waterfall/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files to draw (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			line, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := draw(t, line, 80)
			checkPage(t, got, 80)
			checkPage(t, draw(t, line, 100), 100)
			checkPage(t, draw(t, line, 0), MinWidth)
			golden := strings.TrimSuffix(file, ".json") + ".txt"
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// checkPage holds what must hold of every waterfall.
func checkPage(t *testing.T, page []byte, width int) {
	t.Helper()
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) > width {
			t.Errorf("a line of %d columns, want at most %d: %q", len(line), width, line)
		}
		for _, c := range []byte(line) {
			if c < ' ' || c > '~' {
				t.Fatalf("the byte %#x in the line %q", c, line)
			}
		}
	}
}

func FuzzWaterfall(f *testing.F) {
	files, err := filepath.Glob("testdata/waterfall/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line, 80)
	}
	f.Fuzz(func(t *testing.T, line []byte, width int) {
		r, err := Decode(line)
		if err != nil {
			return
		}
		width %= 1000
		var b bytes.Buffer
		if err := Waterfall(&b, r, width); err != nil {
			t.Fatalf("Waterfall: %v", err)
		}
		checkPage(t, b.Bytes(), max(width, MinWidth))
	})
}

func TestDecodeNamesTheFault(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		_, err := Decode([]byte(line))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Decode(%s): got error %v, want one with %q", line, err, want)
		}
	}
	f(`{"trace_id":"xyz"}`, `read a line of 18 bytes: decode a record: trace_id: "xyz", want 32 hex digits`)
	f(`{"trace`, "read a line of 7 bytes: unexpected end")
}
