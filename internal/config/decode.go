package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// decoder fills a Config from YAML nodes and goes on after a fault, so that
// one run finds them all. The library's own decoding knows no key paths.
type decoder struct {
	faults []Fault
	lines  map[string]int // of every key seen, by path
}

// scalar is a value with a form of its own. parse sets it from text; its error
// says what is wrong and what is allowed.
type scalar interface{ parse(text string) error }

// defaulter is a list's item, or a mapping that may be left out, that has defaults.
type defaulter interface{ setDefaults() }

// shorthand is a mapping of which one value may stand for all: short returns a
// pointer to its field.
type shorthand interface{ short() any }

func (d *decoder) failf(line int, path, format string, args ...any) {
	d.faults = append(d.faults, Fault{Line: line, Path: path, Problem: fmt.Sprintf(format, args...)})
}

// document decodes data into what to points to. It returns false where the YAML
// can't be read, so that nothing else can be said of it.
func (d *decoder) document(data []byte, to any) bool {
	docs, err := parseYAML(data)
	if err != nil {
		line, problem := syntaxFault(err)
		d.failf(line, "", "%s; allowed: one YAML document", problem)
		return false
	}
	if len(docs) > 1 {
		d.failf(docs[1].Line, "", "a second YAML document begins here; allowed: one YAML document")
		return false
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 || isNull(docs[0].Content[0]) {
		return true
	}
	d.value(docs[0].Content[0], reflect.ValueOf(to).Elem(), "", "")
	return true
}

// parseYAML reads every document of data. The library's YAML readers have
// panicked on hostile input before: a file must never end the process without
// a word about the file.
func parseYAML(data []byte) (docs []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML can't be read (%v)", r)
		}
	}()
	var nodes []yaml.Node
	if strings.TrimSpace(string(data)) == "" {
		return nil, nil
	}
	if err := yaml.Load(data, &nodes, yaml.WithAllDocuments()); err != nil {
		return nil, err
	}
	for i := range nodes {
		docs = append(docs, &nodes[i])
	}
	return docs, nil
}

// syntaxFault returns where and why YAML could not be read.
func syntaxFault(err error) (line int, problem string) {
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		return e.Mark.Line, "not YAML: " + e.Message
	}
	return 0, "not YAML: " + err.Error()
}

// value decodes n into v, which stands at path. tag is the field's tag.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if s, ok := reflect.TypeAssert[scalar](v.Addr()); ok {
		d.scalar(n, path, s.parse)
		d.bounds(n, v, path, tag)
		return
	}
	if s, ok := reflect.TypeAssert[shorthand](v.Addr()); ok && n.Kind == yaml.ScalarNode {
		d.value(n, reflect.ValueOf(s.short()).Elem(), path, "")
		return
	}
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		d.scalar(n, path, func(text string) error { return parseDuration(text, v) })
		d.bounds(n, v, path, tag)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setDefaults(v)
		d.value(n, v.Elem(), path, tag)
	case v.Kind() == reflect.Struct:
		d.mapping(n, v, path)
	case v.Kind() == reflect.Slice:
		d.list(n, v, path)
	case v.Kind() == reflect.String:
		d.text(n, v, path, tag)
	case v.Kind() == reflect.Int:
		d.integer(n, v, path, tag)
	case v.Kind() == reflect.Bool:
		d.boolean(n, v, path)
	default:
		invariant(fmt.Errorf("%s has the type %s, which the decoder does not know", path, v.Type()))
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	keys := keysOf(v.Type())
	if n.Kind != yaml.MappingNode {
		d.failf(n.Line, path, "is %s; allowed: a mapping with the keys %s", kindOf(n), strings.Join(keys, ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		if key.Kind != yaml.ScalarNode {
			d.failf(key.Line, path, "has %s as a key; allowed: %s", kindOf(key), strings.Join(keys, ", "))
			continue
		}
		field := slices.Index(keys, key.Value)
		if field < 0 {
			d.failf(key.Line, join(path, printable(key.Value)), "unknown key%s; allowed: %s", nearest(key.Value, keys), strings.Join(keys, ", "))
			continue
		}
		if first, twice := seen[key.Value]; twice {
			d.failf(key.Line, at, "is there twice, first on line %d; allowed: once", first)
			continue
		}
		seen[key.Value] = key.Line
		d.lines[at] = key.Line
		d.value(val, v.Field(field), at, v.Type().Field(field).Tag)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.failf(n.Line, path, "is %s; allowed: a list, [] for an empty one", kindOf(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		at := path + "[" + strconv.Itoa(i) + "]"
		d.lines[at] = item.Line
		setDefaults(v.Index(i).Addr())
		d.value(item, v.Index(i), at, "")
	}
}

// setDefaults fills in what the type that pointer points to has of defaults.
func setDefaults(pointer reflect.Value) {
	if def, ok := reflect.TypeAssert[defaulter](pointer); ok {
		def.setDefaults()
	}
}

// scalar hands the text of n, of whatever scalar type, to parse.
func (d *decoder) scalar(n *yaml.Node, path string, parse func(string) error) {
	text := n.Value
	if n.Kind != yaml.ScalarNode || isNull(n) {
		text = ""
	}
	if err := parse(text); err != nil {
		found := strconv.Quote(text)
		if n.Kind != yaml.ScalarNode || isNull(n) {
			found = kindOf(n)
		}
		d.failf(n.Line, path, "is %s, %s", found, err)
	}
}

func (d *decoder) text(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	allowed := strings.Fields(tag.Get("one"))
	switch {
	case len(allowed) > 0 && n.Kind == yaml.ScalarNode && slices.Contains(allowed, n.Value):
		v.SetString(n.Value)
	case len(allowed) > 0 && n.Kind == yaml.ScalarNode && !isNull(n):
		d.failf(n.Line, path, "is %q%s; allowed: %s", n.Value, nearest(n.Value, allowed), strings.Join(allowed, ", "))
	case len(allowed) > 0:
		d.failf(n.Line, path, "is %s; allowed: %s", kindOf(n), strings.Join(allowed, ", "))
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null":
		d.failf(n.Line, path, "is %s; allowed: text", kindOf(n))
	case n.ShortTag() != "!!str":
		d.failf(n.Line, path, "is %s; allowed: text, which needs quotes here: %q", kindOf(n), n.Value)
	default:
		v.SetString(n.Value)
	}
}

func (d *decoder) integer(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	allowed := fmt.Sprintf("a whole number from %s to %s", tag.Get("min"), tag.Get("max"))
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		d.failf(n.Line, path, "is %s; allowed: %s", kindOf(n), allowed)
		return
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || i < bound(tag.Get("min"), v.Type()) || i > bound(tag.Get("max"), v.Type()) {
		d.failf(n.Line, path, "is %s; allowed: %s", printable(n.Value), allowed)
		return
	}
	v.SetInt(i)
}

func (d *decoder) boolean(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		d.failf(n.Line, path, "is %s; allowed: true, false", kindOf(n))
		return
	}
	v.SetBool(strings.EqualFold(n.Value, "true"))
}

// bounds checks a duration or size against the tags min and max of its field.
func (d *decoder) bounds(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if len(d.faults) > 0 && d.faults[len(d.faults)-1].Path == path {
		return // its text was wrong
	}
	low, hasLow := tag.Lookup("min")
	high, hasHigh := tag.Lookup("max")
	switch {
	case hasLow && v.Int() < bound(low, v.Type()):
		d.failf(n.Line, path, "is %q, which is too small; allowed: %s or more", n.Value, low)
	case hasHigh && v.Int() > bound(high, v.Type()):
		d.failf(n.Line, path, "is %q, which is too large; allowed: %s to %s", n.Value, low, high)
	}
}

// keysOf returns the keys of a struct, in the order of its fields.
func keysOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i] = t.Field(i).Tag.Get("yaml")
	}
	return keys
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// kindOf says what n is, for people.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!int", "!!float":
		return "the number " + printable(n.Value)
	case "!!bool":
		return "the boolean " + printable(n.Value)
	}
	return "the text " + strconv.Quote(n.Value)
}
