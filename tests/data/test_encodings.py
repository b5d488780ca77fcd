"""Text in any encoding that spreadsheets and loggers write: the same table."""

import codecs
import gzip
import os
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twinedge.data import read_features, read_table

TEXT = "µ (°C),a,y\n1,2,3\n4,5,6.5\n7,9,9\n"
REMARK = "not UTF-8: read as Windows-1252 (Latin-1)"
ENCODINGS = {
    "UTF-8": ("utf-8", b"", ()),
    "UTF-8 with a mark": ("utf-8-sig", b"", ()),
    "UTF-16 with a mark, little-endian": ("utf-16-le", codecs.BOM_UTF16_LE, ()),
    "UTF-16 with a mark, big-endian": ("utf-16-be", codecs.BOM_UTF16_BE, ()),
    "UTF-16, little-endian": ("utf-16-le", b"", ()),
    "UTF-16, big-endian": ("utf-16-be", b"", ()),
    "Latin-1": ("latin-1", b"", (REMARK,)),
    "Windows-1252": ("cp1252", b"", (REMARK,)),
}
QUICK = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize(("encoding", "mark", "remarks"), ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_table_is_the_same_in_every_encoding(write, encoding, mark, remarks, pack):
    path = write(pack(mark + TEXT.encode(encoding)))
    table = read_table(path, target="y")
    assert table.feature_names == ("µ (°C)", "a")
    assert np.column_stack([table.X, table.y]).tolist() == [[1, 2, 3], [4, 5, 6.5], [7, 9, 9]]
    assert table.remarks == tuple(f"{path}: {remark}" for remark in remarks)
    found = []
    X, _ = read_features(path, ("a", "µ (°C)"), say=found.append)
    assert X.tolist() == [[2, 1], [5, 4], [9, 7]]
    assert tuple(found) == table.remarks


def test_a_first_letter_far_down_decides_as_well(write):
    rows = "".join(f"{k},{'ab'[k % 2]},{k * k}\n" for k in range(9000)) + "1,Ü,2\n" * 2
    table = read_table(write(("a,kind,y\n" + rows).encode("latin-1")), target="y")
    assert table.columns[1].texts == ("a", "b", "Ü")
    assert table.remarks[0].endswith(REMARK)


def test_a_pipe_is_decoded_too(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for encoding in ("latin-1", "utf-16"):
        feeder = threading.Thread(target=path.write_bytes, args=(TEXT.encode(encoding),))
        feeder.start()
        table = read_table(path, target="y")
        feeder.join()
        assert table.feature_names == ("µ (°C)", "a")


# Letters beyond ASCII that Windows-1252 has; two of them side by side may happen to be UTF-8.
LETTERS = [chr(code) for code in range(0xA1, 0x100)] + list("€Žžœ™")
NAMES = st.lists(
    st.tuples(st.sampled_from("abcxyz"), st.sampled_from(LETTERS), st.sampled_from("abc ")).map(
        "".join
    ),
    min_size=2,
    max_size=4,
    unique_by=str.strip,
)


@QUICK
@given(NAMES, st.sampled_from([one for name, one in ENCODINGS.items() if name != "Latin-1"]))
def test_names_of_any_letters_are_read_as_they_were_written(tmp_path, names, how):
    encoding, mark, remarks = how
    path = tmp_path / "t.csv"
    rows = [",".join(str(k * k + j) for j in range(len(names))) for k in range(12)]
    path.write_bytes(mark + "\r\n".join([",".join(names), *rows]).encode(encoding))
    table = read_table(path, target=-1)
    assert (*table.feature_names, table.target_name) == tuple(name.strip() for name in names)
    assert table.X[:, 0].tolist() == [k * k for k in range(12)]
    assert [one.partition(": ")[2] for one in table.remarks] == list(remarks)
