"""A headless Chromium, driven through its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
from rowtide_stack.programs.host import chromium

__all__ = ["Browser", "Page", "browser"]

SOON = 60.0
"""Seconds after which a test gives up waiting, on a machine that has other things to do, too."""


class CommandError(Exception):
    """A command is not carried out, such as a script whose page is left at that moment."""


class Page:
    """A tab, with what has gone wrong in it.

    Attributes:
        problems: messages of errors and warnings in the console, and exceptions.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._receiving = asyncio.create_task(self._receive())
        self.problems: list[str] = []

    async def _receive(self) -> None:
        async for message in self._socket:
            content = message.json()
            if "id" in content:
                self._answers.pop(content["id"]).set_result(content)
            elif content["method"] == "Runtime.exceptionThrown":
                self.problems.append(json.dumps(content["params"]["exceptionDetails"]))
            elif content["method"] == "Runtime.consoleAPICalled" and content["params"]["type"] in {"error", "warning"}:
                self.problems.append(json.dumps(content["params"]["args"]))
            elif content["method"] == "Log.entryAdded" and content["params"]["entry"]["level"] in {"error", "warning"}:
                self.problems.append(content["params"]["entry"]["text"])
            elif content["method"] == "Page.javascriptDialogOpening":
                self.problems.append(f"a dialog: {content['params']['message']}")

    async def send(self, method: str, **parameters: Any) -> Any:
        """Send a command, and return its result."""
        number = next(self._ids)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        content = await asyncio.wait_for(answer, SOON)
        if "error" in content:
            raise CommandError(f"{method}: {content['error']['message']}")
        return content["result"]

    async def begin(self) -> None:
        """Collect problems from now on."""
        for domain in ("Page", "Runtime", "Log"):
            await self.send(f"{domain}.enable")

    async def look(self, *, width: int, height: int = 900, dark: bool = False) -> None:
        """Set the size of the window, and the colours that its user likes."""
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.send("Emulation.setEmulatedMedia", features=features)

    async def open(self, url: str) -> None:
        """Go to an address."""
        await self.send("Page.navigate", url=url)
        await self.until("document.readyState === 'complete' && document.body")

    async def run(self, script: str) -> Any:
        """Evaluate JavaScript, and return the value, for which it waits."""
        found = await self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression is true."""
        end = asyncio.get_running_loop().time() + SOON
        while not await self._is_true(f"document.body !== null && Boolean({script})"):
            assert asyncio.get_running_loop().time() < end, f"waited in vain: {script}\n{await self.text()}"
            await asyncio.sleep(0.05)

    async def _is_true(self, script: str) -> bool:
        try:
            found: bool = await self.run(script)
        except CommandError:
            return False
        return found

    async def text(self) -> str:
        """The text that is shown."""
        found: str = await self.run("document.body.innerText")
        return found

    async def shows(self, text: str) -> None:
        """Wait until a text is shown."""
        await self.until(f"document.body.innerText.includes({json.dumps(text)})")

    async def click(self, text: str) -> None:
        """Click on the only visible link or button with a text."""
        find = (
            "[...document.querySelectorAll('dialog[open]')].concat(document.body)[0]"
            ".querySelectorAll('a, button, summary')"
        )
        wanted = f"[...{find}].filter((one) => one.innerText.trim() === {json.dumps(text)} && one.checkVisibility())"
        await self.until(f"{wanted}.length === 1")
        with contextlib.suppress(CommandError):  # the click has left the page
            await self.run(f"{wanted}[0].click()")

    async def fill(self, selector: str, value: str) -> None:
        """Set the value of a field as if it was typed."""
        field = f"document.querySelector({json.dumps(selector)})"
        await self.until(field)
        await self.run(
            f"{field}.value = {json.dumps(value)};"
            f"for (const kind of ['input', 'change']) {field}.dispatchEvent(new Event(kind, {{bubbles: true}}))"
        )

    async def press(self, key: str) -> None:
        """Press and release a key."""
        text = {"Enter": "\r"}.get(key, "")
        codes = {"Tab": 9, "Enter": 13, "Escape": 27}
        for kind in ("keyDown", "keyUp"):
            await self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes.get(key, 0),
                **({"text": text} if text and kind == "keyDown" else {}),
            )

    async def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Store what is shown as a PNG file."""
        taken = await self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    async def close(self) -> None:
        """Stop listening."""
        self._receiving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._receiving


class Browser:
    """A running Chromium."""

    def __init__(self, client: aiohttp.ClientSession, address: str) -> None:
        self._client, self._address = client, address

    @contextlib.asynccontextmanager
    async def page(self) -> AsyncIterator[Page]:
        """Open a tab, with nothing of the tabs before it."""
        async with self._client.put(f"{self._address}/json/new?about:blank") as answer:
            found = await answer.json(content_type=None)
        async with self._client.ws_connect(found["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            page = Page(socket)
            await page.begin()
            try:
                yield page
            finally:
                await page.close()
        async with self._client.get(f"{self._address}/json/close/{found['id']}"):
            pass


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Run a browser with its own profile."""
    with tempfile.TemporaryDirectory(prefix="rowtide-browser-", ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            chromium(),
            "--headless=new",
            "--no-sandbox",  # root has none
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--hide-scrollbars",
            "--remote-debugging-port=0",
            f"--user-data-dir={folder}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "HOME": folder},
            start_new_session=True,
        )
        try:
            port = await _port(Path(folder) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as client:
                yield Browser(client, f"http://127.0.0.1:{port}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            await process.wait()


async def _port(file: Path) -> int:
    end = asyncio.get_running_loop().time() + SOON
    while not (file.exists() and file.read_text().count("\n")):
        assert asyncio.get_running_loop().time() < end, "the browser does not start"
        await asyncio.sleep(0.02)
    return int(file.read_text().split("\n")[0])
