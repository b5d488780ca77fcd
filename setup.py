"""What pyproject.toml cannot say: the C extension, the C sources in a wheel, and addresses.

TWINEDGE_PURE=1 leaves the extension out: the wheel is for any system, and numpy evaluates there.
"""

import os
import re
import runpy
import shutil
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

FIRMWARE = "firmware_ref"
RUNTIME = sorted(path.as_posix() for path in Path(FIRMWARE, "src").rglob("*.c"))

# For speed, reproducible bits, and any processor of the architecture.
FLAGS = ["-O3", "-g0", "-ffp-contract=off", "-fvisibility=hidden"]

# One extension serves every Python from 3.10 on, but for those without a global lock.
LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")


class BuildPy(build_py):
    """Puts the C runtime, for exports, and the pages of docs into the wheel.

    A checkout has its own.
    """

    def run(self) -> None:
        """Copy packages, then the C runtime and the docs."""
        super().run()
        if self.editable_mode:
            return
        home = Path(self.build_lib, "twinedge_export", FIRMWARE)
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(
            FIRMWARE, home, ignore=shutil.ignore_patterns("build", "proof", "test", ".*")
        )
        docs = Path(self.build_lib, "twinedge", "docs")
        docs.mkdir(exist_ok=True)
        for page in Path("docs").glob("*.md"):
            shutil.copy(page, docs)


class BuildExt(build_ext):
    """Leaves out flags that a compiler does not know."""

    def build_extension(self, ext: Extension) -> None:
        """Compile with the options of this compiler."""
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = []
        super().build_extension(ext)


def description(address: str) -> str:
    """Return README.md as package indexes show it: its links and pictures are absolute."""

    def absolute(link: "re.Match[str]") -> str:
        picture, words, path = link.groups()
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({address}/{kind}/v{ABOUT['__version__']}/{path})"

    text = Path("README.md").read_text("utf-8")
    return re.sub(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)", absolute, text)


ABOUT = runpy.run_path("twinedge/version.py")
URLS = {
    "Source": ABOUT["ADDRESS"],
    "Documentation": f"{ABOUT['ADDRESS']}/blob/v{ABOUT['__version__']}/docs/index.md",
    "Changes": f"{ABOUT['ADDRESS']}/blob/v{ABOUT['__version__']}/CHANGELOG.md",
    "Issues": f"{ABOUT['ADDRESS']}/issues",
    "Paper": "https://arxiv.org/abs/2301.01383",
}

native = Extension(
    "twinedge.runtime._native",
    sources=["twinedge/runtime/_native.c", *RUNTIME],
    include_dirs=[f"{FIRMWARE}/include", f"{FIRMWARE}/src"],
    define_macros=[
        ("TWIN_HOST", "1"),
        ("TWIN_STORE", "0"),  # Python has a store of its own
        *([("Py_LIMITED_API", "0x030A0000")] if LIMITED else []),
    ],
    extra_compile_args=FLAGS,
    py_limited_api=LIMITED,
    optional=True,  # without a compiler, numpy is used
)

setup(
    long_description=description(ABOUT["ADDRESS"]),
    long_description_content_type="text/markdown",
    project_urls=URLS,
    ext_modules=[] if os.environ.get("TWINEDGE_PURE") else [native],
    cmdclass={"build_py": BuildPy, "build_ext": BuildExt},
    exclude_package_data={"twinedge.runtime": ["*.c"]},
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if LIMITED else {},
)
