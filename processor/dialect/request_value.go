package dialect

import (
	"math"
	"strconv"
	"strings"
)

// member is a member that matters, in the container that it matters in.
type member uint8

const (
	fieldNone member = iota
	fieldModel
	fieldStream
	fieldStreamOptions
	fieldIncludeUsage
	fieldContinuousUsage
	fieldN
	fieldMaxTokens
	fieldMaxCompletionTokens
	fieldMaxOutputTokens
	fieldSampling
	fieldEcho
	fieldGenerationPrompt
	fieldMessages
	fieldRole
	fieldBeam
	fieldPrompt
	fieldSession
	fieldAnswer
)

// valueKind is the kind of a JSON value, as far as it matters.
type valueKind uint8

const (
	kindLiteral valueKind = iota // a number, true, false or null
	kindString
	kindContainer
)

// named returns what the member named key means where it stands.
func (s *Scanner) named(key []byte) member {
	if s.response {
		return s.in.responseField(s.request.Dialect, key)
	}
	return s.in.field(key)
}

// field returns what the member named key of a request means in c.
func (c scanContainer) field(key []byte) member {
	switch c {
	case inBody:
		switch string(key) {
		case "model":
			return fieldModel
		case "stream":
			return fieldStream
		case "stream_options":
			return fieldStreamOptions
		case "n":
			return fieldN
		case "max_tokens":
			return fieldMaxTokens
		case "max_completion_tokens":
			return fieldMaxCompletionTokens
		case "max_output_tokens":
			return fieldMaxOutputTokens
		case "sampling_params":
			return fieldSampling
		case "echo":
			return fieldEcho
		case "add_generation_prompt":
			return fieldGenerationPrompt
		case "messages":
			return fieldMessages
		case "use_beam_search":
			return fieldBeam
		case "prompt", "prompt_embeds":
			return fieldPrompt
		case "prompt_cache_key":
			return fieldSession
		}
	case inOptions:
		switch string(key) {
		case "include_usage":
			return fieldIncludeUsage
		case "continuous_usage_stats":
			return fieldContinuousUsage
		}
	case inSampling:
		switch string(key) {
		case "n":
			return fieldN
		case "max_tokens":
			return fieldMaxTokens
		}
	case inMessage:
		if string(key) == "role" {
			return fieldRole
		}
	}
	return fieldNone
}

// set takes the value of a member. It replaces what an earlier member of the
// same name set, with nothing where the value is of no use.
func (s *Scanner) set(f member, k valueKind, b []byte) {
	r := &s.request
	if s.token.tooLong && f != fieldModel && f != fieldSession {
		b = nil
	}
	switch f {
	case fieldModel:
		last := r.Model
		r.Model, r.HasModel, s.modelTooLong = "", k == kindString, false
		switch {
		case r.HasModel && string(b) == last:
			r.Model = last // the chunks of a stream say the same
		case r.HasModel:
			s.modelTooLong = s.token.tooLong
			r.Model = validText(b, s.modelTooLong)
		}
	case fieldStream:
		r.Stream = boolValue(k, b, false)
	case fieldStreamOptions:
		r.IncludeUsage, r.ContinuousUsage = false, false
	case fieldIncludeUsage:
		r.IncludeUsage = boolValue(k, b, false)
	case fieldContinuousUsage:
		r.ContinuousUsage = boolValue(k, b, false)
	case fieldN:
		r.N = countValue(k, b)
	case fieldMaxTokens:
		s.maxTokens = countValue(k, b)
	case fieldMaxCompletionTokens:
		s.maxCompletionTokens = countValue(k, b)
	case fieldMaxOutputTokens:
		if r.Dialect == Responses {
			s.maxTokens = countValue(k, b)
		}
	case fieldSampling:
		if r.Dialect == Generate {
			r.N, s.maxTokens = -1, -1
		}
	case fieldEcho:
		r.Echo = boolValue(k, b, false)
	case fieldGenerationPrompt:
		r.NoGenerationPrompt = !boolValue(k, b, true)
	case fieldBeam:
		s.beam = boolValue(k, b, false)
	case fieldSession:
		s.session = ""
		if k == kindString {
			s.session = validText(b, s.token.tooLong)
		}
	case fieldMessages:
		r.LastRole = ""
	case fieldRole:
		r.LastRole = ""
		if k == kindString {
			r.LastRole = validText(b, false)
		}
	}
}

// boolValue returns the boolean that a value stands for, as pydantic takes it, or
// absent where it stands for none.
func boolValue(k valueKind, b []byte, absent bool) bool {
	if k == kindContainer || len(b) == 0 {
		return absent
	}
	if k == kindLiteral {
		switch string(b) {
		case "true":
			return true
		case "false":
			return false
		}
		switch f, err := strconv.ParseFloat(string(b), 64); {
		case err == nil && f == 1:
			return true
		case err == nil && f == 0:
			return false
		}
		return absent
	}
	switch strings.ToLower(string(b)) {
	case "1", "true", "t", "yes", "y", "on":
		return true
	case "0", "false", "f", "no", "n", "off":
		return false
	}
	return absent
}

// countValue returns the number that a value stands for, as pydantic takes it: a
// whole number, -1 for none and for what is below zero.
func countValue(k valueKind, b []byte) int64 {
	if k == kindContainer || len(b) == 0 {
		return -1
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil || f < 0 || f != math.Trunc(f) || f >= math.MaxInt64 {
		return -1
	}
	return int64(f)
}
