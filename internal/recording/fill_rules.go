package recording

import "strings"

// place is where in a JSON text an object stands: it decides what its names mean.
type place uint8

const (
	placeHidden  place = iota // names are content too
	placeKnown                // names are the API's
	placeChoice               // the same, in one of the choices
	placeFigures              // counts and times: names and numbers stay
)

// rule is what is done with a member's value.
type rule struct {
	text    treatment
	numbers treatment
	// object and elements are the places of an object that is the value, and of
	// those in an array that is. The texts and numbers of an array are filled,
	// except among figures.
	object, elements place
	// ids: an array of it is a list of token ids.
	ids bool
}

// treatment is what is done with a text or a number.
type treatment uint8

const (
	fill treatment = iota
	keep
	// plain keeps what stands for a number or a boolean.
	plain
)

var (
	hiddenRule  = rule{}
	contentRule = rule{}
	// settingRule is also for members that are not in rules.
	settingRule   = rule{numbers: keep}
	nameRule      = rule{text: keep, numbers: keep}
	figureRule    = rule{text: plain, numbers: keep}
	containerRule = rule{object: placeKnown, elements: placeKnown}
	figuresRule   = rule{text: plain, numbers: keep, object: placeFigures, elements: placeFigures}
)

// rules are the members that are known, by name, wherever an object has the
// API's names. The measuring reads no others.
var rules = func() map[string]rule {
	all := map[string]rule{
		"choices":         {object: placeChoice, elements: placeChoice},
		"logprobs":        {numbers: keep, object: placeKnown, elements: placeKnown},
		"response_format": {text: keep, object: placeKnown},
		"token_ids":       {ids: true},
		// Of a tool's call it is the arguments, of a request the messages.
		"input": {elements: placeKnown},
		// Where it is a text, "false" is none.
		"error": {text: plain, numbers: keep, object: placeKnown},
		// Of a choice it is the text that stopped it, or its token; see ruleOf.
		"stop_reason": {text: keep},
	}
	for r, names := range map[rule]string{
		nameRule: "model id request_id object type role finish_reason status code reason system_fingerprint " +
			"service_tier output_mode item_id call_id tool_call_id previous_response_id jsonrpc",
		figureRule: "stream n max_tokens max_completion_tokens max_output_tokens echo add_generation_prompt " +
			"use_beam_search index output_index content_index sequence_number created created_at",
		figuresRule: "usage metrics timings stream_options prompt_tokens_details completion_tokens_details " +
			"input_tokens_details output_tokens_details",
		containerRule: "delta message messages content tool_calls function function_call response item part output " +
			"content_block incomplete_details summary tools tool_choice reasoning sampling_params data results",
		contentRule: "prompt prompt_embeds prompt_token_ids text name arguments partial_json thinking signature " +
			"reasoning_content refusal token tokens bytes logprob token_logprobs text_offset stop_sequence embedding",
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = r
		}
	}
	return all
}()

// ruleOf returns the rule of a member of that name, and whether its name stays;
// if strict, only a name that is known does.
func ruleOf(at place, key []byte, strict bool) (r rule, stays bool) {
	switch at {
	case placeHidden:
		return hiddenRule, false
	case placeFigures:
		if !isName(key) {
			return hiddenRule, false
		}
		return figuresRule, true
	}
	if at == placeChoice && string(key) == "stop_reason" {
		return contentRule, true
	}
	if r, known := rules[string(key)]; known {
		return r, true
	}
	if strict || !isName(key) {
		return hiddenRule, false
	}
	return settingRule, true
}

// elementsOf returns the rule of the elements of an array that has rule r.
func elementsOf(r rule) rule {
	if r.elements == placeFigures {
		return figuresRule
	}
	return rule{object: r.elements, elements: r.elements}
}
