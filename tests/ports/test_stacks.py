"""How much stack the kernels of hosts take, by the compiler, of functions of a known size."""

import pytest

from twinedge_export.boards import stacks

# A function with room for so many bytes, and where there is one.
FUNCTION = "int {name}(void) {{ volatile char room[{room}] = {{0}}; return room[1]; }}\n"
SOURCES = {
    "twin_edge.c": FUNCTION.format(name="twin_predict", room=1000),
    "twin_predict.c": FUNCTION.format(name="twin_step", room=2000)
    + FUNCTION.format(name="twini_evaluate", room=3000)
    + FUNCTION.format(name="twini_next_twin", room=100),
    "kernels/choose_host.c": "&twini_kernel_plain, &twini_kernel_neon_i8mm, &twini_kernel_avx,",
    "kernels/kernel_plain.c": FUNCTION.format(name="plain_v4_2_block", room=4000)
    + FUNCTION.format(name="plain_pairs", room=400),
    "kernels/kernel_avx.c": "#ifdef __x86_64__\n"
    + FUNCTION.format(name="avx_block", room=5000)
    + "#endif\n",
    "kernels/kernel_neon_i8mm.c": "#ifdef __aarch64__\n"
    + FUNCTION.format(name="i8mm_block", room=100)
    + "#endif\n",
    "kernels/kernel_neon_dot.c": FUNCTION.format(name="dot_block", room=8000),
}


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A folder of C like that of the runtime, which may be changed."""
    monkeypatch.setattr(stacks, "firmware_folder", lambda: tmp_path)
    (tmp_path / "src" / "kernels").mkdir(parents=True)
    for name, text in SOURCES.items():
        (tmp_path / "src" / name).write_text(text)
    return tmp_path / "src"


def test_a_prediction_takes_what_its_calls_take_one_inside_the_other(sources):
    # Functions of 1000, 2000 and 3000 bytes, and then the largest of the kernel's.
    own = {"plain": 4000, "avx": 5000, "neon_i8mm": 8000}
    rows = stacks.host_stacks()
    assert [(one["machine"], one["kernel"]) for one in rows] == [
        *(("x86-64", name) for name in ("plain", "avx")),
        *(("aarch64", name) for name in ("plain", "neon_i8mm")),
        ("armhf", "plain"),
    ]
    for one in rows:
        # A call saves registers, and a function that calls none has up to 128 bytes for nothing.
        assert abs(one["stack_bytes"] - 6000 - own[one["kernel"]]) <= 4 * 128


def test_a_function_without_a_bound_is_refused(sources, complaint):
    text = "int avx_block(int n) { volatile char room[n]; room[0] = 1; return room[0]; }\n"
    (sources / "kernels" / "kernel_avx.c").write_text(text)
    message = complaint(stacks.host_stacks)
    assert "kernel_avx.c:1:5:avx_block: the compiler cannot bound the stack" in message


def test_a_compiler_that_is_missing_is_named_with_its_package(sources, complaint, monkeypatch):
    monkeypatch.setenv("PATH", str(sources))
    message = complaint(stacks.host_stacks)
    assert message == "x86_64-linux-gnu-gcc is missing: apt-get install gcc-x86-64-linux-gnu"
