"""browse.py REPORT.html [--stages N] [--title TEXT] [--shots DIR]

Opens a report in headless Chromium, through chromedriver and plain HTTP, as a
person would: looks, zooms, drags, points at a bar, in light and dark. Prints
what it found; anything wrong, an error in the browser's log included, is named
and ends with exit code 1.
"""
import argparse
import base64
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

# Of every 7th pixel of a canvas, the share that has a colour, give or take what
# is lost where bars are laid over each other.
SHARE = """
const [selector, colour] = arguments;
const canvas = document.querySelector(selector);
const copy = document.createElement('canvas');
[copy.width, copy.height] = [canvas.width, canvas.height];
const context = copy.getContext('2d', {willReadFrequently: true});
context.fillStyle = colour;
context.fillRect(0, 0, 1, 1);
const wanted = context.getImageData(0, 0, 1, 1).data;
context.drawImage(canvas, 0, 0);
const {data} = context.getImageData(0, 0, copy.width, copy.height);
let count = 0;
for (let i = 0; i < data.length; i += 4 * 7) {
  count += wanted.every((value, c) => Math.abs(value - data[i + c]) <= 4);
}
return count / (data.length / 28);
"""


class Browser:
    """A session of chromedriver, closed on exit."""

    def __init__(self, home):
        for program in ("chromedriver", "chromium"):
            if not shutil.which(program):
                sys.exit(f"{program} is not installed (scripts/install-deps.sh does it)")
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env={**os.environ, "HOME": home})
        port = None
        while port is None:
            line = self.driver.stdout.readline()
            if not line:
                sys.exit("chromedriver ended without saying its port")
            port = re.search(r"started successfully on port (\d+)", line)
        self.url = f"http://127.0.0.1:{port[1]}/session"
        session = self.call("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--window-size=1280,900"]}}}})
        self.url += "/" + session["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=30)

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            sys.exit(f"{method} {path}: {error.read().decode()}")

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync",
                         {"script": script, "args": list(arguments)})

    def cdp(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute",
                         {"cmd": command, "params": parameters})

    def act(self, kind, *actions):
        source = {"type": kind, "id": kind, "actions": list(actions)}
        if kind == "pointer":
            source["parameters"] = {"pointerType": "mouse"}
        self.call("POST", "/actions", {"actions": [source]})
        self.drawn()

    def drawn(self, condition="true"):
        """Waits until the condition holds; two frames later it is drawn."""
        self.call("POST", "/execute/async", {"args": [], "script":
            "const done = arguments[0];"
            f"const wait = () => requestAnimationFrame({condition}"
            " ? () => requestAnimationFrame(() => done()) : wait);"
            "wait();"})

    def view(self):
        """The interval of time that the charts show."""
        return self.run("const {begin, end} = document.getElementById('timeline').dataset;"
                        "return [Number(begin), Number(end)];")


MOST_BYTES = 5_000_000
failures = []


def expect(good, message):
    if not good:
        failures.append(message)


def move(x, y, duration=0):
    return {"type": "pointerMove", "x": round(x), "y": round(y), "duration": duration}


def look(browser, scheme, stages, shots):
    """The page as it opens."""
    browser.cdp("Emulation.setEmulatedMedia",
                features=[{"name": "prefers-color-scheme", "value": scheme}])
    # The page hears of it in a frame, and draws then.
    browser.drawn(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
    forward, curve, ground = browser.run(
        "return [theme.bars[0][0].fill, theme.curve, theme.ground]")
    for chart, colour, least in (("timeline", forward, 0.005), ("memory", curve, 0.05)):
        share = browser.run(SHARE, f"#{chart} canvas", colour)
        expect(share >= least, f"{scheme}: {100 * share:.2f}% of {chart} are {colour}, "
                               f"not {100 * least}%: it is blank")
    wide = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
    expect(wide[0] <= wide[1], f"{scheme}: the page is wider than the window: {wide}")
    if shots:
        shot = browser.cdp("Page.captureScreenshot", captureBeyondViewport=True)
        path = pathlib.Path(shots, f"{stages}-{scheme}.png")
        path.write_bytes(base64.b64decode(shot["data"]))
    return ground


def use(browser, unit, shots):
    """Points, zooms and drags on the timeline."""
    browser.run("document.getElementById('timeline').scrollIntoView()")
    left, top, width = browser.run(
        "const box = document.querySelector('#timeline .over').getBoundingClientRect();"
        "return [box.left, box.top, box.width]")
    y = top + 24 + 6  # in the first row, below the axis
    whole = browser.view()

    tip = "const t = document.getElementById('tip'); return t.hidden ? '' : t.innerText"
    browser.act("pointer", move(math.ceil(left), y))
    text = browser.run(tip)
    for word in ("stage 0", "Forward", "micro-batch\n0", "chunk\n0", f"begin\n0 {unit}", "end\n"):
        expect(word in text, f"the tip of the first bar lacks {word!r}: {text!r}")

    browser.act("wheel", {"type": "scroll", "x": round(left + width / 4), "y": round(y),
                          "deltaX": 0, "deltaY": -1000})
    near = browser.view()
    expect(near[1] - near[0] < 0.9 * (whole[1] - whole[0]),
           f"the wheel does not zoom: {whole} {near}")

    browser.act("pointer", move(left + width / 2, y), {"type": "pointerDown", "button": 0},
                move(left + width / 4, y, 50), {"type": "pointerUp", "button": 0})
    moved = browser.view()
    shift = (near[1] - near[0]) / 4
    expect(abs(moved[0] - near[0] - shift) < 0.1 * shift,
           f"dragging a quarter to the left: {near} {moved}")
    if shots:
        browser.act("pointer", move(left + width / 2, y))
        shot = browser.call("GET", "/screenshot")
        pathlib.Path(shots, "near.png").write_bytes(base64.b64decode(shot))

    browser.run("document.getElementById('memory').scrollIntoView()")
    top = browser.run("return document.querySelector('#memory .over').getBoundingClientRect().top")
    browser.act("pointer", move(left + width / 2, top + 24 + 6))
    text = browser.run(tip)
    for word in ("stage 0", "memory\n", "peak\n", "iB"):
        expect(word in text, f"the tip of the memory lacks {word!r}: {text!r}")

    browser.run("document.querySelector('[data-zoom=fit]').click()")
    browser.act("pointer", move(1, 1))
    expect(browser.view() == whole, f"'whole step' shows {browser.view()}")
    expect(browser.run(tip) == "", "the tip stays when the pointer has left")


def listen(browser):
    """What the browser's log says since the last time."""
    for entry in browser.call("POST", "/se/log", {"type": "browser"}):
        expect(entry["level"] != "SEVERE", f"the browser says: {entry['message']}")


def check(browser, options):
    browser.call("POST", "/url", {"url": options.report.resolve().as_uri()})
    listen(browser)
    if failures:
        return
    # Numbers are inflated before anything is drawn.
    browser.drawn("theme !== null")
    title = browser.run("return [document.title, document.querySelector('h1').innerText]")
    expect(title == [options.title] * 2, f"the title is {title}")
    rows = browser.run("return [...document.querySelectorAll('.stage-row')]"
                       ".filter((row) => row.offsetHeight > 0)"
                       ".map((row) => Number(row.dataset.stage))")
    expect(rows == list(range(options.stages)), f"stage rows are {rows}")
    grounds = {look(browser, scheme, options.stages, options.shots)
               for scheme in ("light", "dark")}
    expect(len(grounds) == 2, f"light and dark have the same ground {grounds}")
    milliseconds = browser.run(
        "const start = performance.now(); redraw();"
        "document.querySelector('canvas').getContext('2d').getImageData(0, 0, 1, 1);"
        "return performance.now() - start")
    use(browser, options.unit, options.shots)
    fetched = browser.run(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)")
    expect(all(name.startswith("data:") for name in fetched), f"the page fetches {fetched}")
    listen(browser)
    print(f"{len(rows)} stage rows, drawn in {milliseconds:.0f} ms")
    legend = browser.run("return [...document.querySelectorAll('#works span')]"
                         ".map((span) => span.innerText)")
    print("shows " + ", ".join(legend))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("--stages", type=int, required=True)
    parser.add_argument("--title", required=True)
    parser.add_argument("--unit", default="ms", help="of times")
    parser.add_argument("--shots", help="a folder for screenshots")
    options = parser.parse_args()
    size = options.report.stat().st_size
    expect(size <= MOST_BYTES, f"the report has {size} bytes, more than {MOST_BYTES}")
    with tempfile.TemporaryDirectory() as home, Browser(home) as browser:
        check(browser, options)
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
