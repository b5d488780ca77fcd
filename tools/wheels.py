"""The Python package of a release: the source distribution, and wheels for every processor.

setuptools makes the source distribution, and from it a wheel without the C extension, for any
system. The other wheels are this one and the extension, compiled for each processor by a
cross-compiler. The extension is linked against no library at all: whatever loads it, has Python
and a C library in memory. So one file serves old and new glibc as well as musl, and every Python
from 3.10 on.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import build
from archives import DistError, Source, write_tar, write_zip

EXTENSION = "twinedge/runtime/_native.abi3.so"
PYTHON = "cp310-abi3"


class Processor(NamedTuple):
    """A kind of processor, and which systems on it a wheel is for."""

    tools: str  # what the names of its compiler and its relatives begin with
    flags: tuple[str, ...]  # for the oldest that the tags below promise
    systems: tuple[str, ...]


# manylinux_2_17 is the oldest that every pip for Python 3.10 knows for each of these processors.
# On 32-bit Raspberry Pi OS pip takes armv7l, also where its kernel has 64 bits.
PROCESSORS = {
    "x86_64": Processor(
        "x86_64-linux-gnu-",
        ("-march=x86-64", "-fcf-protection=none"),
        ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "musllinux_1_1_x86_64"),
    ),
    "aarch64": Processor(
        "aarch64-linux-gnu-",
        ("-march=armv8-a", "-mno-outline-atomics"),
        ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "musllinux_1_1_aarch64"),
    ),
    "armv7l": Processor(
        "arm-linux-gnueabihf-",
        ("-march=armv7-a+fp", "-mthumb", "-mfloat-abi=hard"),
        ("manylinux2014_armv7l", "manylinux_2_17_armv7l"),
    ),
}

# Some distributions let their compilers protect the stack and check calls unless they are asked not
# to: with functions of one C library.
FLAGS = ("-fPIC", "-fwrapv", "-DNDEBUG", "-fno-stack-protector", "-U_FORTIFY_SOURCE")
LINKING = (
    *("-shared", "-nostdlib", "-Wl,-s", "-Wl,--build-id=none", "-Wl,--hash-style=gnu"),
    *("-Wl,-z,noexecstack", "-Wl,-z,relro"),
)

# All that the extension may ask of a C library: functions that glibc and musl have had from the
# beginning, with the same meaning. raise: of GCC's 64-bit division, on 32-bit Arm.
BORROWED = {"getauxval", "memcmp", "memcpy", "memmove", "memset", "raise", "strcmp", "strlen"}

# What Python's headers want to know of the machine, asked of its compiler. Their own file of this
# name describes the machine that Python was compiled on.
PYCONFIG = "".join(
    f"#define SIZEOF_{name} __SIZEOF_{size}__\n"
    for name, size in {
        "VOID_P": "POINTER",
        "SIZE_T": "SIZE_T",
        "INT": "INT",
        "LONG": "LONG",
        "LONG_LONG": "LONG_LONG",
        "SHORT": "SHORT",
        "WCHAR_T": "WCHAR_T",
        "DOUBLE": "DOUBLE",
        "FLOAT": "FLOAT",
    }.items()
)

# Environment variables that would change the compiler's output.
COMPILER = ("CFLAGS", "CPPFLAGS", "LDFLAGS", "ARCHFLAGS", "PYTHONPATH")
CLEAN = ("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", *COMPILER)

DESCRIBE = """
import json, setuptools
from distutils.core import run_setup
(native,) = run_setup("setup.py", stop_after="init").ext_modules
print(json.dumps([native.sources, native.include_dirs, native.define_macros,
                  native.extra_compile_args]))
"""


def python_packages(source: Source, folder: Path) -> list[Path]:
    """Write the source distribution, and all wheels."""
    for name, processor in PROCESSORS.items():
        if not shutil.which(f"{processor.tools}gcc"):
            raise DistError(f"there is no {processor.tools}gcc, which the wheel for {name} needs")
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(_builder(source.tree, source).build("sdist", scratch))
        with tarfile.open(made) as tar:
            members = sorted((one for one in tar if one.isfile()), key=lambda one: one.name)
            files = {one.name: tar.extractfile(one).read() for one in members}
        sdist = write_tar(folder / made.name, files, source.epoch)
        for name, content in files.items():
            path = Path(scratch, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        tree = Path(scratch, made.name.removesuffix(".tar.gz"))
        made = Path(_builder(tree, source, TWINEDGE_PURE="1").build("wheel", scratch))
        with zipfile.ZipFile(made) as archive:
            pure = {name: archive.read(name) for name in archive.namelist()}
        wheels = [_write_wheel(folder / made.name, pure, source.epoch)]
        for name, processor in PROCESSORS.items():
            extension = compiled(tree, name, Path(scratch, name))
            path = folder / made.name.replace(
                "py3-none-any", f"{PYTHON}-{'.'.join(processor.systems)}"
            )
            files = _with_extension(pure, extension, processor)
            wheels.append(_write_wheel(path, files, source.epoch))
    return [sdist, *wheels]


def compiled(tree: Path, name: str, work: Path) -> bytes:
    """Compile the extension of a source tree for a processor, in a new folder."""
    tools, own, _ = PROCESSORS[name]
    described = _call(sys.executable, "-c", DESCRIBE, cwd=tree)
    sources, folders, macros, flags = json.loads(described)
    # Relative paths, so that neither the compiler nor its cache sees where the tree is.
    headers = work / "python"
    shutil.copytree(sysconfig.get_path("include"), headers)
    (headers / "pyconfig.h").write_text(PYCONFIG)
    inside = f"{os.path.relpath(work, tree)}/"
    options = [
        *own,
        *flags,
        *FLAGS,
        *(f"-D{macro}={value}" for macro, value in macros),
        *(f"-I{folder}" for folder in (*folders, f"{inside}python")),
    ]
    objects = []
    for number, path in enumerate(sources):
        objects.append(f"{inside}{number}.o")
        _call(f"{tools}gcc", *options, "-c", path, "-o", objects[-1], cwd=tree)
    extension = work / Path(EXTENSION).name
    _call(f"{tools}gcc", *own, *LINKING, "-o", extension, *objects, "-lgcc", cwd=tree)
    check_needs(extension, tools)
    return extension.read_bytes()


def check_needs(extension: Path, tools: str) -> None:
    """Refuse an extension that needs a library, or more of one than every system has."""
    dynamic = _call(f"{tools}readelf", "-d", extension)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    symbols = _call(f"{tools}nm", "-D", "--undefined-only", extension).split()[1::2]
    unknown = [one for one in symbols if not one.startswith(("Py", "_Py")) and one not in BORROWED]
    if needed or unknown:
        more = f"{tools}gcc makes an extension that needs"
        raise DistError(f"{more} {', '.join([*needed, *unknown])}: no wheel for all of Linux")


def _with_extension(
    pure: Mapping[str, bytes], extension: bytes, processor: Processor
) -> dict[str, bytes]:
    """Return the files of a wheel for a processor."""
    files = {**pure, EXTENSION: extension}
    (about,) = (name for name in files if name.endswith(".dist-info/WHEEL"))
    text = files[about].decode().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
    tags = "".join(f"Tag: {PYTHON}-{system}\n" for system in processor.systems)
    files[about] = re.sub(r"^Tag: .*\n", tags, text, flags=re.M).encode()
    return files


def _write_wheel(path: Path, files: Mapping[str, bytes], epoch: int) -> Path:
    """Write a wheel: its metadata comes last, with a new RECORD of all files at the very end."""
    names = sorted(files, key=lambda name: (".dist-info/" in name, name))
    (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
    names.remove(record)
    lines = []
    for name in names:
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).decode().rstrip("=")
        lines.append(f"{name},sha256={digest},{len(files[name])}\n")
    listed = "".join([*lines, f"{record},,\n"]).encode()
    return write_zip(path, {name: files[name] for name in names} | {record: listed}, epoch)


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in CLEAN}
    return kept | {"LC_ALL": "C", "PYTHONHASHSEED": "0"} | more


def _call(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a compiler or its relatives; return what it prints."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=cwd, env=_environment(), capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise DistError(f"there is no {words[0]}") from None
    except subprocess.CalledProcessError as error:
        sys.stderr.write(error.stderr)
        raise DistError(f"{Path(words[0]).name} fails: see above") from None
    return done.stdout


def _builder(tree: Path, source: Source, **more: str) -> build.ProjectBuilder:
    """Return a builder that uses the setuptools installed here, which constraints.txt pins."""
    environment = _environment(SOURCE_DATE_EPOCH=str(source.epoch), **more)

    def run(
        command: Sequence[str],
        cwd: str | None = None,
        extra_environ: Mapping[str, str] | None = None,
    ) -> None:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment | dict(extra_environ or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            sys.stderr.write(done.stdout)
            raise subprocess.CalledProcessError(done.returncode, command)

    return build.ProjectBuilder(tree, runner=run)
