"""What there is to tell of a pack, for somebody who has only the file and some measured rows."""

from pathlib import Path

from twinedge.budget import Board, Runtime
from twinedge.data import read_features
from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.runtime.loading import load
from twinedge_export.report.baselines import beside_rows
from twinedge_export.report.findings import Findings, find_alike, spread_worth

_FEWEST_ROWS = 2


def find_pack(
    path: Path,
    judged_on: str,
    points: tuple[Array, Array],
    boards: list[Board],
    firmware: dict[str, Runtime],
    *,
    table: str,
    seed: int = 0,
) -> Findings:
    """Judge a pack on measured rows.

    Parameters
    ----------
    path : path
        The ``.twin`` file, or the folder of an export.
    judged_on : str
        What the rows are: "test", or the name of a table.
    points : (X, y)
        The rows, such as the model never saw.
    boards : list of Board
        Boards to judge.
    firmware : dict of str to Runtime
        Measured cores.
    table : str
        The rows, as a person types them.
    seed : int
        Of what is shuffled.
    """
    file = pack_file(path)
    name = path.resolve().name if path.is_dir() else _named(path)
    found = find_alike(name, file.read_bytes(), judged_on, points, boards, firmware, seed=seed)
    return Findings(
        **found,
        place=str(path),
        file=str(file),
        made_by="",
        table=table,
        reliability=spread_worth(found, None),
        baselines=beside_rows(found["points"], found["judged"].error),
        quick=True,
    )


def pack_file(path: Path) -> Path:
    """Return the pack of an export, or a pack itself."""
    return path / "model.twin" if path.is_dir() else path


def read_rows(file: Path, table: Path) -> tuple[Array, Array]:
    """Read features and targets of a table as a pack takes them; NaN where it may be missing."""
    device = load(file)
    X, y = read_features(
        table, device.encoding, target=device.target_name, fillable=device.fillable
    )
    assert y is not None
    if len(y) < _FEWEST_ROWS:
        raise InputError(f"{table}: {len(y)} rows are too few to judge a model on")
    return X, y


def _named(path: Path) -> str:
    """Call a pack by its folder where its own name says nothing."""
    parent = path.resolve().parent.name
    return parent if path.name == "model.twin" and parent else path.stem
