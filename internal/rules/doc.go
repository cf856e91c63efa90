// Package rules shows that each rule of token evidence (docs/definitions.md,
// sections 2 and 4) is held by a test. `make rules` switches the rules off one by
// one and expects that a test of the measuring core fails, other than the one
// that compares with a model. It has no code of its own.
//
// A rule is switched off in a copy of the file that it stands in, which the go
// command reads in the place of the file; the tree stays as it is.
package rules
