package config

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const page = "../../docs/configuration.md"

// The table of the page names every key once, in the order of the types, with
// its default and all that is allowed.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		key, isKey := strings.CutPrefix(cells[0], "| `")
		if !isKey || len(cells) != 4 {
			continue
		}
		key = strings.TrimSuffix(key, "`")
		documented = append(documented, key)
		rows[key] = cells
	}

	var keys []string
	walk(reflect.ValueOf(Default()), "", "", func(path string, v reflect.Value, tag reflect.StructTag) {
		keys = append(keys, path)
		row := rows[path]
		if row == nil {
			return // the comparison below says so
		}
		if want := shown(v); row[1] != want && want != "" {
			t.Errorf("%s: the default is %s, the page says %s", path, want, row[1])
		}
		for _, word := range append(strings.Fields(tag.Get("one")), tag.Get("min"), tag.Get("max")) {
			if word != "" && !strings.Contains(row[2], "`"+word+"`") {
				t.Errorf("%s: %s is allowed or a bound, the page says %s", path, word, row[2])
			}
		}
	})
	if diff := cmp.Diff(keys, documented); diff != "" {
		t.Errorf("keys (-type +page):\n%s", diff)
	}
}

// The examples of the page are valid.
func TestDocs_Examples(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```")
	found := 0
	for _, block := range blocks {
		example, isYAML := strings.CutPrefix(block, "yaml\n")
		if !isYAML {
			continue
		}
		found++
		if _, err := Parse("example", []byte(example)); err != nil {
			t.Errorf("%v in\n%s", err, example)
		}
	}
	if found != 3 {
		t.Errorf("%d examples, want 3", found)
	}
}

// walk calls f for each key at and below v that the page has to name: all but
// mappings that are there by default.
func walk(v reflect.Value, path string, tag reflect.StructTag, f func(string, reflect.Value, reflect.StructTag)) {
	_, isScalar := reflect.TypeAssert[scalar](reflect.New(v.Type()))
	switch {
	case !isScalar && v.Kind() == reflect.Struct:
		for i, key := range keysOf(v.Type()) {
			walk(v.Field(i), join(path, key), v.Type().Field(i).Tag, f)
		}
	case v.Kind() == reflect.Pointer:
		f(path, v, tag)
		value := reflect.New(v.Type().Elem())
		setDefaults(value)
		walk(value.Elem(), path, "", f)
	case v.Kind() == reflect.Slice:
		f(path, v, tag)
		item := reflect.New(v.Type().Elem())
		setDefaults(item)
		if item.Elem().Kind() == reflect.Struct {
			walk(item.Elem(), path+"[]", "", f)
		}
	default:
		f(path, v, tag)
	}
}

// shown returns the default as the page has to show it, empty where it is free
// to say it in words.
func shown(v reflect.Value) string {
	if v.IsZero() && v.Kind() != reflect.Bool {
		return ""
	}
	text := fmt.Sprint(v.Interface())
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		text = strings.TrimSuffix(d.String(), "m0s")
		if text != d.String() {
			text += "m"
		}
		if hours, whole := strings.CutSuffix(text, "h0m"); whole {
			text = hours + "h"
		}
	}
	return "`" + text + "`"
}
