#!/usr/bin/env python3
"""picture.py COMMAND < TEXT > SVG: a terminal that shows COMMAND and TEXT."""
import sys
from html import escape

# Renderers fold plain spaces, whatever xml:space says.
NBSP = "\u00a0"
WIDTH, LINE, SIZE, MARGIN = 8.0, 18, 13, 16

lines = ["$ " + sys.argv[1]] + [line.rstrip() for line in sys.stdin]
width = max(map(len, lines)) * WIDTH + 2 * MARGIN
height = len(lines) * LINE + 2 * MARGIN
print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">')
print('<rect width="100%" height="100%" rx="6" fill="#1b1f24"/>')
print(f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{SIZE}" fill="#d4d7dc">')
for i, line in enumerate(lines):
    color = ' fill="#7ee787"' if i == 0 else ""
    print(f'<text x="{MARGIN}" y="{MARGIN + (i + 1) * LINE - 5}" textLength="{len(line) * WIDTH:.0f}"{color}>{escape(line).replace(" ", NBSP)}</text>' if line else "")
print("</g>\n</svg>")
