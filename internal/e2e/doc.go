// Package e2e checks that what arrives is what was sent, with the real parts
// all the way: clients, Envoy, Inferspan, the OpenTelemetry Collector and
// Prometheus; only the model servers are stand-ins that play recordings.
//
// Its tests have the build tag e2e and need the programs of `make tools`; `make
// e2e` runs them.
package e2e
