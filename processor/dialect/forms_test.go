package dialect

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
)

// readBoth reads an event with a Facts that has read others, and checks that a
// new one says the same.
func readBoth(t *testing.T, d Dialect, f *Facts, data []byte) {
	t.Helper()
	var fresh Facts
	// The forms must not depend on memory that is used again.
	again := bytes.Clone(data)
	d.Read(f, nil, again)
	got := decoded(f)
	d.Read(&fresh, nil, data)
	if want := decoded(&fresh); !reflect.DeepEqual(got, want) {
		t.Fatalf("dialect %d: %s\n by form %+v\n scanned %+v", d, data, got, want)
	}
	var lists [2][]byte
	for i, facts := range []*Facts{f, &fresh} {
		for _, c := range facts.Choices {
			lists[i] = append(lists[i], c.IDList...)
		}
	}
	if !bytes.Equal(lists[0], lists[1]) {
		t.Fatalf("dialect %d: %s: ids %s, want %s", d, data, lists[0], lists[1])
	}
	for i := range again {
		again[i] = 'x'
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	chunk := func(index int, delta, more string) string {
		return fmt.Sprintf(`{"id":"c","model":"m","choices":[{"index":%d,"delta":%s%s}],"x":[]}`, index, delta, more)
	}
	var f Facts
	learned := func(data string) {
		t.Helper()
		if f.forms.misses > 0 {
			t.Errorf("fits no form: %s", data)
		}
	}
	same := []string{`b`, `\"`, `\\`, `\u4f60`, `"`, `a"`, `\`, `a\`, `\\"`, `","x":"`, ``, "a long text, of more than 32 bytes, as many chunks have", `a long text with \"escapes\" in it, one at the end \\`, `and one that ends too soon "x" is not a text`, `nor is one that ends in the middle of an escape \`}
	readBoth(t, Chat, &f, []byte(chunk(0, `{"content":"a"}`, `,"finish_reason":null`)))
	for _, text := range same {
		readBoth(t, Chat, &f, []byte(chunk(0, `{"content":"`+text+`"}`, `,"finish_reason":null`)))
	}
	data := chunk(0, `{"content":"z"}`, `,"finish_reason":null`)
	readBoth(t, Chat, &f, []byte(data))
	learned(data)

	// Choices that take turns each have a form.
	f = Facts{}
	for i := range 20 {
		for choice := range maxForms {
			data := chunk(choice, fmt.Sprintf(`{"content":"%d"}`, i), `,"token_ids":[7]`)
			readBoth(t, Chat, &f, []byte(data))
			if i > 0 {
				learned(data)
			}
		}
	}

	// The same bytes can say something else in another dialect.
	readBoth(t, Completions, &f, []byte(chunk(0, `{"content":"0"}`, `,"token_ids":[7]`)))

	// A finish and ids are the form's too, whatever became of their bytes.
	for range 3 {
		readBoth(t, Chat, &f, []byte(chunk(0, `{"content":"y"}`, `,"token_ids":[1,2],"finish_reason":"stop"`)))
	}
	if c := f.Choices[0]; string(c.Finish) != "stop" || string(c.IDList) != "1,2" || string(f.Model) != "m" {
		t.Errorf("%+v, model %s", c, f.Model)
	}
}

// A stream that never repeats learns seldom, and again when it begins to repeat.
func TestFormsRest(t *testing.T) {
	t.Parallel()
	var f Facts
	varied := func(i int) []byte { return fmt.Appendf(nil, `{"created":%d,"choices":[{"delta":{"content":"a"}}]}`, i) }
	kept := 0
	for i := range 1000 {
		before := f.forms.next
		readBoth(t, Chat, &f, varied(i))
		if f.forms.next != before {
			kept++
		}
	}
	if kept > maxMisses+1000/missPause+1 {
		t.Errorf("learned %d forms of 1000 events that are all others", kept)
	}
	for range 2 * missPause {
		readBoth(t, Chat, &f, varied(7))
	}
	if f.forms.misses > 0 {
		t.Error("does not learn again")
	}
}

// Recorded streams, one event after the other.
func TestFormsOfRecordings(t *testing.T) {
	t.Parallel()
	events, _ := recorded(t)
	facts := make([]Facts, len(all))
	for _, data := range events {
		for i, d := range all {
			readBoth(t, d, &facts[i], data)
		}
	}
}

// FuzzForms: an event reads the same by form and scanned, whatever stands in the
// hole of the form that the event before gave.
func FuzzForms(f *testing.F) {
	events, _ := recorded(f)
	for i := 0; i < len(events); i += 10 {
		f.Add(events[i], []byte(` a\"`), events[(i+11)%len(events)])
	}
	for _, data := range typedEvents {
		f.Add([]byte(data), []byte(`a`), []byte(data))
	}
	f.Fuzz(func(t *testing.T, data, text, other []byte) {
		for _, d := range all {
			var f Facts
			readBoth(t, d, &f, data)
			if m := f.forms.list[0]; len(m.data) > 0 {
				inHole := append(append(bytes.Clone(m.data[:m.from]), text...), m.data[m.to:]...)
				readBoth(t, d, &f, inHole)
			}
			readBoth(t, d, &f, other)
			readBoth(t, d, &f, data)
		}
	})
}
