package config

import (
	"strconv"
	"strings"
)

// nearest names the one of known that a person most likely meant by word, as
// "; nearest: x", or nothing where none is near.
func nearest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	best, least := "", 1+max(2, len(word)/3)
	for _, k := range known {
		if d := distance(plain(word), plain(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; nearest: " + best
}

// plain is s without what is spelled differently most often.
func plain(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }

// distance is the number of bytes to insert, drop or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// printable returns s without what could steer a terminal.
func printable(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}
