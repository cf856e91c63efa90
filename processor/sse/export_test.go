package sse

// Slack is what a Parser may hold above its maximum.
const Slack = longestName

// Held returns the number of bytes of the stream that p holds.
func (p *Parser) Held() int { return len(p.data) + len(p.eventType) + len(p.tail) }
