"""Looks at a run that goes on, as browsers on this machine do, and as those do who should not.

    check_live.py PORTWAVE SOURCES
"""

import http.client
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

portwave, sources = sys.argv[1:3]
failures = []


def expect(what, found, is_good):
    if not is_good:
        failures.append(f"{what}: {found}")


class Run:
    """A run that is shown. It is paced, so that it takes a while on any machine."""

    def __init__(self, *more, seconds=4):
        line = [portwave, "run", "examples/published_douglas_rachford.json", "--steps", str(100 * seconds), "--pace", "1",
                "--serve", "0", *more]
        self.process = subprocess.Popen(line, cwd=sources, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = self.process.stderr.readline().decode()
        match = re.search(r"http://127\.0\.0\.1:(\d+)/", said)
        if not match:
            rest = said + self.process.stderr.read().decode()
            if "built without" in rest:
                print(rest)
                sys.exit(77)
            raise SystemExit(f"no address: {rest}")
        self.port = int(match.group(1))

    def ask(self, path="/", method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", headers.pop("host", f"127.0.0.1:{self.port}"))
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse()

    def end(self):
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, err.decode()


def news_of(response, most=100):
    """The JSON of each event until the end."""
    while most > 0:
        line = response.readline()
        if not line:
            return
        if line.startswith(b"data: "):
            most -= 1
            yield json.loads(line[6:])


def check_answers():
    run = Run()
    page = run.ask()
    body = page.read().decode()
    expect("page", page.status, page.status == 200 and "</html>" in body)
    expect("the page asks its own server only", "", "connect-src 'self'" in body)
    expect("by name", "", run.ask(host=f"localhost:{run.port}").status == 200)
    for host in ["evil.example", f"evil.example:{run.port}", "127.0.0.1", ""]:
        expect(f"asked as {host!r}", run.ask(host=host).status, run.ask(host=host).status == 403)
    for method in ["POST", "PUT", "DELETE", "OPTIONS"]:
        expect(method, run.ask(method=method).status, run.ask(method=method).status == 405)
    for path in ["/../../etc/passwd", "/summary.json", "/%2e%2e/x", "//", "/events/x"]:
        expect(path, run.ask(path).status, run.ask(path).status == 404)
    expect("headers", dict(page.getheaders()), page.getheader("X-Frame-Options") == "DENY")
    # Nobody else's machine: the socket is of the loopback address.
    listening = [line.split()[1] for line in open("/proc/net/tcp").readlines()[1:] if line.split()[3] == "0A"]
    own = [address for address in listening if address.endswith(f":{run.port:04X}")]
    expect("listens on", own, own == [f"0100007F:{run.port:04X}"])
    # A second one cannot have the port.
    other = subprocess.run([portwave, "run", "examples/published_douglas_rachford.json", "--serve", str(run.port)], cwd=sources,
                           capture_output=True)
    expect("a port that is taken", (other.returncode, other.stderr), other.returncode == 3 and b"taken" in other.stderr)
    code, err = run.end()
    expect("the run ends well", (code, err), code == 0)


def check_news():
    run = Run(seconds=3)
    times, last = [], None
    for news in news_of(run.ask("/events")):
        times.append(news["facts"][0][1])
        last = news
    expect("news", times, len(set(times)) >= 3)
    expect("the last news", last and last["ended"], last and last["ended"] and "certificate" in last["verdict"]["text"])
    charts = {chart["title"]: chart for section in last["sections"] for chart in section["charts"]}
    moved = max(abs(y) for series in charts["Quantities in m"]["series"] for y in series["y"])
    expect("trajectories", moved, moved > 0.1)
    open_J = max(abs(y) for y in charts["What the ledger leaves open"]["series"][0]["y"])
    expect("the ledger of the samples closes", open_J, open_J < 1e-9)
    expect("the run ends well", "", run.end()[0] == 0)


def check_many_readers():
    run = Run(seconds=60)
    readers = [run.ask("/events") for _ in range(6)]
    expect("readers", [reader.status for reader in readers], all(reader.status == 200 for reader in readers))
    time.sleep(0.2)
    expect("one too many", "", run.ask("/events").status == 503)
    # Those who send nothing, or half a request, or stop reading, do not stop the run.
    idle = [socket.create_connection(("127.0.0.1", run.port)) for _ in range(20)]
    idle[0].sendall(b"GET / HTT")
    run.process.send_signal(signal.SIGINT)
    code, err = run.end()
    expect("the run ends as it is told to", (code, err), code == 130)


def check_interrupt():
    run = Run(seconds=60)
    run.ask("/events")
    time.sleep(0.5)
    run.process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    code, _ = run.end()
    expect("interrupted", (code, time.monotonic() - begin), code == 130 and time.monotonic() - begin < 20)


def check_same_results(folder):
    files = {}
    for name, more in [("plain", []), ("shown", ["--serve", "0", "--live"])]:
        out = os.path.join(folder, name)
        done = subprocess.run([portwave, "run", "examples/published_douglas_rachford.json", "--steps", "200000", "--set",
                               "/outputs/every=100", "--out", out, *more], cwd=sources, capture_output=True)
        expect(name, done.stderr, done.returncode == 0)
        files[name] = [open(os.path.join(out, file), "rb").read() for file in ["trajectory.csv", "energy.csv"]]
    expect("results are the same", "", files["plain"] == files["shown"])


def check_browser(folder):
    browser = next((shutil.which(name) for name in ["chromium", "chromium-browser", "google-chrome"]
                    if shutil.which(name)), None)
    if browser is None:
        print("no browser here: the page was not opened")
        return
    run = Run(seconds=4)
    # Its time stands still while the server may still tell something: the page is that of the end.
    line = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", f"--user-data-dir={folder}/profile", "--virtual-time-budget=2000",
            "--dump-dom", f"http://127.0.0.1:{run.port}/"]
    text = subprocess.run(line, capture_output=True, timeout=120).stdout.decode()
    expect("drawn", "", 'data-drawn="yes"' in text)
    updates = re.search(r'data-updates="(\d+)"', text)
    expect("news reached the page", updates and updates.group(1), updates and int(updates.group(1)) >= 3)
    expect("the page knows the end", "", "The run has ended" in text)
    run.end()


def check_lines():
    """Without a terminal."""
    done = subprocess.run([portwave, "run", "examples/published_douglas_rachford.json", "--steps", "350", "--pace", "1", "--live"],
                          cwd=sources, capture_output=True)
    lines = [line for line in done.stderr.decode().splitlines() if "%" in line and "steps/s" in line]
    expect("lines", done.stderr.decode(), 2 <= len(lines) <= 4)
    for word in ["step ", " of 350", "times real time", "iterations per step", "energy ", "certificate", "guard"]:
        expect("a line says", (word, lines), all(word in line for line in lines))
    expect("no control characters", "", b"\x1b" not in done.stderr)
    done = subprocess.run([portwave, "run", "examples/published_douglas_rachford.json", "--live", "--quiet"], cwd=sources,
                          capture_output=True)
    expect("live and quiet", done.stderr, done.returncode == 2 and b"--quiet" in done.stderr)


def check_panel():
    """On a terminal: rewritten in place, ten times a second at most, and gone at the end."""
    master, slave = pty.openpty()
    begin = time.monotonic()
    process = subprocess.Popen([portwave, "run", "examples/published_douglas_rachford.json", "--steps", "200", "--pace", "1",
                                "--live"], cwd=sources, stdout=slave, stderr=slave)
    # The slave stays open here until all is read: the system may drop what the last one to close it wrote just before.
    text = b""
    while True:
        ended = process.poll() is not None
        if not select.select([master], [], [], 0.2)[0]:
            if ended:
                break
            continue
        text += os.read(master, 1 << 16)
    os.close(slave)
    os.close(master)
    took_s = time.monotonic() - begin
    text = text.decode()
    painted = text.count("published_douglas_rachford [")
    expect("painted", painted, 5 <= painted <= 10 * took_s + 2)
    for word in ["steps ", "rate ", "coupling ", "energy ", "guard ", "worst part"]:
        expect("the panel says", word, word in text)
    ups = [int(n) for n in re.findall(r"\x1b\[(\d+)A\x1b\[J", text)]
    expect("goes up as far as it went down", (ups, painted), len(ups) == painted and set(ups) <= {5, 6, 7})
    last = text.rindex("\x1b[J")
    expect("the run ends well", process.returncode, process.returncode == 0)
    expect("the panel is gone at the end", text[last:], "published_douglas_rachford: 200 steps" in text[last:] and "[###" not in text[last:])


with tempfile.TemporaryDirectory() as scratch:
    check_answers()
    check_news()
    check_many_readers()
    check_interrupt()
    check_same_results(scratch)
    check_browser(scratch)
check_lines()
check_panel()
for failure in failures:
    print(failure)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
