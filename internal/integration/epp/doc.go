// Package epp drives `inferspan serve` from outside as a gateway does that
// speaks the Gateway API endpoint picker protocol: message sequences in,
// expectations on what comes back. Its tests need the build tag integration.
package epp
