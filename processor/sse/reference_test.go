package sse_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/inferspan/inferspan/processor/sse"
)

// result is all that a stream gives, whatever its cutting.
type result struct {
	events     []string // "type|data", the one of Finish with a leading "end:"
	keepAlives int64
	overflows  int64
}

func (r result) String() string {
	return fmt.Sprintf("%q, %d keep-alives, %d overflows", r.events, r.keepAlives, r.overflows)
}

// parse feeds the pieces to a Parser. It spoils each piece once Next has
// returned false, and each event once it was read: the Parser must not need
// either.
func parse(maxEvent int, pieces ...[]byte) result {
	p := sse.New(maxEvent)
	var r result
	for _, piece := range pieces {
		frame := bytes.Clone(piece)
		p.Push(frame)
		for e, ok := p.Next(); ok; e, ok = p.Next() {
			r.events = append(r.events, string(e.Type)+"|"+string(e.Data))
		}
		for i := range frame {
			frame[i] = '#'
		}
	}
	if e, ok := p.Finish(); ok {
		r.events = append(r.events, "end:"+string(e.Type)+"|"+string(e.Data))
	}
	r.keepAlives, r.overflows = p.KeepAlives(), p.Overflows()
	return r
}

// reference parses a whole stream the plain way.
func reference(maxEvent int, stream []byte) result {
	text := strings.TrimPrefix(string(stream), "\xEF\xBB\xBF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	lines := strings.Split(text, "\n")

	var r result
	var eventType string
	var data []string
	size := 0
	dispatch := func(prefix string) {
		joined := strings.Join(data, "\n")
		if size <= maxEvent && joined != "" {
			r.events = append(r.events, prefix+eventType+"|"+joined)
		}
		if size > maxEvent {
			r.overflows++
		}
		eventType, data, size = "", nil, 0
	}
	for i, line := range lines {
		last := i == len(lines)-1 // the line without an end
		name, v, _ := strings.Cut(line, ":")
		v = strings.TrimPrefix(v, " ")
		switch {
		case line == "" && !last:
			dispatch("")
		case line == "":
		case name == "":
			if !last {
				r.keepAlives++
			}
		case name == "data":
			data = append(data, v)
			size += len(line)
		case name == "event":
			eventType = v
			size += len(line)
		}
	}
	dispatch("end:")
	return r
}

// cuts returns the stream whole, byte by byte, with an empty piece between
// any two bytes, and, where it is short enough, cut at every place once.
func cuts(stream []byte) map[string][][]byte {
	m := map[string][][]byte{"whole": {stream}}
	var single, spaced [][]byte
	for i := range stream {
		single = append(single, stream[i:i+1])
		spaced = append(spaced, stream[i:i+1], nil)
	}
	m["bytes"], m["bytes and nothings"] = single, spaced
	if len(stream) <= 4096 {
		for i := range stream {
			m[fmt.Sprintf("cut at %d", i)] = [][]byte{stream[:i], stream[i:]}
		}
	}
	return m
}

func checkEveryCut(t *testing.T, maxEvent int, stream []byte, want result) {
	t.Helper()
	for name, pieces := range cuts(stream) {
		if got := parse(maxEvent, pieces...); got.String() != want.String() {
			t.Fatalf("%s:\n got %.2000s\nwant %.2000s", name, got, want)
		}
	}
}
