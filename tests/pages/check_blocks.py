#!/usr/bin/env python3
"""Checks every block of code that pages show: it is run, or stands in a file that CI compiles or runs.

    check_blocks.py [--python PYTHON] [--installed FOLDER] PORTWAVE SOURCES PAGE...

The blocks of a page are taken in their order, in a scratch folder that has examples/ and the programs
"portwave" and, where it is built, "rank_study":

    sh       is run by bash and must end with 0
    python   is run by PYTHON, which may lack what a block imports: then it is counted as left out
    json     a whole scenario is run; else its entries stand in a scenario of examples/, or a mark says of which it
             is a part
    cpp, c, cmake, python    stand in a file that CI compiles or runs, but for their indentation
    text, math               are taken as they are: what programs print, drawings, formulas

Comments in the lines before a block say what is not usual of it:

    <!-- not run: REASON -->       it is neither run nor compared, but read: commands by bash, and command lines of
                                   these programs by themselves, which then lack the scenario
    <!-- run by: FILE -->          a test that names this page runs it
    <!-- exits: N -->              it ends with N
    <!-- first: COMMAND -->        this is run before it, by bash
    <!-- needs: MODULE, ... -->    it needs these modules of Python; where one is missing it is left out
    <!-- with: A -> B; ... -->     it is run with B in place of A, so that it takes less time
    <!-- installed: DIR -->        it needs an installed portwave, and says DIR for its folder; without one it is left out
    <!-- file: NAME -->            it is saved under this name, and run
    <!-- part of: FILE POINTER --> each of its entries is set in this scenario, which must then be valid
    <!-- printed -->               of a text: its lines were printed by what has been run, or written to a file, in
                                   this order; "…" stands for anything
    <!-- printed, with other numbers -->    the same, but for numbers
    <!-- generated: COMMAND -->    on top of a page: the whole page is what this prints

Every block that is none of these is a defect, as is one without a language or indented in place of fenced.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

FENCE = re.compile(r"(?P<marks>(?:^ *<!--.*?-->\n+)*)^(?P<indent> *)```(?P<kind>[^\n]*)\n(?P<text>.*?)^ *```$", re.S | re.M)
MARK = re.compile(r"<!-- *(not run|run by|exits|first|needs|with|installed|file|part of|printed|generated)\b:? ?(.*?) *-->", re.S)
COMPILED = [("examples", ("cpp", "hpp", "c", "py", "txt")), ("tests/install", ("cpp", "c", "py", "txt")), ("tests/pages", ("cpp",))]
PROGRAMS = ("portwave", "rank_study")
KINDS = ("sh", "json", "python", "cpp", "c", "cmake", "text", "math")
TIME_S = 240  # of a page, on a busy machine


class Defect(Exception):
    pass


def squeezed(text):
    """Without blanks outside of strings."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda m: m.group(1) or "", text)


def stands_in(block, text):
    """Every paragraph of the block stands in the text, but for indentation."""
    lines = [line.strip() for line in text.splitlines()]

    def has(own):
        return any(lines[i:i + len(own)] == own for i in range(len(lines) - len(own) + 1))

    return all(has([line.strip() for line in part.splitlines()]) for part in re.split(r"\n\s*\n", block.strip()))


def entries(text):
    """The values of a piece of JSON, each with its key or None, and its text: [("time", {...}, '"time": ...'), ...]."""
    decoder, found, at = json.JSONDecoder(), [], 0
    text = text.strip()
    while at < len(text):
        begin = at
        value, at = decoder.raw_decode(text, at)
        colon = re.compile(r"\s*:\s*").match(text, at)
        if isinstance(value, str) and colon:
            key = value
            value, at = decoder.raw_decode(text, colon.end())
            found.append((key, value, text[begin:at]))
        else:
            found.append((None, value, text[begin:at]))
        at = re.compile(r"[\s,]*").match(text, at).end()
    return found


def settings(found, pointer):
    """Groups of "/pointer=value" that are set at once: keys that occur twice are meant one by one."""
    keys = [key for key, _, _ in found]
    lines = [f"{pointer}{'' if key is None else '/' + key}={json.dumps(value)}" for key, value, _ in found]
    return [lines] if len(set(keys)) == len(keys) else [[line] for line in lines]


class Page:
    def __init__(self, given, name, scratch):
        self.python, self.installed, self.sources = given.python, given.installed, given.sources
        self.name, self.scratch = name, scratch
        sources = given.sources
        self.text = (sources / name).read_text(encoding="utf-8")
        self.until = time.monotonic() + (TIME_S if not given.installed else 3 * TIME_S)  # which are compiled
        self.printed = ""
        self.counts = dict.fromkeys(["run", "compared", "excused", "left out"], 0)
        shutil.copytree(sources / "examples", scratch / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        for folder in ["docs/reference", "docs/site", "python/portwave", "tests/pages"]:
            shutil.copytree(sources / folder, scratch / folder, ignore=shutil.ignore_patterns("__pycache__"))
        programs = scratch / ".programs"
        programs.mkdir()
        (programs / "portwave").symlink_to(given.portwave)
        if (given.portwave.parent / "rank_study").exists():  # it is not installed
            (programs / "rank_study").symlink_to(given.portwave.parent / "rank_study")
        # Not a link: the folder of a virtual environment is found by the name.
        (programs / "python3").write_text(f'#!/bin/sh\nexec "{self.python}" "$@"\n')
        (programs / "python3").chmod(0o755)
        self.path = f"{programs}:/usr/local/bin:/usr/bin:/bin"

    def blocks(self):
        for block in FENCE.finditer(self.text):
            marks = dict(MARK.findall(block["marks"]))
            yield self.text.count("\n", 0, block.start("text")), block["kind"], marks, textwrap.dedent(block["text"])

    def call(self, command, wanted=0):
        environment = {"PATH": self.path, "HOME": str(self.scratch), "LC_ALL": "C.UTF-8"}
        if self.installed:
            libraries = ":".join(sorted({str(path.parent) for path in self.installed.rglob("lib*portwave*")}))
            environment |= {"CPATH": f"{self.installed}/include", "LIBRARY_PATH": libraries, "LD_LIBRARY_PATH": libraries}
        try:
            done = subprocess.run(command, cwd=self.scratch, env=environment, stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, timeout=max(5, self.until - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Defect("takes too long")
        self.printed += done.stdout + done.stderr
        if wanted is not None and done.returncode != wanted:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-5:])
            raise Defect(f"ends with {done.returncode}, not {wanted}\n{tail}")

    def bash(self, text, wanted=0):
        self.call(["bash", "-eu", "-o", "pipefail", "-c", text], wanted)

    def check(self, kind, marks, text):
        """Says what became of a block: run, compared, excused, left out, or nothing to do."""
        if kind not in KINDS:
            raise Defect(f'has the language "{kind}", and not one of {", ".join(KINDS)}')
        if "not run" in marks:
            if len(marks["not run"]) < 10:
                raise Defect("is not run, without a reason")
            self.read_only(kind, text)
            return "excused"
        if "run by" in marks:
            test = self.sources / marks["run by"]
            if not test.is_file() or self.name not in test.read_text(encoding="utf-8"):
                raise Defect(f"is not run by {marks['run by']}")
            return "run"
        if "installed" in marks:
            if not self.installed:
                return "left out"
            text = text.replace(marks["installed"] or "\0", str(self.installed))
        for change in filter(None, marks.get("with", "").split("; ")):
            before, after = change.split(" ->", 1)
            if before not in text:
                raise Defect(f'does not have "{before}"')
            text = text.replace(before, after.lstrip())
        needed = re.findall(r"\w+", marks.get("needs", ""))
        if kind == "python":
            needed += re.findall(r"^(?:import|from) (\w+)", text, re.M)
        if any(not self.imports(module) for module in needed):
            return "left out"
        if "first" in marks:
            self.bash(marks["first"])
        if kind == "sh":
            self.printed = ""
            self.bash(text, int(marks.get("exits", 0)))
            return "run"
        if kind == "json":
            return self.check_json(marks, text)
        if kind == "text":
            return self.check_printed(marks["printed"], text) if "printed" in marks else None
        if kind == "math":
            return None
        if any(stands_in(text, path.read_text(encoding="utf-8")) for path in self.compiled()):
            return "compared"
        if kind == "python":
            self.call(["python3", "-c", text])
            return "run"
        raise Defect("stands in no file that is compiled or run")

    def read_only(self, kind, text):
        """Of a block that is not run: whether bash, Python, JSON and portwave can read it."""
        if kind == "sh":
            self.call(["bash", "-n", "-c", text])
            for line in text.replace("\\\n", " ").splitlines():
                self.parse_command(line)
        elif kind == "python":
            compile(text, self.name, "exec")
        elif kind == "json":
            entries(text)

    def parse_command(self, line):
        """A command line of a program of ours, of a scenario that is not there: what is wrong is then the file alone."""
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # of several lines
            return
        places = [i for i, word in enumerate(words) if Path(word).name in PROGRAMS]
        for begin, end in zip(places, places[1:] + [len(words)]):
            own = words[begin + 1:end]
            ends = [i for i, word in enumerate(own) if word in (";", "&", "&&", "||", "|", ">", "<")]
            own = own[:ends[0]] if ends else own
            absent = [word if word.startswith("-") else re.sub(r"[^=]*\.json$", "not_there/absent.json", word)
                      for word in own]
            before = self.printed
            program = Path(words[begin]).name
            self.call([program, *absent], wanted=None)
            said, self.printed = self.printed[len(before):], before
            if re.search(rf"^See \"{program}.* --help\"\.$", said, re.M):
                raise Defect(f"is not read by the program: {program} {' '.join(own)}\n{said.strip()}")

    def compiled(self):
        for folder, endings in COMPILED:
            for path in sorted((self.sources / folder).rglob("*")):
                if path.suffix[1:] in endings:
                    yield path

    def imports(self, module):
        return subprocess.run([self.python, "-c", f"import {module}"], capture_output=True).returncode == 0

    def check_json(self, marks, text):
        if "part of" in marks:
            scenario, pointer = (marks["part of"].split() + [""])[:2]
            found = entries(text)
            for group in settings(found, pointer):
                self.call(["portwave", "validate", scenario] + [word for line in group for word in ("--set", line)])
            return "run"
        if "file" in marks or ('"subsystems"' in text and '"time"' in text):
            file = marks.get("file", json.loads(text)["name"].replace(" ", "_") + ".json")
            (self.scratch / file).write_text(text, encoding="utf-8")
            self.call(["portwave", "run", file, "--out", file + ".results"])
            return "run"
        own = [squeezed(piece) for _, _, piece in entries(text)]
        for path in sorted((self.sources / "examples").rglob("*.json")):
            example = squeezed(path.read_text(encoding="utf-8"))
            if all(piece in example for piece in own):
                return "compared"
        raise Defect("stands in no example, and no mark says of which scenario it is a part")

    def check_printed(self, how, text):
        written = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(self.scratch.rglob("*.csv"))]
        numbers = re.compile(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?")

        def pattern(line):
            if "other numbers" not in how:
                return ".*".join(map(re.escape, line.split("…")))
            pieces = [" +".join(map(re.escape, re.split(" +", piece))) for piece in numbers.split(line)]
            return numbers.pattern.join(".*".join(piece.split("…")) for piece in pieces)

        lines = [line for line in text.splitlines() if line.strip()]
        wanted = re.compile(r"(?s:.*?)".join(f"^{pattern(line.rstrip())} *$" for line in lines), re.M)
        if not any(wanted.search(output) for output in [self.printed, *written]):
            raise Defect(f"was not printed, nor written; what was:\n{self.printed[-1500:]}")
        return "compared"

    def generated(self, command):
        done = subprocess.run(["bash", "-c", command], cwd=self.sources, capture_output=True, text=True,
                              env={"PATH": self.path, "LC_ALL": "C.UTF-8"})
        if done.stdout != self.text:
            return [f"{self.name}: is not what this prints: {command}\n{done.stderr[-500:]}"]
        return []

    def indented(self):
        """Lines of blocks that are indented in place of fenced."""
        is_fenced, before, in_list = False, "", False
        for number, line in enumerate(self.text.splitlines(), 1):
            if line.lstrip().startswith("```"):
                is_fenced = not is_fenced
            in_list = in_list and (not line or line.startswith(" ")) or bool(re.match(r"\s*([-*]|\d+\.) ", line))
            if not is_fenced and not in_list and line.startswith("    ") and not before:
                yield number
            before = line

    def defects(self):
        top = dict(MARK.findall(self.text.split("\n## ")[0]))
        if "generated" in top:
            self.counts["run"] += 1
            return self.generated(top["generated"])
        found = [f"{self.name}:{number}: is indented, not fenced" for number in self.indented()]
        verbs = re.findall(r"^verb_(\w+)\(\)", (self.sources / "dev").read_text(encoding="utf-8"), re.M)
        found += [f"{self.name}: ./dev has no verb {verb}" for verb in re.findall(r"\./dev (\w+)", self.text)
                  if verb not in verbs]
        for line, kind, marks, text in self.blocks():
            try:
                outcome = self.check(kind, marks, text)
            except Defect as defect:
                found.append(f"{self.name}:{line}: {defect}")
            except (json.JSONDecodeError, ValueError) as error:
                found.append(f"{self.name}:{line}: cannot be read: {error}")
            else:
                if outcome:
                    self.counts[outcome] += 1
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", type=os.path.abspath, default=sys.executable)
    folder = lambda text: Path(text).resolve()
    parser.add_argument("--installed", type=folder)
    parser.add_argument("portwave", type=folder)
    parser.add_argument("sources", type=folder)
    parser.add_argument("pages", nargs="+")
    given = parser.parse_args()
    found, counts = [], dict.fromkeys(["run", "compared", "excused", "left out"], 0)
    for name in given.pages:
        with tempfile.TemporaryDirectory() as scratch:
            page = Page(given, name, Path(scratch))
            found += page.defects()
            counts = {key: counts[key] + page.counts[key] for key in counts}
    for defect in found:
        print(defect)
    print(", ".join(f"{number} {key}" for key, number in counts.items()) + f"; {len(found)} defects")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
