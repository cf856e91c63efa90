package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Trusted says whose wishes count: requests with this header and value. No header: nobody's.
type Trusted struct {
	Header string `yaml:"header"`
	// Value is the header's value where it is no secret.
	Value string `yaml:"value"`
	// ValueFile holds it where it is one.
	ValueFile string `yaml:"value_file"`
}

// ownPrefix begins the headers that are taken out of requests.
const ownPrefix = "x-inferspan-"

// Expected returns the value that makes a request a trusted one. It reads the
// file where there is one.
func (t Trusted) Expected() (string, error) {
	if t.ValueFile == "" {
		return t.Value, nil
	}
	b, err := os.ReadFile(t.ValueFile)
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	secret := strings.TrimSpace(string(b))
	if secret == "" {
		return "", errors.New("read the secret: " + t.ValueFile + " is empty")
	}
	return secret, nil
}

func (v *validator) trusted(t Trusted) {
	if t == (Trusted{}) {
		return
	}
	if !validHeader(t.Header) {
		v.failf("trusted.header", "%s; allowed: the name of a header", nameProblem(t.Header))
		return
	}
	switch {
	case (t.Value == "") == (t.ValueFile == ""):
		v.failf("trusted.header", "has %s; allowed: one of trusted.value and trusted.value_file", map[bool]string{true: "no value", false: "two values"}[t.Value == ""])
	case t.ValueFile == "":
	case !strings.HasPrefix(strings.ToLower(t.Header), ownPrefix):
		v.failf("trusted.header", "is %q, and would go on to the model servers with the secret; allowed: with value_file, a name that begins with %s", t.Header, ownPrefix)
	default:
		if _, err := t.Expected(); err != nil {
			v.failf("trusted.value_file", "%s; allowed: a file that holds the secret", err)
		}
	}
}

// validHeader tells whether s is a header's name, as RFC 9110 has it.
func validHeader(s string) bool {
	return s != "" && len(s) <= maxModel && !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
