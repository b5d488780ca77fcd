"""The bits do not depend on the machine: programs for other machines, run by qemu-user."""

import platform

import pytest

# Machine: its cross-compiler, emulator and libraries in Debian; processors to run as.
MACHINES = {
    "x86_64": ("x86_64-linux-gnu", "qemu-x86_64"),
    "aarch64": ("aarch64-linux-gnu", "qemu-aarch64"),
    "armv7l": ("arm-linux-gnueabihf", "qemu-arm"),
}
FOREIGN = [machine for machine in MACHINES if machine != platform.machine()]


@pytest.mark.parametrize("machine", FOREIGN)
def test_other_machines(replay, machine):
    triplet, emulator = MACHINES[machine]
    program = replay.build("-O2", compiler=f"{triplet}-gcc")
    wrong, total = replay.mismatches(program, emulator, "-L", f"/usr/{triplet}")
    assert wrong == 0
    assert total > 100_000
