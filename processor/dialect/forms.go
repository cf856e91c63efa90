package dialect

import "bytes"

// The events of a stream share almost all their bytes: what changes is one text.
// A form is an event that was read, with a hole where a text stood of which only
// matters that it is there. An event that differs from it in nothing but another
// text in the hole says the same, so that comparing is enough.
//
// A form is learned from every event that fits none, as long as that pays.

const (
	// maxForms is the number of forms kept: streams of several choices
	// interleave theirs.
	maxForms = 2
	// maxForm is the longest event that a form is learned from, in bytes.
	maxForm = 512
	// maxMisses is how many events in a row may fit no form before one is
	// learned at every missPause-th only: some streams never repeat.
	maxMisses = 16
	missPause = 64
)

type forms struct {
	dialect Dialect // that they were learned in
	list    [maxForms]form
	next    int // the one to be replaced next
	misses  int
}

// form is an event, and what it says; its texts are parts of data.
type form struct {
	data []byte
	// from and to are the hole, the text's first byte and the quote behind it.
	// Invariant: from < to, or data is empty.
	from, to  int
	choice    Choice
	id, model Text
}

// read reads an event that fits a form.
func (s *forms) read(d Dialect, f *Facts, data []byte) bool {
	if d != s.dialect {
		*s = forms{dialect: d}
	}
	for i := range s.list {
		if m := &s.list[i]; m.fits(data) {
			s.misses = 0
			f.ID, f.Model = m.id, m.model
			f.Choices = append(f.Choices, m.choice)
			return true
		}
	}
	s.misses++
	return false
}

// fits tells whether an event differs from the form only in its hole, and has a
// text there that ends with the hole.
func (m *form) fits(data []byte) bool {
	behind := len(m.data) - m.to
	end := len(data) - behind
	if len(m.data) == 0 || end <= m.from {
		return false
	}
	return bytes.Equal(data[end:], m.data[m.to:]) &&
		bytes.Equal(data[:m.from], m.data[:m.from]) &&
		isText(data[m.from:end])
}

// isText tells whether what stands between two quotes is one text.
func isText(b []byte) bool {
	if len(b) < 32 {
		for i := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				return false
			case '\\':
				if i++; i == len(b) {
					return false
				}
			}
		}
		return true
	}
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return bytes.IndexByte(b, '"') < 0
		}
		if bytes.IndexByte(b[:i], '"') >= 0 || i+1 == len(b) {
			return false
		}
		b = b[i+2:]
	}
}

// learn makes a form of an event that fitted none and was then read, where it
// has a hole and says nothing but what a form holds.
func (s *forms) learn(f *Facts, data []byte) {
	from, to := f.scan.from, f.scan.to
	if from >= to || len(data) > maxForm || s.misses > maxMisses && s.misses%missPause != 0 {
		return
	}
	if len(f.Choices) != 1 || f.Unread > 0 || f.Usage.Present || f.Metrics.Present || f.Error.Set {
		return
	}
	m := &s.list[s.next]
	s.next = (s.next + 1) % maxForms
	m.data = append(m.data[:0], data...)
	m.from, m.to = from, to
	m.choice = f.Choices[0]
	m.choice.IDList = m.own(data, m.choice.IDList)
	m.choice.Finish = m.own(data, m.choice.Finish)
	m.id, m.model = m.own(data, f.ID), m.own(data, f.Model)
}

// own returns the part of the form's data that is where part is in data.
func (m *form) own(data, part []byte) []byte {
	if part == nil {
		return nil
	}
	// Both end at the same capacity, so their distance is that of their begins.
	at := cap(data) - cap(part)
	return m.data[at : at+len(part) : at+len(part)]
}
