"""Opens pages of portwave in a headless browser: they draw, without errors, in light and in dark, on wide
screens and narrow ones, and can be used without a mouse.

    check_pages.py PORTWAVE SOURCES [--break]

With --break the page is damaged first, and that must be noticed. Exit code 77 without a browser.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chrome"]
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--virtual-time-budget=4000",
]

# Before the page's own scripts: keeps what goes wrong. After them: looks at what they have done.
BEFORE = "<script>window.found = {errors: []};addEventListener('error', (e) => found.errors.push(String(e.message)));" \
    "addEventListener('securitypolicyviolation', (e) => found.errors.push('policy: ' + e.blockedURI));</script>"
AFTER = """<script>
(() => {
  const canvases = [...document.querySelectorAll('canvas')];
  const drawn = (canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
    return count;
  };
  found.drawn = document.body.dataset.drawn ?? 'no';
  found.canvases = canvases.length;
  found.empty = canvases.filter((canvas) => drawn(canvas) < 200).length;
  found.dark = matchMedia('(prefers-color-scheme: dark)').matches;
  found.ground = getComputedStyle(document.body).backgroundColor;
  found.too_wide = document.documentElement.scrollWidth - innerWidth;
  found.network = document.querySelectorAll('svg.network g').length;
  found.unnamed = [...document.querySelectorAll('button, input, [tabindex]')].filter((element) =>
    !(element.textContent.trim() || element.labels?.[0]?.textContent.trim() || element.getAttribute('aria-label') ||
      element.getAttribute('aria-labelledby'))).length;
  // Without a mouse: along a line, nearer, and back.
  const tell = () => {
    const out = document.createElement('pre');
    out.id = 'found';
    out.textContent = JSON.stringify(found);
    document.body.append(out);
  };
  const plot = document.querySelector('.plot');
  if (!plot || found.errors.length > 0) {
    tell();
  } else {
    const press = (key) => plot.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    plot.focus();
    found.focus = document.activeElement === plot;
    press('ArrowRight');
    press('ArrowRight');
    const figure = plot.closest('figure');
    found.readout = figure.querySelector('output').textContent;
    const canvas = figure.querySelector('canvas');
    const marks = () => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.join();
    const before = marks();
    press('+');
    press('+');
    setTimeout(() => {
      found.zoomed = marks() !== before;
      press('0');
      const box = figure.querySelector('.legend input');
      box.click();
      setTimeout(() => {
        found.hidden = marks() !== before;
        box.click();
        tell();
      }, 200);
    }, 200);
  }
})();
</script>"""


def browser():
    for name in BROWSERS:
        if shutil.which(name):
            return shutil.which(name)
    print("no browser here")
    sys.exit(77)


def opened(program, flags, page, folder):
    """What the browser says of a page, as text."""
    with tempfile.TemporaryDirectory(dir=folder) as profile:
        line = [program, *FLAGS, f"--user-data-dir={profile}", *flags, f"file://{page}"]
        return subprocess.run(line, capture_output=True, timeout=120, cwd=folder).stdout.decode()


def looked_at(program, page, folder, width, dark):
    html = open(page, encoding="utf-8").read()
    html = html.replace("<head>", "<head>" + BEFORE, 1).replace("</body>", AFTER + "</body>")
    probe = os.path.join(folder, "probe.html")
    open(probe, "w", encoding="utf-8").write(html)
    flags = [f"--window-size={width},1200", "--dump-dom"]
    if dark:
        flags += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
    text = opened(program, flags, probe, folder)
    match = re.search(r'<pre id="found">(.*?)</pre>', text, re.S)
    if not match:
        return {"errors": ["the page did not come to its end"]}
    return json.loads(match.group(1).replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))


def pixels(path):
    """Rows of a PNG of 8 bits per channel, as bytes, and bytes per pixel."""
    data = open(path, "rb").read()
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (2, 6) and not interlaced
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    size = 3 if colour == 2 else 4
    raw, rows = zlib.decompress(packed), []
    before = bytearray(width * size)
    for y in range(height):
        start = y * (width * size + 1)
        filter_, row = raw[start], bytearray(raw[start + 1:start + 1 + width * size])
        for i in range(len(row)):
            a = row[i - size] if i >= size else 0
            b = before[i]
            if filter_ == 1:
                row[i] = (row[i] + a) & 255
            elif filter_ == 2:
                row[i] = (row[i] + b) & 255
            elif filter_ == 3:
                row[i] = (row[i] + (a + b) // 2) & 255
            elif filter_ == 4:
                c = before[i - size] if i >= size else 0
                p = a + b - c
                nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                row[i] = (row[i] + nearest) & 255
        rows.append(bytes(row))
        before = row
    return rows, size


def picture(program, page, folder):
    """How many colours a screenshot has, and the share of its most frequent one."""
    path = os.path.join(folder, "shot.png")
    opened(program, ["--window-size=480,800", f"--screenshot={path}"], page, folder)
    rows, size = pixels(path)
    counts = {}
    for row in rows:
        for i in range(0, len(row), size):
            colour = row[i:i + 3]
            counts[colour] = counts.get(colour, 0) + 1
    return len(counts), max(counts.values()) / sum(counts.values())


def main():
    portwave, sources = sys.argv[1:3]
    damage = "--break" in sys.argv[3:]
    program = browser()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        def portwave_says(*line):
            done = subprocess.run([portwave, *line], capture_output=True, cwd=sources)
            if b"without uPlot" in done.stderr:
                print("portwave makes no reports here")
                sys.exit(77)
            assert done.returncode == 0, done.stderr.decode()

        def expect(what, page, found, is_good):
            if not is_good:
                failures.append(f"{os.path.relpath(page, folder)}: {what}: {found}")

        pair, arm = os.path.join(folder, "pair"), os.path.join(folder, "arm")
        more = os.path.join(folder, "more")
        portwave_says("run", "examples/published_douglas_rachford.json", "--out", pair, "--report")
        portwave_says("run", "examples/published_douglas_rachford.json", "--out", more, "--set", "/method/iterations=5",
                      "--pace", "1000")
        portwave_says("report", pair, more)
        portwave_says("run", "examples/robot_arm.json", "--out", arm, "--report", "--steps", "200", "--set",
                      "/outputs/energies=true", "--set", "/outputs/every=1")
        study = os.path.join(folder, "study")
        portwave_says("study", "budget", "examples/published_douglas_rachford.json", "--budgets", "2,8,20", "--out", study,
                      "--report")
        pages = [(os.path.join(arm, "report.html"), 1200, False), (os.path.join(pair, "report.html"), 500, True),
                 (os.path.join(pair, "comparison.html"), 900, False), (os.path.join(study, "report.html"), 900, True)]
        if damage:
            pages = pages[:1]
            html = open(pages[0][0], encoding="utf-8").read()
            open(pages[0][0], "w", encoding="utf-8").write(html.replace("const { nodes, links } = network", "nothing()"))
        for page, width, dark in pages:
            found = looked_at(program, page, folder, width, dark)
            expect("errors", page, found["errors"], not found["errors"])
            if found["errors"]:
                continue
            expect("drawn", page, found["drawn"], found["drawn"] == "yes")
            expect("charts", page, found["canvases"], found["canvases"] >= 1)
            expect("empty charts", page, found["empty"], found["empty"] == 0)
            expect("colour scheme", page, found["dark"], found["dark"] == dark)
            lightness = sum(int(n) for n in re.findall(r"\d+", found["ground"])[:3])
            expect("ground", page, found["ground"], (lightness < 200) == dark)
            expect("wider than the window", page, found["too_wide"], found["too_wide"] <= 0)
            expect("without a name", page, found["unnamed"], found["unnamed"] == 0)
            expect("focus", page, found["focus"], found["focus"])
            expect("arrow keys", page, found["readout"], found["readout"] != "")
            expect("zoom by keys", page, found["zoomed"], found["zoomed"])
            expect("a line is hidden", page, found["hidden"], found["hidden"])
        if not failures:
            expect("network", pages[0][0], found, looked_at(program, pages[0][0], folder, 900, False)["network"] >= 30)
            colours, share = picture(program, pages[0][0], folder)
            expect("screenshot", pages[0][0], (colours, share), colours > 50 and share < 0.98)
    for failure in failures:
        print(failure)
    print(f"{len(pages)} pages, {len(failures)} failures")
    sys.exit(1 if failures else 0)


main()
