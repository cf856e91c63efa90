package telemetry

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// temporary tells whether an export failed in a way that another try can mend:
// the collector is away, does not answer, or says that it is busy. What else it
// says, it would say again.
func temporary(err error) bool {
	if s, ok := status.FromError(err); ok {
		return temporaryStatus(s)
	}
	var transport *url.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &transport) || throttled(err)
}

// temporaryStatus is OTLP's own list.
func temporaryStatus(s *status.Status) bool {
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return true
	case codes.ResourceExhausted:
		// Without a word when to come again, the request is too large.
		for _, d := range s.Details() {
			if _, ok := d.(interface{ GetRetryDelay() *durationpb.Duration }); ok {
				return true
			}
		}
	}
	return false
}

// throttled tells whether an answer over HTTP was one of those after which a
// client comes again. The exporters report it by a type of their own, so it is
// known by its field.
func throttled(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			return slices.ContainsFunc(joined.Unwrap(), throttled)
		}
		if v := reflect.ValueOf(err); v.Kind() == reflect.Struct && v.FieldByName("throttle").IsValid() {
			return true
		}
	}
	return false
}
