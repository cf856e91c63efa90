package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// environment reads the standard variables. As the specification asks, a value
// that means nothing is reported and passed over.
type environment struct {
	get func(string) string
	log *slog.Logger
}

func (e environment) value(key string) string { return strings.TrimSpace(e.get(key)) }

// bad reports a value that means nothing.
func (e environment) bad(key, value, allowed string) {
	e.log.Warn("environment variable ignored", "name", key, "value", value, "allowed", allowed)
}

func (e environment) disabled() bool { return strings.EqualFold(e.value("OTEL_SDK_DISABLED"), "true") }

// exports tells whether signal ("TRACES", "METRICS") goes out over OTLP: an
// endpoint is named, and the exporter, if one is named, is otlp.
func (e environment) exports(signal string) bool {
	if e.disabled() {
		return false
	}
	if e.value("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && e.value("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") == "" {
		return false
	}
	key := "OTEL_" + signal + "_EXPORTER"
	names := e.value(key)
	if names == "" {
		return true
	}
	otlp := false
	for name := range strings.SplitSeq(names, ",") {
		switch strings.TrimSpace(name) {
		case "otlp":
			otlp = true
		case "none":
		case "prometheus":
			// /metrics is always there.
			if signal != "METRICS" {
				e.bad(key, name, "otlp, none")
			}
		default:
			e.bad(key, name, "otlp, none")
		}
	}
	return otlp
}

const (
	protocolGRPC     = "grpc"
	protocolHTTP     = "http/protobuf"
	protocolHTTPJSON = "http/json"
)

// ofSignal is the variable of OTLP that says name for signal, and its value: its
// own, or that of all signals.
func (e environment) ofSignal(signal, name string) (key, value string) {
	key = "OTEL_EXPORTER_OTLP_" + signal + "_" + name
	if value = e.value(key); value == "" {
		key = "OTEL_EXPORTER_OTLP_" + name
		value = e.value(key)
	}
	return key, value
}

// protocol is the OTLP protocol of signal, which is exported. An unknown one is
// an error: no other can be guessed. So is an endpoint that the protocol can't
// reach, which the exporters would take for a default or a name to resolve.
func (e environment) protocol(signal string) (string, error) {
	key, p := e.ofSignal(signal, "PROTOCOL")
	if p == "" {
		p = protocolGRPC
	}
	if err := oneOfEnv(key, p, protocolGRPC, protocolHTTP, protocolHTTPJSON); err != nil {
		return "", err
	}
	key, endpoint := e.ofSignal(signal, "ENDPOINT")
	if !reachable(endpoint, p) {
		// It may hold a password.
		shown := endpoint[strings.LastIndexByte(endpoint, '@')+1:]
		return "", fmt.Errorf("environment variable %s is %q, want a URL such as http://127.0.0.1:4317", key, shown)
	}
	return p, nil
}

// reachable tells whether an endpoint is one for protocol: a URL of HTTP, and for
// gRPC also any target of its own that has a scheme or a port, such as dns:///a:1
// or a:1. Empty, it is the exporter's default.
func reachable(endpoint, protocol string) bool {
	if endpoint == "" {
		return true
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	switch {
	case u.Scheme == "http", u.Scheme == "https":
		return u.Hostname() != ""
	case protocol != protocolGRPC:
		return false
	}
	return u.Scheme != "" || u.Hostname() != ""
}

func oneOfEnv(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("environment variable %s is %q, allowed are %s", key, value, strings.Join(allowed, ", "))
}

// number is a positive number, or the default.
func (e environment) number(key string, otherwise int) int {
	v := e.value(key)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n <= 0 || n > 1<<31-1 {
		e.bad(key, v, "a number from 1 to 2147483647")
		return otherwise
	}
	return n
}

func (e environment) milliseconds(key string, otherwise time.Duration) time.Duration {
	return time.Duration(e.number(key, int(otherwise/time.Millisecond))) * time.Millisecond
}

// sampler is the head sampler. With the SDK disabled nothing is sampled that
// no parent sampled.
func (e environment) sampler() sdktrace.Sampler {
	if e.disabled() {
		return sdktrace.ParentBased(sdktrace.NeverSample())
	}
	const key = "OTEL_TRACES_SAMPLER"
	name := strings.ToLower(e.value(key))
	switch name {
	case "", "parentbased_always_on":
		return sdktrace.ParentBased(sdktrace.AlwaysSample())
	case "always_on":
		return sdktrace.AlwaysSample()
	case "always_off":
		return sdktrace.NeverSample()
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample())
	case "traceidratio":
		return sdktrace.TraceIDRatioBased(e.ratio())
	case "parentbased_traceidratio":
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(e.ratio()))
	}
	e.bad(key, name, "always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio")
	return sdktrace.ParentBased(sdktrace.AlwaysSample())
}

func (e environment) ratio() float64 {
	const key = "OTEL_TRACES_SAMPLER_ARG"
	v := e.value(key)
	if v == "" {
		return 1
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		e.bad(key, v, "a number from 0 to 1")
		return 1
	}
	return f
}

// newResource describes this process; what the environment says wins.
func newResource(ctx context.Context, e environment, version string) (*resource.Resource, error) {
	instance := e.value("POD_UID")
	if instance == "" {
		instance = uuid.NewString()
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			keyServiceName.String("inferspan"),
			keyServiceVersion.String(version),
			keyServiceInstance.String(instance),
		),
		resource.WithFromEnv(),
	)
	if errors.Is(err, resource.ErrPartialResource) {
		e.bad("OTEL_RESOURCE_ATTRIBUTES", e.value("OTEL_RESOURCE_ATTRIBUTES"), "key=value, separated by commas")
		return res, nil
	}
	if err != nil {
		return nil, fmt.Errorf("describing this process: %w", err)
	}
	return res, nil
}
