"""A report on a tiny run, with made-up measurements of boards, and a browser to read it."""

import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def firmware_file(tmp_path_factory):
    """Measurements of made-up cores: Uno and ESP8266 are among them, the Pico 2 is not.

    Some have all builds, some only those without neighbors, and one only int8 with intervals.
    """
    from twinedge.budget import write_firmware

    core = runpy.run_path(str(HERE.parent / "budget" / "conftest.py"))["CORE"]
    near = [
        {
            **one,
            "neighbors": True,
            "references": [],
            "scratch": {**one["scratch"], "block_bytes": 6, "room_bytes": 3, "lines": 1},
        }
        for one in core["builds"]
    ]
    both = {**core, "builds": core["builds"] + near}
    path = tmp_path_factory.mktemp("firmware") / "firmware.json"
    few = [one for one in core["builds"] if one["intervals"] and one["weights"] == "int8"]
    cores = {"avr5": core, "cortex-m4": both, "aarch64": core, "xtensa-lx106": both}
    cores["cortex-m0"] = {**core, "builds": few}
    write_firmware(cores, path)
    return path


@pytest.fixture(scope="session")
def boards():
    from twinedge.budget import all_boards

    return list(all_boards().values())


@pytest.fixture(scope="session")
def firmware(firmware_file):
    from twinedge.budget import read_firmware

    return read_firmware(firmware_file)


@pytest.fixture(scope="session")
def look(boards, firmware):
    """Measure a run, by default without training."""
    from twinedge_export.report.of_run import find

    def call(run, **options):
        return find(run, "runs/tiny", boards, firmware, **{"quick": True, "anchors": 8, **options})

    return call


@pytest.fixture(scope="session")
def run(tiny_run):
    from twinedge.run_folder import load_run

    return load_run(tiny_run)


@pytest.fixture(scope="session")
def found(look, run):
    """The tiny run, ordinary networks of the same bytes included."""
    return look(run, quick=False, ann_steps=60)


@pytest.fixture(scope="session")
def write(boards, firmware):
    """Put findings into words."""
    from twinedge_export.report.interactive import calculator_facts
    from twinedge_export.report.making import document

    return lambda found: document(
        found, "twinedge report runs/tiny", calculator_facts(found.model, boards, firmware)
    )


@pytest.fixture(scope="session")
def text(found, write):
    return write(found)


@pytest.fixture(scope="session")
def page_file(text, tmp_path_factory):
    """The page as a file."""
    from twinedge_export.report.making import page

    path = tmp_path_factory.mktemp("pages") / "report.html"
    path.write_text(page(text), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def driver():
    """What drives the browser, loaded where a test needs it."""
    return runpy.run_path(str(HERE / "browser.py"))


@pytest.fixture(scope="session")
def blank(driver):
    """Make empty pages of one Chromium for all tests."""
    with driver["chromium"]() as blank:
        yield blank


@pytest.fixture
def complaints():
    """Errors and warnings that a person would see in the console; clear it where some are due."""
    return []


@pytest.fixture
def requests():
    """Addresses that pages asked for."""
    return []


@pytest.fixture
def opened(driver, blank, complaints, requests):
    """Open files in pages that are closed again; drawn, and on demand unfolded.

    A page gets nothing but itself. One that asks for more, or complains, fails the test.
    """
    pages, addresses = [], []

    def hear(message):
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def call(path, *, unfolded=False, script=True, **options):
        address = path.as_uri()
        page = blank(script=script, **options)
        pages.append(page)
        addresses.append(address)
        page.on("console", hear)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.route(lambda url: url != address, lambda route: route.abort())
        page.goto(address)
        if script:
            driver["settle"](page)
        if unfolded:
            page.locator("details").evaluate_all("(all) => all.forEach((one) => one.open = true)")
        return page

    yield call
    for page in pages:
        page.close()
    assert requests == addresses
    assert complaints == []
