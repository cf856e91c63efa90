// Package integration runs the delivered Envoy configurations on the real
// Envoy, between a client and stand-in model servers, with the real inferspan
// beside it or dead. `make integration` runs it; it has no code of its own.
package integration
