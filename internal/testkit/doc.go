// Package testkit holds the outside world for tests and the demonstration: a
// model server that plays scripts, an OTLP receiver, a client that notes when
// bytes arrive, and launchers for the real Envoy and the real inferspan.
//
// Nothing here waits by sleeping: every wait is for a condition, and its
// context bounds it.
package testkit
