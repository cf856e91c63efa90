package config

import (
	"slices"
	"strconv"
	"strings"
)

// Attributes are what the configuration adds to spans and metrics.
type Attributes struct {
	FromHeaders []HeaderAttribute `yaml:"from_headers" change:"live"`
}

// HeaderAttribute makes an attribute of a request header.
type HeaderAttribute struct {
	Header string `yaml:"header"`
	// Attribute is its name on spans and metrics.
	Attribute string `yaml:"attribute"`
	// MetricValues is how many values are told apart on metrics; 0: it is on
	// spans only.
	MetricValues int `yaml:"metric_values" min:"0" max:"1000"`
}

// maxHeaderSeries bounds what the values of all header attributes together
// multiply series by.
const maxHeaderSeries = 1000

// credentials are headers that are never shown, however much somebody wants to.
var credentials = []string{
	"authorization", "proxy-authorization", "cookie", "set-cookie", "api-key", "x-api-key",
	"x-amz-security-token", "x-goog-api-key", "x-forwarded-client-cert",
}

func (v *validator) headerAttributes(all []HeaderAttribute, trusted string) {
	const key = "attributes.from_headers"
	first, series := map[string]int{}, 1
	for i, a := range all {
		path := key + "[" + strconv.Itoa(i) + "]"
		name := strings.ToLower(a.Header)
		switch {
		case !validHeader(a.Header):
			v.failf(path+".header", "%s; allowed: the name of a header", nameProblem(a.Header))
		case slices.Contains(credentials, name) || strings.EqualFold(name, trusted):
			v.failf(path+".header", "%q holds a secret; allowed: a header that may be shown", a.Header)
		}
		switch j, twice := first[a.Attribute]; {
		case !validPool(a.Attribute):
			v.failf(path+".attribute", "%s; allowed: 1 to %d letters, digits, '.', '_' or '-'", nameProblem(a.Attribute), maxName)
		case reserved(a.Attribute):
			v.failf(path+".attribute", "%q is a name of ours or of the conventions; allowed: a name of your own", a.Attribute)
		case twice:
			v.failf(path+".attribute", "%q is the name of %s[%d] too; allowed: a name of its own", a.Attribute, key, j)
		default:
			first[a.Attribute] = i
		}
		// One more stands for all others, and one for its absence.
		if a.MetricValues > 0 && series <= maxHeaderSeries {
			series *= a.MetricValues
		}
	}
	if series > maxHeaderSeries {
		v.failf(key, "metric_values multiplied exceed %d, and so many series each metric could have for each model; allowed: %d at most", maxHeaderSeries, maxHeaderSeries)
	}
}

// reserved tells whether an attribute's name is not for a configuration to give.
func reserved(name string) bool {
	for _, prefix := range []string{"gen_ai.", "inferspan.", "otel.", "service.", "server.", "error.", "http."} {
		if strings.HasPrefix(strings.ToLower(name), prefix) {
			return true
		}
	}
	return name == "le" || name == "job" || name == "instance"
}
