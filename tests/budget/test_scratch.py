"""The scratch that is predicted is the scratch that the C runtime asks for."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from twinedge.budget.measurements import Scratch
from twinedge.budget.model import from_pack
from twinedge.pack import write_pack

FIRMWARE = Path(__file__).parents[2] / "firmware_ref"
PROGRAM = """
#include "twin_kernel.h"
#include <stdio.h>

int main(int argc, char **argv) {
    static uint32_t pack[1 << 20];
    twin_kernel kernel;
    twin_model model;
    int i;
    for (i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        unsigned long size;
        if (!file)
            return 1;
        size = (unsigned long)fread(pack, 1, sizeof pack, file);
        fclose(file);
        if (twin_open(&model, pack, (uint32_t)size))
            return 2;
        kernel = *model.kernel;
        kernel.lines = i % 2 && TWIN_WITH_LINES; /* where they are compiled */
        kernel.work_bytes = i % 3 * 512;
        model.kernel = &kernel;
        printf("%d %d %d %d %d %d %u %lu\\n", kernel.align, kernel.unit, kernel.partial_bytes,
               kernel.block_bytes, kernel.room_bytes, kernel.lines, kernel.work_bytes,
               (unsigned long)twin_scratch_size(&model));
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None and not os.environ.get("CI"):
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("scratch")
    (folder / "main.c").write_text(PROGRAM)
    core = [*FIRMWARE.glob("src/*.c"), FIRMWARE / "src" / "kernels" / "kernel_portable.c"]
    flags = ["-std=c99", "-O1", "-I", str(FIRMWARE / "include"), "-I", str(FIRMWARE / "src")]
    flags += ["-DTWIN_KERNEL=(&twini_kernel_portable)", "-DTWIN_HOST=1"]
    command = [compiler, *flags, "-o", "scratch", "main.c", *sorted(map(str, core))]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "scratch"


def test_scratch_is_what_the_runtime_says(program, packs, tmp_path):
    models = []
    for seed in range(60):
        path = tmp_path / f"{seed}.twin"
        path.write_bytes(write_pack(packs.random_pack(np.random.default_rng(seed))))
        models.append(from_pack(path)[0])
    assert {bool(model.neighbors) for model in models} == {False, True}
    assert {len(model.hidden) for model in models} == {1, 2, 3}
    assert {model.activation for model in models} == {"relu", "silu"}
    names = [str(tmp_path / f"{seed}.twin") for seed in range(60)]
    done = subprocess.run([program, *names], capture_output=True, text=True, check=True)
    for line, model in zip(done.stdout.splitlines(), models, strict=True):
        *kernel, size = map(int, line.split())
        assert Scratch(*kernel).bytes(model) == size
