#!/usr/bin/python3
"""Builds the site of the documentation into build/site/html: pages of docs/ by mkdocs, the interface of the
headers by doxygen, formulas by KaTeX, all from Debian's packages, without a network.

    docs/site/build.py [SOURCE [BUILD]]

A failure is a warning of any of the programs, a page that the navigation does not have, a link that leads
nowhere, and a page or style that asks another machine for anything. Exit code 77 where these packages are not
installed: ./dev docs installs them.
"""

import html.parser
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path

KATEX = Path("/usr/share/javascript/katex")
MATERIAL = Path("/usr/share/mkdocs/themes/material")
KATEX_FONTS = [KATEX / "fonts", Path("/usr/share/fonts/truetype/katex")]
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")


def fail(text):
    print(f"docs: {text}", file=sys.stderr)
    sys.exit(1)


def run(line, folder):
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, line))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Pages:
    """The pages as mkdocs wants them: all below one folder, also what they link to elsewhere."""

    def __init__(self, source, pages):
        self.source, self.pages = source, pages
        self.copied = set()

    def assemble(self):
        shutil.copytree(self.source / "docs", self.pages, ignore=shutil.ignore_patterns("site"))
        here = self.source / "docs" / "site"
        shutil.copy(here / "api.md", self.pages)
        for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]:
            text = (self.source / name).read_text(encoding="utf-8")
            self.write(self.pages / ("index.md" if name == "README.md" else name), text, self.source)
        for page in sorted((self.source / "docs").rglob("*.md")):
            if here in page.parents:
                continue
            target = self.pages / page.relative_to(self.source / "docs")
            self.write(target, page.read_text(encoding="utf-8"), page.parent)
        assets = self.pages / "assets"
        assets.mkdir()
        for name in ["draw_math.js", "extra.css"]:
            shutil.copy(here / name, assets)
        katex = assets / "katex"
        katex.mkdir()
        for name in ["katex.min.css", "katex.min.js"]:
            shutil.copy(KATEX / name, katex)
        fonts = next((folder for folder in KATEX_FONTS if folder.is_dir()), None)
        if fonts is None:
            fail(f"no fonts of KaTeX in {' or '.join(map(str, KATEX_FONTS))}")
        shutil.copytree(fonts, katex / "fonts")

    def write(self, target, text, folder):
        """A page whose links began at `folder` of the source."""

        def moved(match):
            link = match.group(2)
            if re.match(r"[a-z]+:", link):
                return match.group(0)
            return match.group(1) + self.place(folder / link, target.parent) + match.group(3)

        target.write_text(LINK.sub(moved, text), encoding="utf-8")

    def place(self, path, folder):
        """Where a file of the source is in the site, seen from `folder`."""
        path = Path(os.path.normpath(path))
        if not path.exists():
            fail(f"a link leads to {path}, which is not there")
        docs = self.source / "docs"
        if path in [self.source / name for name in ["CONTRIBUTING.md", "CHANGELOG.md"]]:
            target = self.pages / path.name
        elif path == self.source / "README.md":
            target = self.pages / "index.md"
        elif docs == path or docs in path.parents:
            target = self.pages / path.relative_to(docs)
            if path.is_dir():
                target /= "README.md"
                if not (path / "README.md").exists():
                    fail(f"a link leads to the folder {path}, which has no page")
        else:
            target = self.copy(path)
        return os.path.relpath(target, folder)

    def copy(self, path):
        """A file of the source that is no page, or a list of a folder of them."""
        target = self.pages / "source" / path.relative_to(self.source)
        if path.is_dir():
            target = target / "index.md"
            if path not in self.copied:
                self.copied.add(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                files = sorted(p for p in path.iterdir() if p.is_file())
                lines = [f"- [`{p.name}`]({os.path.relpath(self.copy(p), target.parent)})" for p in files]
                target.write_text(f"# {path.relative_to(self.source)}\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
            return target
        if path.suffix == ".md":  # a page there too
            if path not in self.copied:
                self.copied.add(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                self.write(target, path.read_text(encoding="utf-8"), path.parent)
            return target
        # As text, so that browsers show it.
        target = target.with_name(target.name + ".txt")
        if path not in self.copied:
            self.copied.add(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        return target


def check_navigation(source):
    """Every page is in the navigation, but decisions: their index has them."""
    docs = source / "docs"
    listed = set(re.findall(r"^ +- (?:.*: )?(\S+\.md)$", (docs / "site" / "mkdocs.yml").read_text(), re.M))
    index = (docs / "decisions" / "README.md").read_text(encoding="utf-8")
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md") if docs / "site" not in path.parents}
    lost = {page for page in pages - listed if not (page.startswith("decisions/") and page.split("/")[1] in index)}
    if lost:
        fail(f"no entry of docs/site/mkdocs.yml leads to {', '.join(sorted(lost))}")


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        for name in ["id", "name"]:
            if given.get(name) and (name == "id" or tag == "a"):
                self.anchors.add(given[name])
        if tag in ("a", "area") and given.get("href"):
            self.links.append(given["href"])
        loads_link = tag == "link" and given.get("rel", "") in ("stylesheet", "icon", "preload", "shortcut icon")
        if loads_link and given.get("href"):
            self.loads.append(given["href"])
        if tag in ("img", "script", "iframe", "source") and given.get("src"):
            self.loads.append(given["src"])


def check_links(site):
    """Every link within the site leads somewhere, and nothing is loaded from elsewhere."""
    pages, defects, count = {}, [], 0
    for path in site.rglob("*.css"):
        defects += [f"{path.relative_to(site)} loads {link}"
                    for link in re.findall(r"(?:url\(|@import )['\"]?(https?:[^'\")]+)", path.read_text(encoding="utf-8"))]
    for path in site.rglob("*.html"):
        page = Links()
        page.feed(path.read_text(encoding="utf-8", errors="replace"))
        pages[path] = page
    for path, page in pages.items():
        is_api = site / "api" in path.parents
        for link in page.links + page.loads:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("data", "mailto", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                if link in page.loads:
                    defects.append(f"{path.relative_to(site)} loads {link}")
                continue
            count += 1
            name = urllib.parse.unquote(parts.path)
            target = path if not name else (site / name.lstrip("/") if name.startswith("/") else path.parent / name)
            target = Path(os.path.normpath(target))
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                if not (path.name == "404.html"):  # whose links are those of the root
                    defects.append(f"{path.relative_to(site)}: {link} leads nowhere")
                continue
            anchor = urllib.parse.unquote(parts.fragment)
            if not anchor or is_api or target not in pages or anchor in ("__tabbed", "top"):
                continue
            if anchor not in pages[target].anchors:
                defects.append(f"{path.relative_to(site)}: {link} leads to no place of the page")
    if defects:
        fail("\n".join([f"{len(defects)} links are wrong:", *defects[:50]]))
    return count, len(pages)


def main():
    missing = [name for name in ["mkdocs", "doxygen"] if not shutil.which(name)]
    missing += [str(path) for path in [KATEX, MATERIAL] if not path.is_dir()]
    if missing:
        print(f"docs: not here: {', '.join(missing)}", file=sys.stderr)
        sys.exit(77)
    source = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    build = Path(sys.argv[2] if len(sys.argv) > 2 else source / "build" / "site").resolve()
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    check_navigation(source)
    Pages(source, build / "pages").assemble()

    here = source / "docs" / "site"
    (build / "Doxyfile").write_text((here / "Doxyfile").read_text().replace("@SOURCE@", str(source)))
    run(["doxygen", "-l", "layout.xml"], build)  # the usual one, with a way back to the other pages
    layout = (build / "layout.xml").read_text()
    back = '<tab type="user" url="../index.html" title="Documentation"/>'
    (build / "layout.xml").write_text(layout.replace("<navindex>", "<navindex>" + back))
    run(["doxygen", "Doxyfile"], build)
    log = (build / "doxygen.log").read_text().strip()
    if log:
        fail(f"doxygen warns:\n{log}")
    shutil.move(build / "api", build / "pages" / "api")

    shutil.copy(here / "mkdocs.yml", build)
    run(["mkdocs", "build", "--strict", "--quiet"], build)
    links, pages = check_links(build / "html")
    print(f"docs: {pages} pages, {links} links, in {build / 'html'}")


main()
