package dialect

// pooling is embeddings, pooling, classification, scores and rankings: an answer
// in one piece, which has a usage and no choices.
var pooling = openAI{choice: noChoice}

// noChoice passes over one.
func noChoice(s *scan, c *Choice) {
	s.skip()
	c.Index = -1
}

// plainPooling is what embeddings are sent as when numbers as bytes are asked for.
var plainPooling = []string{"application/octet-stream"}

// poolingBody reads a whole answer, or an error.
func poolingBody(f *Facts, data []byte) bool {
	ok := pooling.read(f, data)
	f.Choices, f.Unread = f.Choices[:0], 0
	return ok && f.answers(data, "data", "results")
}

func keepPooling(in place, key []byte) (place, bool) {
	if in == placeTop {
		switch string(key) {
		case "data", "results":
			return placeNothing, true
		case "choices":
			return placeNothing, false
		}
	}
	return keepOpenAI(in, key)
}
