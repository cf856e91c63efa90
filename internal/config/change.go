package config

import "reflect"

// Change is what Config.Change found.
type Change struct {
	// Applied and Restart are the paths of the keys that differ, in the order of
	// the types: those that took effect, and those that need a restart to.
	Applied, Restart []string
}

// Change returns c with all of next that can change while the program runs:
// the fields with the tag change:"live". A key that has no tag needs a restart,
// so that one that is forgotten is reported and not lost.
func (c Config) Change(next Config) (Config, Change) {
	var ch Change
	ch.take(reflect.ValueOf(&c).Elem(), reflect.ValueOf(next), "")
	return c, ch
}

func (ch *Change) take(running, next reflect.Value, path string) {
	for i, key := range keysOf(running.Type()) {
		field, at := running.Field(i), join(path, key)
		if reflect.DeepEqual(field.Interface(), next.Field(i).Interface()) {
			continue
		}
		_, isScalar := reflect.TypeAssert[scalar](field.Addr())
		switch {
		case running.Type().Field(i).Tag.Get("change") == "live":
			field.Set(next.Field(i))
			ch.Applied = append(ch.Applied, at)
		case field.Kind() == reflect.Struct && !isScalar:
			ch.take(field, next.Field(i), at)
		default:
			ch.Restart = append(ch.Restart, at)
		}
	}
}
