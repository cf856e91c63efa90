package telemetry

import (
	"errors"
	"reflect"
)

// rejectedSpans returns how many spans the collector rejected of an export that
// it otherwise took; partial is false for any other error. The exporters report
// it by a type of their own internal packages, so it is known by its fields.
func rejectedSpans(err error) (n int, partial bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			return rejectedInAll(joined.Unwrap())
		}
		v := reflect.ValueOf(err)
		if v.Kind() != reflect.Struct {
			continue
		}
		items := v.FieldByName("RejectedItems")
		if items.IsValid() && items.Kind() == reflect.Int64 {
			return int(max(0, items.Int())), true
		}
	}
	return 0, false
}

// rejectedInAll is partial only where each of errs is: beside another error the
// export failed as a whole.
func rejectedInAll(errs []error) (n int, partial bool) {
	for _, err := range errs {
		rejected, ok := rejectedSpans(err)
		if !ok {
			return 0, false
		}
		n, partial = n+rejected, true
	}
	return n, partial
}
