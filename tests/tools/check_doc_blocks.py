#!/usr/bin/env python3
"""Fails unless pages show code as it is in the files that are compiled and run.

usage: check_doc_blocks.py PAGE FILE...

Of each FILE, what stands between two lines with "[servo]" or any such mark must be, as a whole and
but for its indentation, a code block of PAGE.
"""

import re
import sys
import textwrap

MARK = re.compile(r"^\s*(?://|/\*|#)\s*\[(\w+)\](?:\s*\*/)?\s*$")


def marked(text):
    """The blocks between equal marks."""
    open_mark, lines, out = None, [], []
    for line in text.splitlines():
        found = MARK.match(line)
        if not found:
            lines.append(line)
        elif open_mark is None:
            open_mark, lines = found.group(1), []
        elif found.group(1) == open_mark:
            out.append(textwrap.dedent("\n".join(lines)).strip("\n"))
            open_mark = None
    return out


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    blocks = [b.strip("\n") for b in re.findall(r"^```\w*\n(.*?)^```$", page, re.S | re.M)]
    bad = 0
    for name in sys.argv[2:]:
        found = marked(open(name, encoding="utf-8").read())
        if not found:
            print(f"{name}: no marked block")
            bad += 1
        for block in found:
            if block not in blocks:
                print(f"{sys.argv[1]} does not show {name} as it is")
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
