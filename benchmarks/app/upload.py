"""Time on the local page, in a real browser, from the upload of 30,000 rows to the decision on a private model.

Needs the extras ``app`` and ``dev`` and a Chromium: ``python benchmarks/app/upload.py [rows [path of the browser]]``.
The table is simulated: 14 columns as in Adult, six numeric, eight of texts.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import pandas as pd
from change import opened_page


def table(rows: int) -> bytes:
    """Return a CSV file with a target that the columns tell something about."""
    rng = np.random.default_rng(0)
    columns = {f"number{i}": rng.normal(50, 15, rows).round(1) for i in range(6)}
    columns |= {f"text{i}": rng.choice([f"value {j}" for j in range(4 + 5 * i)], rows) for i in range(8)}
    frame = pd.DataFrame(columns)
    frame["ill"] = np.where(frame["number0"] + rng.normal(0, 15, rows) > 60, "yes", "no")
    return frame.to_csv(index=False).encode()


def main() -> None:
    """Print the wall times of the steps."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    content = table(rows)
    with opened_page(sys.argv[2:]) as page:
        page.get_by_role("tab", name="A private model").click(timeout=120_000)
        place = page.get_by_role("tabpanel", name="A private model")
        start = time.perf_counter()
        place.locator("input[type=file]").set_input_files(
            {"name": "people.csv", "mimeType": "text/csv", "buffer": content}
        )
        place.get_by_text("What was understood").first.wait_for(timeout=120_000)
        understood = time.perf_counter()
        page.wait_for_timeout(1000)
        place.get_by_role("combobox").first.click()
        page.get_by_role("option", name="ill").click()
        page.wait_for_timeout(1000)
        trained = time.perf_counter()
        place.get_by_role("button", name="Train").click()
        place.get_by_text("default policy of deniable").wait_for(timeout=240_000)
        done = time.perf_counter()
    print(f"{rows:,} rows, {len(content) / 1e6:.1f} MB, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"upload until it is understood: {understood - start:.1f} s")
    print(f"from Train to the decision: {done - trained:.1f} s")


if __name__ == "__main__":
    main()
