package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rule is a rule, and how it is switched off.
type rule struct {
	name string
	file string
	// on is the text of the file that the rule is, which stands there once; off
	// is what stands in its place.
	on, off string
}

const (
	evidence  = "processor/meter/evidence.go"
	echo      = "processor/meter/echo.go"
	calls     = "processor/meter/calls.go"
	usage     = "processor/meter/usage.go"
	tokens    = "processor/meter/tokens.go"
	responses = "processor/dialect/responses.go"
	messages  = "processor/dialect/messages.go"
	chat      = "processor/dialect/chat.go"
)

var table = []rule{
	// What is evidence, strongest first.
	{"growth of continuous usage is evidence", evidence, "case growth > 0:", "case false:"},
	{"ids are evidence", evidence, "case ids > 0:", "case false:"},
	{"logprobs are evidence", evidence, "return logprobs\n", "return 0\n"},
	{"growth before ids", evidence, "case growth > 0:", "case growth > 0 && ids == 0:"},
	{"ids before logprobs", evidence, "case ids > 0:", "case ids > 0 && logprobs == 0:"},
	{"visible text is evidence", evidence, "visible := f.Visible != 0 &&", "visible := false &&"},
	{"of visible text alone the number is not known", evidence, "return tokens, kindOf(f.Visible), true", "return max(tokens, 1), kindOf(f.Visible), true"},
	{"what shows nothing is evidence where tokens are counted", evidence, "tokens == 0 && !visible {", "!visible {"},
	{"growth is from the count before", usage, "return tokens - before", "return tokens - 0*before"},
	{"a first count behind tokens is no growth", usage, "if first && c.events > 0 {", "if first && false {"},
	{"growth is by choice", usage, "c := m.choices.get(f.Choices[0].Index)", "c := m.choices.get(0)"},

	// Which usage is final.
	{"usage without choices is final", usage, "can't be divided.\n\t\tm.takeFinal(at, u)", "can't be divided."},
	{"usage on the finish chunk is final", usage, "|| len(f.Finish) > 0 ||", "||"},
	{"usage behind the finish is final", usage, "return c.finish.OK || len(f.Finish) > 0 || c.events > 0", "return len(f.Finish) > 0"},
	{"usage is final only where it is first seen there", usage, "if c.usage.continuous || f.Visible != 0 {", "if f.Visible != 0 {"},
	{"usage beside text is not final", usage, "if c.usage.continuous || f.Visible != 0 {", "if c.usage.continuous {"},
	{"usage of response.completed is final", responses, "r.usage.Final = r.usage.Present", "r.usage.Final = false"},
	{"usage of message_delta is final", messages, "f.Usage = r.usage\n\t\tf.Usage.Final = f.Usage.Present", "f.Usage = r.usage"},
	{"output tokens of message_start are no source", messages, "f.Usage.Completion = Count{}", ""},

	// Kinds, the first that applies.
	{"reasoning is a kind", evidence, "case visible&dialect.Reasoning != 0:", "case false:"},
	{"content is a kind", evidence, "case visible&dialect.Content != 0:", "case false:"},
	{"a tool call is a kind", evidence, "case visible&dialect.Tool != 0:", "case false:"},
	{"a token is a kind", evidence, "case visible&dialect.Token != 0:", "case false:"},
	{"hidden is a kind", evidence, "return KindHidden", "return KindContent"},
	{"reasoning before content", evidence, "case visible&dialect.Reasoning != 0:", "case visible == dialect.Reasoning:"},
	{"content before a tool call", evidence, "case visible&dialect.Content != 0:", "case visible == dialect.Content:"},
	{"a refusal is content", chat, "if content || refusal {", "if content || refusal && false {"},
	{"reasoning by its older name", chat, "if reasoning || older {", "if reasoning || older && false {"},
	{"a tool's id is evidence", chat, "case \"id\":\n\t\t\t\tshown = s.shown() || shown", "case \"id\":\n\t\t\t\ts.skip()"},
	{"a tool's name is evidence", chat, "case \"name\":\n\t\t\tshown = s.shown() || shown", "case \"name\":\n\t\t\ts.skip()"},
	{"a tool's arguments are evidence", chat, "shown = true\n\t\t\t}\n\t\t\tshown = s.shown() || shown", "shown = true\n\t\t\t}\n\t\t\ts.skip()"},
	{"a tool's name is evidence where its item is added", responses, "case r.called && string(r.kind) == \"response.output_item.added\":", "case false:"},
	{"a tool's name is evidence where its item is done", responses, "case r.called && bytes.HasSuffix(r.kind, suffixDone):", "case false:"},
	{"a tool's name is evidence where its block begins", messages, "c = r.block\n", "c = Choice{}\n"},
	{"a tool's name is evidence only where it first appears", calls, "return f.Ended && before", "return f.Ended && before && false"},

	// What is never evidence.
	{"a role is no evidence", evidence, "visible := f.Visible != 0 &&", "visible := (f.Visible != 0 || f.Role) &&"},
	{"an empty text is no evidence", evidence, "visible := f.Visible != 0 &&", "visible := (f.Visible != 0 || f.EmptyText) &&"},
	{"a finish is no evidence", evidence, "visible := f.Visible != 0 &&", "visible := (f.Visible != 0 || len(f.Finish) > 0) &&"},
	{"an empty delta is no evidence", evidence, "visible := f.Visible != 0 &&", "visible :="},
	{"what ends in a response is no evidence", responses, "case bytes.HasSuffix(r.kind, suffixDelta):", "case bytes.HasSuffix(r.kind, suffixDelta) || bytes.HasSuffix(r.kind, suffixDone):\n\t\tr.delta = true"},
	{"a signature is no evidence", messages, "case \"thinking\":", "case \"thinking\", \"signature\":"},
	{"a ping is no evidence", messages, "\tdefault:\n\t\treturn\n\t}\n\tf.Choices", "\tdefault:\n\t\tc.Visible = Content\n\t}\n\tf.Choices"},

	// Echo.
	{"chat's echo is no evidence", echo, "c.echoed = true\n\treturn true", "c.echoed = true\n\treturn false"},
	{"echo only where it was asked for", echo, "m.dialect != dialect.Chat || !m.asked.Echo", "m.dialect != dialect.Chat"},
	{"echo only without a prompt for the answer", echo, "if !m.asked.NoGenerationPrompt && m.asked.LastRole != roleAssistant {", "if false {"},
	{"echo where the last message is the assistant's", echo, "if !m.asked.NoGenerationPrompt && m.asked.LastRole != roleAssistant {", "if !m.asked.NoGenerationPrompt {"},
	{"echo where no prompt for the answer is added", echo, "if !m.asked.NoGenerationPrompt && m.asked.LastRole != roleAssistant {", "if m.asked.LastRole != roleAssistant {"},
	{"only the first content is echo", echo, "if c.echoed || m.dialect", "if m.dialect"},
	{"echo is content", echo, "if f.Visible != dialect.Content {", "if false {"},
	{"chat's echo is not completions'", echo, "if c.echoed || m.dialect != dialect.Chat ||", "if c.echoed ||"},
	{"completions' logprobs count without the prompt's", echo, "return n - prompt.N", "return n"},
	{"only the first event has the prompt's", echo, "if c.named || m.dialect", "if m.dialect"},
	{"logprobs beside a prompt of unknown length are no number", echo, "case !prompt.OK:\n\t\treturn 0", "case !prompt.OK:\n\t\treturn n"},
	{"a request for the prompt alone gives no token", echo, "return m.dialect == dialect.Completions && m.asked.Echo && m.asked.MaxTokens == 0", "return false"},

	// The estimate.
	{"an evidence event is a token", evidence, "c.estimate++", ""},
	{"an empty text is a token", evidence, "if f.EmptyText && !f.Role ||", "if"},
	{"a role's empty text is none", evidence, "f.EmptyText && !f.Role", "f.EmptyText"},
	{"a stop implies a token", evidence, "if f.EmptyText && !f.Role || string(f.Finish) == \"stop\" {", "if f.EmptyText && !f.Role {"},
	{"the beginning of a block is no token", messages, "c.EmptyText = false", ""},

	// Sources, strongest first.
	{"usage is a source", tokens, "if m.usage.completion.OK {", "if false {"},
	{"continuous usage is a source", tokens, "m.choices.sum((*choice).continuous); ok", "m.choices.sum((*choice).continuous); ok && false"},
	{"ids are a source", tokens, "m.choices.sum((*choice).byIDs); ok", "m.choices.sum((*choice).byIDs); ok && false"},
	{"logprobs are a source", tokens, "m.choices.sum((*choice).byLogprobs); ok", "m.choices.sum((*choice).byLogprobs); ok && false"},
	{"no evidence and no source is no number", tokens, "if m.choices.events() == 0 && !m.choices.anyContinuous() {", "if false {"},
	{"a source that some tokens lack is none", tokens, "t.partial = t.partial || n == 0", ""},
	{"a source that some choices lack is none", tokens, "} else if c.events > 0 {", "} else if false {"},
}

// path is where the rule's file is.
func (r rule) path() string { return filepath.Join("..", "..", r.file) }

// TestTable: each rule stands where it is looked for, once.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, r := range table {
		source, err := os.ReadFile(r.path())
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), r.on); n != 1 {
			t.Errorf("%s: %q stands in %s %d times, not once", r.name, r.on, r.file, n)
		}
	}
}
