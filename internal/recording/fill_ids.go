package recording

import (
	"bytes"
)

// idFiller fills lists of token ids. Ids are text to who has the tokenizer, even
// if each had a stand-in of its own; so they become a running number, of as many
// digits, that has nothing to do with them.
//
// But where a server sends with each event all ids so far, a list begins with
// the one before, by which the measuring finds it out: filled, it does too.
type idFiller struct {
	next  int // how many ids were filled
	lists map[int]idList
}

// idList is the last list of a choice.
type idList struct {
	original []byte
	first    int // the number of its first id
}

// maxLists is the number of choices whose lists are kept.
const maxLists = 128

// fill fills a list, without its brackets, of a choice; -1: of none.
func (f *idFiller) fill(choice int, list []byte) {
	first := f.next
	last := f.lists[choice]
	if n := len(last.original); n > 0 && len(list) > n && bytes.HasPrefix(list, last.original) && list[n] == ',' {
		first = last.first
	} else if n > 0 {
		// It begins otherwise, of one digit too.
		for (first-last.first)%9 == 0 {
			first++
		}
	}
	if f.lists == nil {
		f.lists = map[int]idList{}
	}
	if choice >= 0 && choice < maxLists {
		f.lists[choice] = idList{append(last.original[:0], list...), first}
	}
	n := first
	for i := 0; i < len(list); {
		end := i
		for end < len(list) && isDigit(list[end]) {
			end++
		}
		if end > i {
			runningNumber(n).write(list[i:end])
			n++
			i = end
			continue
		}
		fillWords(list[i : i+1])
		i++
	}
	f.next = max(f.next, n)
}

// runningNumber is one.
type runningNumber int

// write writes it in exactly as many digits as there are, without a leading
// zero; what is too large for them begins anew.
func (n runningNumber) write(digits []byte) {
	for i := len(digits) - 1; i > 0; i-- {
		digits[i] = '0' + byte(n%10)
		n /= 10
	}
	digits[0] = '1' + byte(n%9)
}
