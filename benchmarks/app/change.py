"""Time of a change on the local page, in a real browser: from the key press to the changed numbers.

Needs the extras ``app`` and ``dev`` and a Chromium: ``python benchmarks/app/change.py [path of the browser]``.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from playwright.sync_api import Page, sync_playwright

import deniable as dn

PRESSES, RUNS = 15, 60
# advantage and ε: the first number on the page and the last
WATCH = """() => {
  const values = () => [...document.querySelectorAll('[data-testid=stMetricValue]')].map(e => e.textContent);
  const before = values();
  window.times = {start: performance.now()};
  window.watcher?.disconnect();
  window.watcher = new MutationObserver(() => {
    const now = values();
    for (const [name, i] of [['first', %d], ['epsilon', 4]])
      if (!(name in times) && now[i] && now[i] !== '…' && now[i] !== before[i])
        times[name] = performance.now() - times.start;
  });
  watcher.observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


def serve() -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "deniable", "app", "--no-browser", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).close()
            return server, f"http://127.0.0.1:{port}/"
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the page did not start")


def press(page: Page, slider: str, first: int, watched: str) -> list[float]:
    """Times in ms of key presses on a slider until the ``watched`` number changes."""
    page.get_by_role("slider", name=slider).focus()
    times = []
    for _ in range(PRESSES):
        page.evaluate(WATCH % first)
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"times.{watched}", polling=20)
        times.append(page.evaluate(f"times.{watched}"))
        page.wait_for_timeout(400)
    return times


@contextmanager
def opened_page(named: list[str]) -> Iterator[Page]:
    """Serve the page and open it in the browser at the first path ``named``, else in one that is installed."""
    browser = next(filter(None, [*named, shutil.which("chromium"), shutil.which("google-chrome")]))
    server, address = serve()
    try:
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
            page = opened.new_page(viewport={"width": 1300, "height": 1000})
            page.goto(address)
            yield page
            opened.close()
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    with opened_page(sys.argv[1:]) as page:
        page.wait_for_selector(".main-svg")
        page.wait_for_timeout(1000)
        for slider, first, watched in (
            ("noise multiplier", 0, "first"),
            ("noise multiplier", 0, "epsilon"),
            ("sampling rate", 0, "epsilon"),
            ("prior", 1, "first"),
            ("false positive rate (%)", 2, "first"),
        ):
            times = press(page, slider, first, watched)
            what = "ε, the last number" if watched == "epsilon" else "the first number"
            print(f"{slider}, until {what} changes: median {np.median(times):.0f} ms, worst {max(times):.0f} ms")

    rng = np.random.default_rng(0)
    spent = []
    for _ in range(RUNS):
        noise, rate, steps = rng.uniform(0.6, 4.0), 10 ** rng.uniform(-3.0, -1.0), 10 ** rng.uniform(2.0, 4.5)
        start = time.perf_counter()
        t = dn.tradeoff(dn.SubsampledGaussian(noise, rate, int(steps)))
        t.advantage(), t.accuracy(0.1), t.tpr(0.01), t.sketch().tpr(np.geomspace(1e-6, 1, 121))
        rates = time.perf_counter()
        t.epsilon(1e-5)
        spent.append((1e3 * (rates - start), 1e3 * (time.perf_counter() - rates)))
    print(f"the library alone, {RUNS} runs with noise 0.6 to 4, rate 0.001 to 0.1, 100 to 31,623 steps:")
    for name, times in zip(("rates and ROC", "ε"), np.transpose(spent), strict=True):
        quantiles = ", ".join(f"{q:.0f}" for q in np.quantile(times, [0.5, 0.9, 1.0]))
        print(f"{name}: {100 * np.mean(times < 100):.0f} % below 100 ms; median, 90 %, worst: {quantiles} ms")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
