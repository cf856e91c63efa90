// Package telemetry turns the records of exchanges into spans and metrics and
// brings them out: over OTLP, and as a page that Prometheus scrapes.
//
//	Begin     ids and the head decision, when the request headers came
//	First     a milestone's histogram, when it happens
//	End       the record: queue -> worker -> metrics, and the span -> batch -> export
//
// Every name that leaves this package stands in the catalogue, from which the
// instruments, docs/telemetry.md and the tests are made.
//
// Nothing here makes an exchange wait. What can't be kept is dropped and
// counted: spans queued = sent + dropped after queueing + still waiting.
package telemetry
