package hide

import "github.com/inferspan/inferspan/processor/dialect"

// judge tells event by event what of it was asked for by us.
type judge struct {
	dialect dialect.Dialect
	asked   dialect.Asked

	// continuous: a chunk before the finish has had usage, so this server sends
	// it on every chunk. plain: a chunk has had none, so it does not.
	continuous, plain bool
	finished          bool

	at dialect.Sites // of the event in hand
}

// verdict is what becomes of one event.
type verdict struct {
	// drop: the event goes, and its fingerprint belongs to the finish chunk.
	drop        bool
	fingerprint []byte
	// cut goes out of the event's data, and with comes in its place.
	cut  span
	with string
	// wait: the next event may bring the fingerprint of this one, to go before
	// the closing brace at brace.
	wait  bool
	brace int
}

// event judges an event by its data.
func (j *judge) event(data []byte) verdict {
	at := &j.at
	if !at.Read(data) || at.Choices < 0 {
		return verdict{} // an error, an end mark, whatever else: none of ours
	}
	if at.Choices == 0 {
		return j.last(data)
	}
	if at.UsageObject && at.Bare && j.finished && j.asked.IncludeUsage && !j.asked.Unsaid {
		// LiteLLM sends its last event with an empty choice.
		return verdict{drop: true}
	}
	v := verdict{brace: at.Close}
	if at.UsageObject && !at.Finished {
		j.continuous = true
	}
	if at.UsageObject && j.asked.Continuous && (j.continuous || !j.plain) {
		v.cut = span{at.Usage.From, at.Usage.To}
		if j.dialect == dialect.Completions && at.NullDetails {
			v.cut, v.with = span{at.Usage.Value, at.Usage.End}, "null"
		}
	}
	j.plain = j.plain || !at.UsageObject
	j.finished = j.finished || at.Finished
	v.wait = at.Finished && !at.Fingerprint.Present && j.asked.IncludeUsage
	return v
}

// last judges an event without choices.
func (j *judge) last(data []byte) verdict {
	at := &j.at
	if !at.UsageObject || !j.asked.IncludeUsage {
		return verdict{}
	}
	if j.asked.Unsaid && !at.Fingerprint.Present {
		return verdict{} // too old a server to take open for no
	}
	v := verdict{drop: true}
	if at.Fingerprint.Present {
		v.fingerprint = data[at.Fingerprint.Value:at.Fingerprint.End]
	}
	return v
}
