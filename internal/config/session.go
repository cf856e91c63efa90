package config

import "strconv"

// maxSessionHeaders bounds what each request's headers are compared with.
const maxSessionHeaders = 8

func (v *validator) sessionHeaders(names []string) {
	const key = "request.session_headers"
	if len(names) > maxSessionHeaders {
		v.failf(key, "has %d names; allowed: %d at most", len(names), maxSessionHeaders)
	}
	for i, name := range names {
		if !validHeader(name) {
			v.failf(key+"["+strconv.Itoa(i)+"]", "%s; allowed: the name of a header", nameProblem(name))
		}
	}
}
