"""Debian's Chromium, driven by Playwright, which then has no browser to download."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import BrowserContext, Page, sync_playwright

_PATIENCE = 60_000  # milliseconds for one step on a busy machine
_DRAWN = """() => new Promise((done) => {
  const predictor = document.getElementById("predictor");
  const look = () => { if (!predictor || predictor.dataset.drawn) done(); };
  if (predictor) new MutationObserver(look).observe(predictor, { attributes: true });
  look();
  setTimeout(() => done("the page does not come to rest"), PATIENCE);
})""".replace("PATIENCE", str(_PATIENCE))


@contextmanager
def chromium() -> Iterator[Callable[..., Page]]:
    """Start a headless Chromium; yields what makes empty pages in it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "Chromium is missing: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            chromium_sandbox=os.getuid() != 0,  # which Chromium refuses to root
            args=["--disable-gpu"],
            timeout=_PATIENCE,
        )
        # Pages of one kind share a context: the first page of each is slow to come.
        contexts: dict[tuple[bool, bool], BrowserContext] = {}

        def blank(*, width: int = 1280, dark: bool = False, script: bool = True) -> Page:
            """Return an empty page, so many CSS pixels wide; a narrow one is on a telephone.

            The person before it may prefer dark pages, or forbid scripts.
            """
            mobile = width < 600
            if (mobile, script) not in contexts:
                contexts[mobile, script] = browser.new_context(
                    is_mobile=mobile, java_script_enabled=script
                )
            page = contexts[mobile, script].new_page()
            page.set_default_timeout(_PATIENCE)
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme="dark" if dark else "light")
            return page

        try:
            yield blank
        finally:
            browser.close()


def wait_until_drawn(page: Page) -> None:
    """Wait until what there is to try has been drawn, where there is something."""
    fault = page.evaluate(_DRAWN)
    assert fault is None, fault
