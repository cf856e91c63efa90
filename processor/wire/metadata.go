package wire

import "strings"

// The namespaces and keys under which Envoy and the endpoint picker protocol
// put what comes beside a phase.
const (
	attributesKey   = "envoy.filters.http.ext_proc"
	subsetNamespace = "envoy.lb.subset_hint"
	subsetKey       = "x-gateway-destination-endpoint-subset"
	lbNamespace     = "envoy.lb"
	servedKey       = "x-gateway-destination-endpoint-served"
	endpointKey     = "x-gateway-destination-endpoint"
	ownNamespace    = "inferspan"
)

// readMetadata reads the metadata context, which comes with every message and is
// empty on nearly all.
func (m *Message) readMetadata(b []byte) error {
	f := walk(b)
	for f.next() {
		if !f.isBytes(metadataFilter) {
			continue
		}
		if err := m.readNamespace(f.data); err != nil {
			return err
		}
	}
	return f.err
}

// readNamespace reads one entry of the metadata's map. Of several with one key
// the last counts.
func (m *Message) readNamespace(entry []byte) error {
	key, err := keyOf(entry)
	if err != nil {
		return err
	}
	switch string(key) {
	case lbNamespace:
		m.ServedEndpoint = ""
		return eachField(entry, func(f fields) error { return m.readServed(f.rest) })
	case subsetNamespace:
		if m.SkipSubset {
			return nil
		}
		m.Subset, m.HasSubset = m.Subset[:0], false
		return eachField(entry, func(f fields) error { return m.readSubset(f.rest) })
	}
	return nil
}

func (m *Message) readServed(entry []byte) error {
	key, err := keyOf(entry)
	if err != nil || string(key) != servedKey {
		return err
	}
	var v scalar
	text := string(entry)
	f := walk(entry)
	for f.next() {
		if !f.isBytes(mapValue) {
			continue
		}
		if err := v.read(f.inside(), text); err != nil {
			return err
		}
	}
	m.ServedEndpoint = v.text
	return f.err
}

// readSubset reads a subset: a list of endpoints, or a string with commas
// between them.
func (m *Message) readSubset(entry []byte) error {
	key, err := keyOf(entry)
	if err != nil || string(key) != subsetKey {
		return err
	}
	m.Subset, m.HasSubset = m.Subset[:0], true
	isList := false
	f := walk(entry)
	for f.next() {
		if !f.isBytes(mapValue) {
			continue
		}
		v := f.inside()
		for v.next() {
			if !v.isKind() {
				continue
			}
			list := v.isBytes(valueList)
			if !list || !isList { // lists after one another are one
				m.Subset = m.Subset[:0]
			}
			isList = list
			switch {
			case list:
				err = m.readList(v.data)
			case v.isBytes(valueString):
				m.Subset = appendEndpoints(m.Subset, string(v.data))
			}
			if err != nil {
				return err
			}
		}
		if v.err != nil {
			return v.err
		}
	}
	return f.err
}

func (m *Message) readList(b []byte) error {
	text := string(b)
	f := walk(b)
	for f.next() {
		if !f.isBytes(listValues) {
			continue
		}
		var v scalar
		if err := v.read(f.inside(), text); err != nil {
			return err
		}
		m.Subset = appendEndpoints(m.Subset, v.text)
	}
	return f.err
}

// appendEndpoints appends the comma separated endpoints of s. One may be there
// twice: the hint of a large pool comes with every message, and to look each time
// would take a thousand times as long as to read it.
func appendEndpoints(to []string, s string) []string {
	for e := range strings.SplitSeq(s, ",") {
		if e = strings.TrimSpace(e); e != "" {
			to = append(to, e)
		}
	}
	return to
}
