"""``deniable app``: the local page."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from deniable._check import InputError
from deniable._optional import require
from deniable.cli._app import command

HOST = "127.0.0.1"


@command("deniable app", "deniable app --port 8600 --no-browser", name="app")
def local_page(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 8501,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Open a local page to explore noise, rates and priors.

    It listens on 127.0.0.1 and sends nothing. Ctrl-C ends it, with exit code 0.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise InputError(f"--port {port} cannot be used: {error.strerror}; choose another") from None
    require("streamlit", purpose="The local page")
    page = Path(__file__).parents[1] / "app.py"
    options = {
        "server.address": HOST,
        "server.port": port,
        "server.headless": str(not browser).lower(),
        "server.showEmailPrompt": "false",
        "browser.gatherUsageStats": "false",
        "server.fileWatcherType": "none",
        "client.toolbarMode": "minimal",
        "theme.light.primaryColor": "#0b57a4",  # the report's colours: readable on either background
        "theme.dark.primaryColor": "#7fb8f5",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # its matrices are so small that threads would only wait
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", str(page), *words])  # Ctrl-C reaches it
