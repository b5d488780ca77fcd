"""Load what training and exporting wrote: a run folder, an export folder, or one of its files."""

from pathlib import Path
from typing import TYPE_CHECKING, Union

from twinedge.errors import InputError
from twinedge.run_record import FILE

if TYPE_CHECKING:
    from twinedge.run_folder import Run
    from twinedge.runtime.device import Device


def load(
    path: str | Path,
    backend: str = "auto",
    *,
    store: str | Path | None = None,
    threads: int | None = 1,
) -> Union["Device", "Run"]:
    """Load a trained or an exported model.

    Parameters
    ----------
    path : path
        A ``.twin``, ``.tflite`` or ``.onnx`` file; the folder of an export, for its ``model.twin``;
        or a run folder.
    backend : str
        What reads a file: "auto", "native", "numpy", "tflite" or "onnx".
    store : path, optional
        A file that keeps what the device learns. Without it, that is lost with the device.
    threads : int, optional
        How many threads may answer a batch; None for one per core. Predictions are the same. The
        "numpy" backend always uses one.

    Returns
    -------
    Device or Run
        A file is a device: it has ``predict``, ``predict_interval`` and ``coverages``, ``spread``,
        ``estimates``, ``outside``, ``missing``, ``predict_all`` for all of these at once, ``learn``
        and ``forget``, ``feature_names``, ``anchors`` and ``info``. A run folder is a run: its
        ``model`` is the fitted estimator, and it has ``scores``, ``validation`` and ``test``.

    Raises
    ------
    InputError
        If it cannot be used; a ``MissingPackageError`` if something must be installed first.

    Examples
    --------
    >>> import twinedge
    >>> twinedge.load("out/model.twin").predict([[0.5, 0.25]])  # doctest: +SKIP
    array([0.1234], dtype=float32)
    >>> twinedge.load("runs/latest").model.predict([[0.5, 0.25]])  # doctest: +SKIP
    array([0.1235])
    """
    from twinedge.runtime.loading import load as load_device
    from twinedge.runtime.loading import pack_in

    path = Path(path)
    if not path.exists() and not path.suffix:
        raise InputError(f"{path} does not exist")
    if not path.is_dir() or pack_in(path) != path:
        return load_device(path, backend, store=store, threads=threads)
    if not (path / FILE).is_file():
        raise InputError(f"{path} is neither a run nor an export: no {FILE}, no model.twin")
    if backend != "auto" or store is not None:
        raise InputError(f"{path} is a run: backends and stores are for the files of an export")
    from twinedge.run_folder import load_run

    return load_run(path)
