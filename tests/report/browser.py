"""Drives a headless Chromium through a pipe: no port, no driver, no library."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
_PATIENCE = 60  # seconds for one answer of a busy machine


class Browser:
    """One Chromium; commands go in at its file 3, answers come out at its file 4."""

    def __init__(self) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        assert program, "Chromium is missing: apt-get install chromium"
        self._home = mkdtemp(prefix="chromium-")
        ends = [os.pipe(), os.pipe()]
        # Out of the way of 3 and 4, which they will be in the browser.
        (inside, self._to), (self._from, outside) = (
            [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in pair] for pair in ends
        )
        for end in (end for pair in ends for end in pair):
            os.close(end)
        quiet = os.open(os.devnull, os.O_RDWR)
        sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
        self._process = os.posix_spawn(
            program,
            [program, *FLAGS, *sandbox, f"--user-data-dir={self._home}", "about:blank"],
            os.environ,
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, quiet, stream) for stream in (0, 1, 2)),
                (os.POSIX_SPAWN_DUP2, inside, 3),
                (os.POSIX_SPAWN_DUP2, outside, 4),
            ],
        )
        for end in (quiet, inside, outside):
            os.close(end)
        self._unread = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events on the way are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def receive(self) -> dict[str, Any]:
        """Wait for the next message of the browser."""
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], _PATIENCE)
            assert ready, "Chromium does not answer"
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "Chromium has gone"
            self._unread += chunk
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, **options: Any) -> "Page":
        """Open a file in a page of its own."""
        return Page(self, path, **options)

    def close(self) -> None:
        """End it, and take away what it left."""
        try:
            self.ask("Browser.close")
        finally:
            for end in (self._to, self._from):
                os.close(end)
            deadline = time.monotonic() + 10
            while os.waitpid(self._process, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    os.kill(self._process, signal.SIGKILL)
                time.sleep(0.05)
            shutil.rmtree(self._home, ignore_errors=True)


class Page:
    """One page with everything it complained about and asked the network for.

    Parameters
    ----------
    browser : Browser
        Where.
    path : path
        The file.
    width, height : int
        Of the window, in CSS pixels.
    dark, script, mobile : bool
        Whether the person prefers dark pages, allows scripts, holds a telephone.
    """

    def __init__(
        self,
        browser: Browser,
        path: Path,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        script: bool = True,
    ) -> None:
        self._browser = browser
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self._target = target
        attached = browser.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        if not script:
            self.ask("Emulation.setScriptExecutionDisabled", value=True)
        self.ask("Page.navigate", url=path.resolve().as_uri())
        self._wait_for("Page.loadEventFired")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command to this page."""
        return self._browser.ask(method, self._session, **params)

    def run(self, expression: str) -> Any:
        """Evaluate JavaScript; returns what it gives, as JSON has it."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def settle(self) -> None:
        """Wait until what there is to try has been drawn, where there is something."""
        for _ in range(600):
            if self.run(
                "(document.getElementById('trial') || {dataset: {drawn: 1}}).dataset.drawn"
            ):
                return
            time.sleep(0.05)
        raise AssertionError("the page does not come to rest")

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self) -> bytes:
        """Print the page."""
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=False)["data"])

    def key(self, name: str, code: int) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code)

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings that a person would see in the console."""
        found = []
        for event in self._events:
            method, params = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found

    @property
    def requests(self) -> list[str]:
        """Addresses that were asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self._events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        """Close the page."""
        self._browser.ask("Target.closeTarget", targetId=self._target)

    @property
    def _events(self) -> list[dict[str, Any]]:
        return [one for one in self._browser.events if one.get("sessionId") == self._session]

    def _wait_for(self, method: str) -> None:
        while not any(event["method"] == method for event in self._events):
            self._browser.events.append(self._browser.receive())
