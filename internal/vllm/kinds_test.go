//go:build vllm

package vllm

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
)

// kind is one way of asking.
type kind struct {
	name string
	path string
	body map[string]any
	// choices is the number of choices per prompt: vLLM counts a prompt once
	// for each.
	choices int64
}

// early tells that the first event leaves before there is a token: it is
// response.created.
func (k kind) early() bool { return k.path == responsesPath }

// prompts returns the number of prompts, each of which is a request of vLLM's.
func (k kind) prompts() int {
	if list, ok := k.body["prompt"].([]string); ok {
		return len(list)
	}
	return 1
}

type object = map[string]any

var messages = []object{{"role": "user", "content": "def read(path): explain the module"}}

const (
	chatPath       = "/v1/chat/completions"
	completionPath = "/v1/completions"
	responsesPath  = "/v1/responses"
	messagesPath   = "/v1/messages"
	generatePath   = "/inference/v1/generate"
)

// with returns base with more on top.
func with(base, more object) object {
	all := maps.Clone(base)
	maps.Copy(all, more)
	return all
}

var (
	chat       = object{"model": "tiny", "messages": messages, "max_tokens": 24}
	completion = object{"model": "tiny", "prompt": "import os\n", "max_tokens": 24}
	response   = object{"model": "tiny", "input": "explain the module", "max_output_tokens": 24, "store": false}
	generate   = object{"model": "tiny", "token_ids": []int{300, 301, 302, 303}, "sampling_params": object{"max_tokens": 16}}
	usage      = object{"stream": true, "stream_options": object{"include_usage": true}}
	continuous = object{"stream": true, "stream_options": object{"include_usage": true, "continuous_usage_stats": true}}
	noThinking = object{"chat_template_kwargs": object{"enable_thinking": false}}
	tool       = object{"tool_choice": "required", "tools": []object{{
		"type": "function", "function": object{"name": "weather", "parameters": object{
			"type": "object", "properties": object{"city": object{"type": "string"}}, "required": []string{"city"}}}}}}
)

// reported are the kinds for which the server reports usage.
var reported = []kind{
	{"chat stream", chatPath, with(with(chat, usage), noThinking), 1},
	{"chat reasoning", chatPath, with(chat, usage), 1},
	{"chat reasoning not shown", chatPath, with(with(chat, usage), object{"include_reasoning": false}), 1},
	{"chat continuous usage", chatPath, with(chat, continuous), 1},
	{"chat two choices", chatPath, with(with(chat, usage), object{"n": 2}), 2},
	{"chat logprobs", chatPath, with(with(chat, usage), object{"logprobs": true, "top_logprobs": 2}), 1},
	{"chat half characters", chatPath, with(with(chat, usage), object{"allowed_token_ids": []int{150, 160, 170, 180, 200}}), 1},
	{"chat tool", chatPath, with(with(with(chat, usage), tool), object{"max_tokens": 60}), 1},
	{"chat json", chatPath, chat, 1},
	{"chat json two choices", chatPath, with(chat, object{"n": 2}), 2},
	{"chat renamed model", chatPath, with(with(chat, usage), object{"model": "renamed"}), 1},
	{"completion stream", completionPath, with(completion, usage), 1},
	{"completion echo", completionPath, with(with(completion, usage), object{"echo": true}), 1},
	{"completion two choices", completionPath, with(with(completion, usage), object{"n": 2}), 2},
	{"completion three prompts", completionPath, with(with(completion, usage), object{"prompt": []string{"import os", "a", "def f():"}}), 1},
	{"completion logprobs", completionPath, with(with(completion, usage), object{"logprobs": 2}), 1},
	{"completion json", completionPath, completion, 1},
	{"responses stream", responsesPath, with(response, object{"stream": true}), 1},
	{"responses json", responsesPath, response, 1},
	{"messages stream", messagesPath, with(chat, object{"stream": true}), 1},
	{"messages json", messagesPath, chat, 1},
}

// counted are the kinds without usage whose tokens the stream itself tells.
var counted = []kind{
	{"chat token ids", chatPath, with(chat, object{"stream": true, "return_token_ids": true}), 1},
	{"chat logprobs, no usage", chatPath, with(with(chat, noThinking), object{"stream": true, "logprobs": true}), 1},
	{"completion token ids", completionPath, with(completion, object{"stream": true, "return_token_ids": true}), 1},
	{"generate stream", generatePath, with(generate, object{"stream": true}), 1},
	{"completion logprobs, no usage", completionPath, with(completion, object{"stream": true, "logprobs": 1}), 1},
}

// long are the kinds that are hung up on: all ask for continuous usage.
var long = []kind{
	{"chat", chatPath, with(chat, with(continuous, object{"max_tokens": 2000, "ignore_eos": true})), 1},
	{"chat two choices", chatPath, with(chat, with(continuous, object{"max_tokens": 2000, "ignore_eos": true, "n": 2})), 2},
	{"completion", completionPath, with(completion, with(continuous, object{"max_tokens": 2000, "ignore_eos": true})), 1},
}

// request returns the body of the i-th request of a kind: seeds differ, so that
// the answers do, where the API has seeds.
func (k kind) request(t *testing.T, i int) []byte {
	t.Helper()
	more := object{}
	if k.path == chatPath || k.path == completionPath {
		more["seed"] = i
	}
	body, err := json.Marshal(with(k.body, more))
	if err != nil {
		t.Fatal(fmt.Errorf("writing a request %q: %w", k.name, err))
	}
	return body
}
