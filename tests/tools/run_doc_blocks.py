#!/usr/bin/env python3
"""Runs what pages say to type, and compares what they show of files.

usage: run_doc_blocks.py PORTWAVE SOURCES PAGE...

Blocks of "sh" are run by bash, one after the other, in a scratch folder that has the examples and the program
as "portwave"; each must end with 0. Blocks of "json" must stand in a scenario of the examples, but for blanks. A line
before a block says where it is otherwise:
    <!-- exits 2 -->             the block ends with that
    <!-- not run: REASON -->     it is not run, or not compared
A run that a block only begins to show may take its time: a page may take two minutes in all.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^\n]*?) -->\n+)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.S | re.M)


def squeezed(text):
    """Without blanks outside of strings."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda m: m.group(1) or "", text)


def main():
    portwave, sources = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    shown = [squeezed(open(os.path.join(folder, name), encoding="utf-8").read())
             for folder, _, names in os.walk(os.path.join(sources, "examples")) for name in names
             if name.endswith(".json")]
    defects, ran, compared = [], 0, 0
    for page in sys.argv[3:]:
        text = open(os.path.join(sources, page), encoding="utf-8").read()
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.join(sources, "examples"), os.path.join(folder, "examples"))
            shutil.copytree(os.path.join(sources, "docs", "reference"), os.path.join(folder, "docs", "reference"))
            programs = os.path.join(folder, ".programs")
            os.mkdir(programs)
            os.symlink(portwave, os.path.join(programs, "portwave"))
            environment = dict(os.environ, PATH=programs + os.pathsep + os.environ["PATH"])
            until = time.monotonic() + 120
            for block in BLOCK.finditer(text):
                mark = block["mark"] or ""
                line = text.count("\n", 0, block.start("text")) + 1
                if mark.startswith("not run: "):
                    continue
                if block["kind"] == "json":
                    compared += 1
                    own = squeezed(block["text"])
                    if not any(own in one for one in shown):
                        defects.append(f"{page}:{line}: no example shows this")
                elif block["kind"] == "sh":
                    ran += 1
                    wanted = int(mark.split()[1]) if mark.startswith("exits ") else 0
                    try:
                        done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", block["text"]], cwd=folder,
                                              env=environment, capture_output=True, text=True,
                                              stdin=subprocess.DEVNULL, timeout=max(5, until - time.monotonic()))
                    except subprocess.TimeoutExpired:
                        defects.append(f"{page}:{line}: takes too long")
                        continue
                    if done.returncode != wanted:
                        tail = "\n".join((done.stdout + done.stderr).splitlines()[-5:])
                        defects.append(f"{page}:{line}: ends with {done.returncode}, not {wanted}\n{tail}")
    for defect in defects:
        print(defect)
    print(f"{ran} blocks run, {compared} compared, {len(defects)} defects")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
