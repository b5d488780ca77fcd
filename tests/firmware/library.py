"""The C runtime as a shared library, driven by ctypes."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np

from twinedge.pack import Reason

FIRMWARE = Path(__file__).parents[2] / "firmware_ref"
SOURCES = sorted((FIRMWARE / "src").rglob("*.c"))
HEADERS = sorted([*(FIRMWARE / "include").glob("*.h"), *(FIRMWARE / "src").rglob("*.h")])
# Files of the runtime without the kernels of particular machines.
PORTABLE = [path for path in SOURCES if path.parent.name == "src" or path.stem == "kernel_portable"]
INCLUDES = [f"-I{FIRMWARE / 'include'}", f"-I{FIRMWARE / 'src'}"]
SANITIZED = ("-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror"]


class HostKernel(NamedTuple):
    """A kernel of hosts, as tests know it."""

    machines: tuple[str, ...]
    feature: str  # of its processors in /proc/cpuinfo
    wide: bool = True  # also for 16-bit weights
    relu: bool = True


# As in src/kernels/choose_host.c, fastest first.
HOST_KERNELS = {
    "neon_i8mm": HostKernel(("aarch64",), "i8mm", wide=False, relu=False),
    "neon_dot": HostKernel(("aarch64",), "asimddp", wide=False),
    "neon": HostKernel(("aarch64", "arm"), "asimd"),
    "amx": HostKernel(("x86_64",), "amx_int8", wide=False),
    "vnni": HostKernel(("x86_64",), "avx512_vnni"),
    "avx_vnni": HostKernel(("x86_64",), "avx_vnni"),
    "avx2": HostKernel(("x86_64",), "avx2"),
}

MISTAKES = (
    *("alignment", "unsupported", "scratch", "query", "model", "early", "level"),
    *("target", "store", "other", "full", "storage"),
    *("unsigned", "signature", "identity", "untested", "self_test", "schema", "counter", "trial"),
    "targets",
)
STATUSES = ("ok", *(reason.value for reason in Reason), *MISTAKES)  # number n stands for status -n
MOST_TARGETS = 8
MORE = 1  # the one that is positive

# Options for the kernels of x86-64 with a function for each instruction, on any machine.
EMULATED_X86 = (
    *("-DSIMDE_ENABLE_NATIVE_ALIASES", "-DSIMDE_NO_NATIVE", "-DTWIN_HOST_EMULATED", "-w"),
    f"-isystem{Path(__file__).parent / 'emulated_x86'}",
)

# Options for a library that checks its memory or counts its branches: test_sanitizers.py and
# firmware_ref/test/coverage.py run these tests again with them.
EXTRA_OPTIONS = os.environ.get("TWIN_TEST_OPTIONS", "").split()
CANARY = 0 if EXTRA_OPTIONS else 16  # a sanitizer sees more if memory ends with the scratch
# Options of most libraries and programs here, so that ccache compiles them once for all tests.
USUAL = ("-O1", "-fPIC", "-ffunction-sections", "-fno-stack-protector")
SHARED = (*USUAL, *EXTRA_OPTIONS)


def attempt(*command, **options):
    """Run a tool that must exist; return how it ended."""
    assert shutil.which(command[0]), f"{command[0]} is not installed"
    # A sanitizer loaded into Python would also check compilers, which takes minutes.
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    env.setdefault("ASAN_OPTIONS", "detect_leaks=0")  # takes seconds, and nothing here allocates
    words = [str(part) for part in command]
    return subprocess.run(
        words, capture_output=True, text=True, check=False, **{"env": env, **options}
    )


def run(*command, **options):
    """Run a tool that must exist and succeed; return its output."""
    done = attempt(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def name_of(status):
    """Name of a ``twin_status``."""
    return "more" if status == MORE else STATUSES[-status]


def compile_c(output, *options, compiler="gcc", sources=SOURCES):
    """Compile the runtime, with warnings as errors.

    File by file, because ccache, which `make test` puts in front of compilers, knows only files.
    """
    if not {"-c", "-fsyntax-only"} & {*options}:
        wanted = [option for option in options if option != "-shared"]
        sources = [
            compile_c(made, *wanted, "-c", compiler=compiler, sources=[path])
            if path.suffix == ".c"
            else path
            for path in sources
            for made in [output.with_name(f"{output.name}-{path.stem}.o")]
        ]
    run(compiler, "-std=c99", *WARNINGS, *INCLUDES, *options, *sources, "-o", output)
    return output


class Model(ctypes.Structure):
    """``twin_model`` of twin.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("kernel", "scaling", "twins", "curve")),
        *((name, ctypes.c_void_p) for name in ("counts", "anchors", "values")),
        ("twin_size", ctypes.c_uint32),
        ("anchor_size", ctypes.c_uint16),
        ("features", ctypes.c_uint16),
        ("hidden", ctypes.c_uint16 * 3),
        *((name, ctypes.c_uint16) for name in ("twin_count", "anchor_count", "neighbors")),
        ("members", ctypes.c_uint16),
        *((name, ctypes.c_uint8) for name in ("layers", "silu", "wide", "flags", "targets")),
        ("inputs", ctypes.c_uint16),
        *((name, ctypes.c_void_p) for name in ("intervals", "domain")),
        ("quantile", ctypes.c_uint32),
        *((name, ctypes.c_void_p) for name in ("map", "knots", "table", "target_curve")),
        *((name, ctypes.c_void_p) for name in ("units", "curves")),
        ("quantiles", ctypes.c_uint32 * (MOST_TARGETS - 1)),
        ("apart", ctypes.c_uint16),
        ("first", ctypes.c_uint8),
        ("all", ctypes.c_uint8),
    )


class Prediction(ctypes.Structure):
    """``twin_prediction``."""

    _fields_ = (
        *((name, ctypes.c_float) for name in ("mean", "spread", "scale", "low", "high")),
        *((name, ctypes.c_uint32) for name in ("outside", "missing")),
        ("points", ctypes.c_uint16),
        ("intervals", ctypes.c_uint8),
    )


class Raw(ctypes.Structure):
    """``twin_raw``."""

    _fields_ = (
        ("mean", ctypes.c_int32),
        ("root", ctypes.c_uint32),
        ("scale", ctypes.c_uint32),
        *((name, ctypes.c_int32) for name in ("low", "high")),
        *((name, ctypes.c_uint32) for name in ("outside", "missing")),
        ("points", ctypes.c_uint16),
        ("intervals", ctypes.c_uint8),
        ("count", ctypes.c_uint16),
    )


class Run(ctypes.Structure):
    """``twin_run``, with room to spare; filled with garbage, as on a stack."""

    _fields_ = (("inside", ctypes.c_uint64 * 80),)

    def __init__(self):
        super().__init__()
        ctypes.memset(ctypes.byref(self), 0xA5, ctypes.sizeof(self))


class Opening(Run):
    """``twin_opening``, likewise."""


def address(array):
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


def configured(path):
    """Names of functions with version and settings, by the name a program uses."""
    exported = run("nm", "--dynamic", "--defined-only", "--format=posix", path)
    names = [line.split()[0] for line in exported.splitlines()]
    return {name.partition("_v")[0]: name for name in names if "_v" in name}


def load(path, *more):
    """Load the library and declare its functions, and more of them."""
    library = ctypes.CDLL(str(path))
    for called, name in configured(path).items():
        setattr(library, called, getattr(library, name))
    model, pointer, size = ctypes.POINTER(Model), ctypes.c_void_p, ctypes.c_uint32
    signatures = {
        "twin_open": (ctypes.c_int, model, pointer, size),
        "twin_open_begin": (ctypes.c_int, pointer, model, pointer, size),
        "twin_open_step": (ctypes.c_int, pointer, size),
        "twin_set_neighbors": (None, model, ctypes.c_uint16),
        "twin_set_coverage": (ctypes.c_int, model, ctypes.c_uint16),
        "twin_scratch_size": (size, model),
        "twin_predict": (ctypes.c_int, model, pointer, size, pointer, pointer, pointer),
        "twin_predict_raw": (ctypes.c_int, model, pointer, size, pointer, pointer, pointer),
        "twin_begin": (ctypes.c_int, pointer, model, pointer, size, pointer, pointer),
        "twin_begin_raw": (ctypes.c_int, pointer, model, pointer, size, pointer, pointer),
        "twin_step": (ctypes.c_uint16, pointer, ctypes.c_uint16),
        "twin_read": (ctypes.c_int, pointer, pointer),
        "twin_read_raw": (ctypes.c_int, pointer, pointer),
        "twin_kernel_name": (ctypes.c_char_p, model, ctypes.c_uint),
        "twin_set_kernel": (ctypes.c_int, model, ctypes.c_uint),
        "twin_prepared_size": (size, model),
        "twin_prepare": (ctypes.c_int, model, pointer, size),
        "twin_target": (ctypes.c_float, model, ctypes.c_int32),
        "twin_target_raw": (ctypes.c_int32, model, ctypes.c_int32),
        "twin_estimate_raw": (ctypes.c_int32, model, ctypes.c_int32),
        "twin_text": (ctypes.c_char_p, ctypes.c_int),
    }
    for table in (signatures, *more):
        declare(library, table)
    return library


def declare(library, signatures):
    """Declare what functions return and take, by name, as far as twin_config.h left them in."""
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name, None)
        if function is not None:
            function.restype, function.argtypes = result, arguments


class Native:
    """A pack, opened by the C runtime, in one go or in steps.

    Its memory begins ``start`` bytes after a multiple of 16 and ends where the pack does.
    """

    def __init__(self, library, data, start=0, step=None):
        self.library = library
        self.pack = np.frombuffer(bytes(start) + bytes(data), np.uint8).copy()
        assert self.pack.ctypes.data % 16 == 0
        self.model = Model()
        place = ctypes.c_void_p(self.pack.ctypes.data + start)
        if step is None:
            status = library.twin_open(self.model, place, len(data))
        else:
            opening = ctypes.byref(Opening())
            status = library.twin_open_begin(opening, self.model, place, len(data))
            while status == MORE:
                assert library.twin_scratch_size(self.model) == 0  # not open yet
                status = library.twin_open_step(opening, step)
        self.status = name_of(status)
        if self.status == "ok":
            self.fit_scratch()

    def kernels(self):
        """Names of the kernels that this processor has for the pack."""
        names = []
        while name := self.library.twin_kernel_name(self.model, len(names)):
            names.append(name.decode())
        return names

    def set_kernel(self, name):
        """Let this kernel evaluate."""
        assert self.library.twin_set_kernel(self.model, self.kernels().index(name)) == 0
        self.fit_scratch()

    def prepare(self):
        """Prepare the model, in memory at an odd address, followed by a canary; return its size."""
        size = self.library.twin_prepared_size(self.model)
        if size:
            self.memory = np.full(3 + size + CANARY, 0xA5, np.uint8)
            place = ctypes.c_void_p(self.memory.ctypes.data + 3)
            assert self.library.twin_prepare(self.model, place, size) == 0
            assert (self.memory[3 + size :] == 0xA5).all()
            self.fit_scratch()
        return size

    def fit_scratch(self):
        """Allocate the scratch that the library needs, at an odd address, then a canary."""
        self.size = self.library.twin_scratch_size(self.model)
        self._block = np.full(3 + self.size + CANARY, 0xA5, np.uint8)
        self.scratch = self._block[3:]

    def set_neighbors(self, count):
        self.library.twin_set_neighbors(self.model, count)
        self.fit_scratch()

    def set_coverage(self, thousandths):
        return name_of(self.library.twin_set_coverage(self.model, thousandths))

    def call(self, name, queries, out):
        """Call a function that predicts on each query ``(n, f)``; returns fields, and estimates."""
        function = getattr(self.library, name)
        estimates = np.zeros((len(queries), self.model.members), np.int32)
        found = []
        for query, own in zip(queries, estimates, strict=True):
            status = function(
                self.model,
                address(self.scratch),
                self.size,
                address(query),
                ctypes.byref(out),
                address(own),
            )
            assert status == 0, name_of(status)
            found.append([getattr(out, field) for field, _ in out._fields_])
        assert (self.scratch[self.size :] == 0xA5).all()
        columns = zip(*found, strict=True)
        types = dict(out._fields_)
        fields = {
            name: np.array(column, types[name]) for name, column in zip(types, columns, strict=True)
        }
        return {**fields, "estimates": estimates}

    def predict_all(self, x):
        """Return all of ``twin_prediction``, and estimates, of queries ``(n, f)``, float32."""
        return self.call("twin_predict", x, Prediction())

    def predict(self, x):
        """Return float mean and spread, and estimates, of queries ``(n, f)``, float32."""
        found = self.predict_all(x)
        return found["mean"], found["spread"], found["estimates"]

    def predict_raw_all(self, q):
        """Return all fields of ``twin_raw``, and estimates, of quantised queries ``(n, f)``."""
        return self.call("twin_predict_raw", np.ascontiguousarray(q, np.int16), Raw())

    def predict_raw(self, q):
        """Return integer mean, root and count, and estimates, of quantised queries ``(n, f)``."""
        found = self.predict_raw_all(q)
        return found["mean"], found["root"], found["count"], found["estimates"]

    def begin(self, function, query, estimates=None, size=None):
        """Begin a prediction; returns the status and the run."""
        run = Run()
        size = self.size if size is None else size
        arguments = address(self.scratch), size, address(query), address(estimates)
        status = getattr(self.library, function)(ctypes.byref(run), self.model, *arguments)
        return name_of(status), run

    def step(self, run, anchors):
        return self.library.twin_step(ctypes.byref(run), anchors)

    def steps(self, function, query, sizes, estimates=None):
        """Predict in steps; yield what is left and the run, before the first and after each."""
        status, run = self.begin(function, query, estimates)
        assert status == "ok"
        yield self.model.members, run
        for size in sizes:
            yield self.step(run, size), run

    def read(self, run):
        """Status, mean and spread."""
        out = Prediction(1.5, 2.5)
        status = self.library.twin_read(ctypes.byref(run), ctypes.byref(out))
        return name_of(status), np.float32(out.mean), np.float32(out.spread)

    def read_raw_all(self, run):
        """All fields of ``twin_raw``."""
        out = Raw()
        self.library.twin_read_raw(ctypes.byref(run), ctypes.byref(out))
        return {field: getattr(out, field) for field, _ in out._fields_}

    def read_raw(self, run):
        """Status, mean, root and count."""
        out = Raw(1, 2, count=3)
        status = self.library.twin_read_raw(ctypes.byref(run), ctypes.byref(out))
        return name_of(status), out.mean, out.root, out.count
