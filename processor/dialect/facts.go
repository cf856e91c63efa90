package dialect

// MaxChoices is the number of choices that are told apart. Elements with a
// higher, or an impossible, index are skipped and counted: an index is a number
// that a server can get wrong, and must not size our memory.
const MaxChoices = 128

// Facts is what one event, or one JSON body, says. Its texts are parts of the
// bytes that were read and share their lifetime. A Facts is meant to be used
// again for each event of a stream: it keeps the memory of its choices.
type Facts struct {
	// Skipped: the event could not be read, and everything else is zero.
	Skipped bool
	// Done: the stream's end mark.
	Done bool
	// Choices has one element for each choice that the event names; Unread is
	// the number of elements that were none that we follow.
	Choices []Choice
	Unread  int
	Usage   Usage
	Error   Error
	// Answer: a JSON body is the answer of a dialect that has no choices in it.
	Answer bool
	// ID and Model are the response's; nil where absent.
	ID, Model Text
	Metrics   Metrics

	scan  scan
	forms forms
}

// Choice is what one event says of one choice.
type Choice struct {
	Index int
	// Role: a role is named, with or without text.
	Role bool
	// Visible is the kinds of text that are shown.
	Visible Kinds
	// EmptyText: text is there, and it is "".
	EmptyText bool
	// IDs is the number of token ids of this event, IDList the array that they
	// stand in, without its brackets.
	IDs    int
	IDList []byte
	// Logprobs is the number of tokens that log probabilities came for.
	Logprobs int
	// PromptIDs is the number of prompt token ids beside the choice.
	PromptIDs Count
	// Finish is the finish reason; empty where there is none.
	Finish Text
	// Call tells which of the response's tool calls is shown, where its parts
	// come in events of their own; Ended, that the event ends what is shown, so
	// that it shows nothing new of a call that was shown before.
	Call  Count
	Ended bool
}

// Kinds is a set of kinds of visible text.
type Kinds uint8

// The kinds. Refusals count as content; Tool is a tool's id, name or arguments;
// Token: the ids are the content.
const (
	Reasoning Kinds = 1 << iota
	Content
	Tool
	Token
)

// Usage is the server's own count. Present tells an object from null and from
// none.
type Usage struct {
	Present bool
	// Final: by its place this can be nothing but the final usage, whatever
	// choices stand beside it.
	Final                                 bool
	Prompt, Completion, Cached, Reasoning Count
	// Apart: the prompt's tokens are told in parts, which the server may tell
	// one after the other: Prompt has none of Cached, nor of Created, those that
	// were written to a cache.
	Apart   bool
	Created Count
}

// Error is an error inside a response. Type and Code are as the server sent
// them; either can be empty.
type Error struct {
	Set        bool
	Type, Code Text
}

// Count is a number of tokens that may be absent. Absent is not zero.
type Count struct {
	N  int64
	OK bool
}

// Float is a measurement that may be absent.
type Float struct {
	V  float64
	OK bool
}

// Metrics is vLLM's own account of a request.
type Metrics struct {
	Present                                                                       bool
	TimeToFirstTokenMS, GenerationTimeMS, QueueTimeMS, MeanITLMS, TokensPerSecond Float
	// SpeculativeDecoding is the JSON of that member, an object or null; nil
	// where there is none.
	SpeculativeDecoding []byte
}

// Reset empties f, keeps its memory, and lets go of what it was read from.
func (f *Facts) Reset() {
	clear(f.Choices)
	f.Skipped, f.Done, f.Answer = false, false, false
	f.Choices, f.Unread = f.Choices[:0], 0
	f.ID, f.Model = nil, nil
	if f.Usage.Present {
		f.Usage = Usage{}
	}
	if f.Metrics.Present {
		f.Metrics = Metrics{}
	}
	if f.Error.Set {
		f.Error = Error{}
	}
	f.scan.b = nil
}
