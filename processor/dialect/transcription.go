package dialect

// transcription is the transcriptions and translations of /v1/audio. Their
// choices have no index, and a finish reason ends a segment of the audio.
var transcription = openAI{choice: transcriptionChoice}

// plainTranscription are what the formats text, vtt and srt are sent as.
var plainTranscription = []string{"text/plain", "text/vtt", "application/x-subrip"}

// transcriptionChoice reads one choice: a chat's, but nobody speaks in it.
func transcriptionChoice(s *scan, c *Choice) {
	chatChoice(s, c)
	c.Role = false
}

// transcriptionBody reads a whole answer, which has no choices, or an error.
func transcriptionBody(f *Facts, data []byte) bool {
	return transcription.read(f, data) && f.answers(data, "text")
}

func keepTranscription(in place, key []byte) (place, bool) {
	if in == placeTop && string(key) == "text" {
		return placeNothing, true
	}
	return keepOpenAI(in, key)
}

// answers notes whether a body that was read has one of those members, which are
// what was asked for. It tells nothing else.
func (f *Facts) answers(data []byte, names ...string) bool {
	s := scan{b: data}
	s.enter('{')
	for s.more('}') {
		key := string(s.key())
		there := !s.null()
		if there {
			s.skip()
		}
		for _, name := range names {
			f.Answer = f.Answer || there && key == name
		}
	}
	return true
}
