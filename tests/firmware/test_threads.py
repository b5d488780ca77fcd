"""Threads may share a model."""

from twinedge.pack import write_pack


def test_eight_threads_share_a_model_without_a_race(native, small, tmp_path):
    (tmp_path / "small.twin").write_bytes(write_pack(small))
    sources = [*native.SOURCES, native.FIRMWARE / "test" / "threads.c"]
    program = native.compile_c(
        tmp_path / "threads",
        *("-Og", "-g", "-pthread", "-fsanitize=thread"),
        sources=sources,
    )
    # The sanitizer needs addresses that address space randomisation may have taken.
    said = native.run("setarch", "--addr-no-randomize", program, tmp_path / "small.twin")
    assert said == "20000 predictions, 0 wrong, prepared\n"
