#!/usr/bin/env python3
"""Opens the pages of the built site in a headless browser: formulas are drawn and fit, no script fails, nothing is asked
of another machine, the search finds, and there is a dark scheme.

    check_in_browser.py SITE [--break]

With --break a formula is damaged first, and that must be noticed. Exit code 77 without a browser, or a site.
"""

import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "chrome"]
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--window-size=1280,900",
]
TIME_S = 500

# Before the scripts of a page: keeps what goes wrong.
BEFORE = """<script>window.wrong = [];
addEventListener('error', (e) => wrong.push(e.message ?? 'cannot load ' + (e.target.src ?? e.target.href)), true);
addEventListener('unhandledrejection', (e) => wrong.push(String(e.reason)));
addEventListener('securitypolicyviolation', (e) => wrong.push('asks for ' + e.blockedURI));</script>"""

# Opens one page after the other in a frame, looks at each, and tells the server.
DRIVER = """<!doctype html><meta charset="utf-8"><body style="margin:0"><script>
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const until = async (holds) => {  // on a busy machine too
  for (let i = 0; i < 600 && !holds(); ++i) await pause(100);
  return holds();
};
const opened = (page) => new Promise((done) => {
  const frame = document.createElement('iframe');
  frame.style = 'width:1280px;height:900px;border:0';
  frame.onload = () => done(frame);
  frame.src = page;
  document.body.replaceChildren(frame);
});
const look = (frame) => {
  const page = frame.contentDocument;
  const formulas = [...page.querySelectorAll('.arithmatex')];
  const wrong = [...frame.contentWindow.wrong];
  for (const formula of formulas) {
    const name = formula.querySelector('annotation')?.textContent.trim().slice(0, 60) ?? formula.textContent.slice(0, 60);
    if (!formula.querySelector('.katex-html') || formula.querySelector('.katex-error')) wrong.push('not drawn: ' + name);
    if (formula.scrollWidth > formula.clientWidth + 1) wrong.push('wider than the page: ' + name);
  }
  for (const picture of page.images) if (picture.naturalWidth === 0) wrong.push('no picture: ' + picture.src);
  const fonts = [...frame.contentWindow.document.fonts].filter((font) => font.status === 'error');
  if (fonts.length > 0) wrong.push('no font: ' + fonts[0].family);
  return { formulas: formulas.length, wrong };
};
const uses = async (frame) => {
  const page = frame.contentDocument, wrong = [];
  const box = page.querySelector('[data-md-component=search-query]');
  box.focus();
  let asked = 0;
  const found = () => {
    // A new question takes the place of one that has not been answered: on a busy machine that takes seconds.
    if (asked++ % 100 === 0) {
      box.value = box.value === 'impedance' ? 'impedances' : 'impedance';
      box.dispatchEvent(new frame.contentWindow.KeyboardEvent('keyup', { key: 'e', bubbles: true }));
    }
    return page.querySelectorAll('.md-search-result__item').length > 2;
  };
  if (!await until(found)) wrong.push('the search finds nothing');
  const ground = () => frame.contentWindow.getComputedStyle(page.body).backgroundColor;
  const before = ground();
  page.querySelector('#__palette_2').click();
  if (!await until(() => page.body.dataset.mdColorScheme === 'slate' && ground() !== before)) wrong.push('no dark scheme');
  return wrong;
};
(async () => {
  const result = {};
  for (const page of PAGES) {
    const frame = await opened(page);
    await frame.contentDocument.fonts.ready;
    result[page] = look(frame);
    if (page === 'index.html') result[page].wrong.push(...await uses(frame));
  }
  await fetch('/result', { method: 'POST', body: JSON.stringify(result) });
})().catch((e) => fetch('/result', { method: 'POST', body: JSON.stringify({ driver: { formulas: 0, wrong: [String(e)] } }) }));
</script>"""


class Server(http.server.SimpleHTTPRequestHandler):
    site, pages, damage, result, done = None, [], False, None, threading.Event()

    def __init__(self, *given):
        super().__init__(*given, directory=str(self.site))

    def do_GET(self):
        path = self.path.split("?")[0].lstrip("/")
        file = self.site / path
        if path == "driver.html":
            self.send(DRIVER.replace("PAGES", json.dumps(self.pages)))
        elif path.endswith(".html") and file.is_file():
            page = file.read_text(encoding="utf-8")
            if self.damage:
                page = page.replace("\\frac", "\\fraq")
            self.send(page.replace("<head>", "<head>" + BEFORE, 1))
        else:
            super().do_GET()

    def send(self, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        Server.result = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send("")
        self.done.set()

    def log_message(self, *_):
        pass


def main():
    site = Path(sys.argv[1]).resolve()
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not program or not (site / "index.html").is_file():
        print("no browser here" if not program else "no site here")
        return 77
    Server.site, Server.damage = site, "--break" in sys.argv
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
    Server.pages = [page for page in pages if not page.startswith(("api/", "source/", "decisions/"))] + \
        [page for page in pages if page.startswith("decisions/")] + ["api/index.html", "api/annotated.html"]
    if Server.damage:
        Server.pages = ["concepts/order.html"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        address = f"http://127.0.0.1:{server.server_port}/driver.html"
        browser = subprocess.Popen([program, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0", address],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Server.done.wait(TIME_S)
        browser.terminate()
        browser.wait()
    if Server.result is None:
        print("the browser did not come to the end of the pages")
        return 1
    wrong = [f"{page}: {each}" for page, found in Server.result.items() for each in found["wrong"]]
    formulas = sum(found["formulas"] for found in Server.result.values())
    if formulas == 0:
        wrong.append("no page has a formula")
    for each in wrong:
        print(each)
    print(f"{len(Server.result)} pages opened, {formulas} formulas, {len(wrong)} defects")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
