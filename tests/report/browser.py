"""Debian's Chromium, driven by Playwright, which then has no browser to download."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

_PATIENCE = 60_000  # milliseconds for one answer of a busy machine


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a headless Chromium, and end it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "Chromium is missing: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            chromium_sandbox=os.getuid() != 0,  # which Chromium refuses to root
            timeout=_PATIENCE,
        )
        try:
            yield browser
        finally:
            browser.close()


def screen(
    browser: Browser, *, width: int = 1280, dark: bool = False, script: bool = True
) -> BrowserContext:
    """Return a context for a screen so many CSS pixels wide; a narrow one is a telephone's.

    The person before it may prefer dark pages, or forbid scripts.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        is_mobile=width < 600,
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
    )
    context.set_default_timeout(_PATIENCE)
    return context


def settle(page: Page) -> None:
    """Wait until what there is to try has been drawn, where there is something."""
    if page.locator("#trial").count():
        page.locator("#trial[data-drawn]").wait_for(state="attached")
