// Package budget compares what Inferspan costs with a stock external processor
// that answers every message and looks at nothing (noop), by benchmarks: both
// run as programs of their own, are sent the same messages by turns over a unix
// socket, and the processor time that each used is read from the kernel. A
// metric x_noop is Inferspan's share for one of the stock processor's.
// `make budgets` runs them and prints a table against what the design allows.
package budget
