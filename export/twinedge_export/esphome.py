"""A pack for ESPHome: the component with the runtime, and a package for configurations."""

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twinedge.atomic_files import EarlierFiles, FolderKind, check_folder, write_folder
from twinedge.encoding.categories import Category
from twinedge.encoding.encoder import Encoding
from twinedge.errors import InputError
from twinedge.pack.contents import Pack
from twinedge.runtime.pack_device import read_pack_file
from twinedge.runtime.reference import targets_of
from twinedge.version import __version__
from twinedge.wording import plural, quoted
from twinedge_export.amalgamation import firmware_folder, write_amalgamation
from twinedge_export.c_columns import c_names, plain

FOLDER = FolderKind("package for ESPHome", "esphome.json")
COMPONENT, PACK, PACKAGE = "twinedge", "model.twin", "model.yaml"


class Source(NamedTuple):
    """A column of the model, and the substitution that names its sensor."""

    column: str
    substitution: str
    id: str
    kind: str
    values: str


class EsphomePackage(NamedTuple):
    """What was written.

    Parameters
    ----------
    folder : path
        Where it was written.
    id : str
        Id of the model in the package.
    sources : tuple of Source
        What it reads.
    placed : EarlierFiles
        What happened to files of an earlier package that were not simply replaced.
    """

    folder: Path
    id: str
    sources: tuple[Source, ...]
    placed: EarlierFiles

    def record(self) -> dict[str, Any]:
        """Everything a program may want to know, as JSON takes it."""
        return {
            "folder": str(self.folder),
            "package": str(self.folder / PACKAGE),
            "id": self.id,
            "sources": [one._asdict() for one in self.sources],
            **self.placed._asdict(),
        }


def esphome_package(file: Path, folder: Path, *, overwrite: bool = False) -> EsphomePackage:
    """Write a folder to put beside a configuration: component, pack, and a package with both.

    Parameters
    ----------
    file : path
        The pack.
    folder : path
        To write; its name becomes part of ids and paths, which are relative to its parent.
    overwrite : bool
        Replace files that were changed since they were written.

    Raises
    ------
    InputError
        If the pack is damaged, or needs what the component does not have.
    """
    _clear_compiled(folder)
    check_folder(folder, FOLDER, overwrite=overwrite)
    pack, content = read_pack_file(file)
    encoding = _encoding(pack, file)
    name = folder.resolve().name
    (prefix,) = c_names([name])
    sources = tuple(_sources(pack, encoding, prefix))
    text = _package(pack, sources, name, prefix)

    def write(new: Path) -> dict[str, Any]:
        component = new / "components" / COMPONENT
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(firmware_folder() / "esphome" / COMPONENT, component, ignore=ignore)
        write_amalgamation(component)
        (new / PACK).write_bytes(content)
        (new / PACKAGE).write_text(text, "utf-8")
        return {"twinedge": __version__, "pack": PACK, "package": PACKAGE}

    placed = write_folder(folder, FOLDER, write, overwrite=overwrite)
    return EsphomePackage(folder, _model_id(prefix), sources, placed)


def _clear_compiled(folder: Path) -> None:
    """Remove what Python compiled when ESPHome read an earlier package: it is nobody's file."""
    if (folder / FOLDER.record).is_file():
        for compiled in [*(folder / "components" / COMPONENT).rglob("__pycache__")]:
            shutil.rmtree(compiled, ignore_errors=True)


def _encoding(pack: Pack, file: Path) -> Encoding:
    """Return the columns of a pack that the component can serve."""
    if pack.others:
        raise InputError(
            f"{file} predicts {plural(len(pack.every_target), 'target')}, and the component for "
            "ESPHome takes packs for one"
        )
    features = pack.metadata.get("features")
    if not features:
        return Encoding.numbered(pack.features)
    encoding = Encoding.of(pack.metadata.get("columns"), [one["name"] for one in features])
    for name, kind in zip(encoding.names, encoding.kinds, strict=True):
        if not isinstance(kind, Category | None):
            raise InputError(
                f"{file} needs {quoted(name)}, and the component for ESPHome computes neither "
                "calendars nor inputs derived from past samples"
            )
    return encoding


def _sources(pack: Pack, encoding: Encoding, prefix: str) -> list[Source]:
    """Say what each column reads, with its values in training."""
    known = pack.metadata.get("features")
    found = []
    names = c_names(encoding.names)
    for column, id_, kind, part in zip(
        encoding.names, names, encoding.kinds, encoding.parts, strict=True
    ):
        if isinstance(kind, Category):
            sensor, values = "text sensor", ", ".join(map(plain, (*kind.levels, *kind.others)))
        else:
            one = known[part.start] if known else {}
            sensor = "sensor"
            values = f"{one['min']:.6g} to {one['max']:.6g}" if "min" in one else "any number"
        found.append(Source(column, f"{prefix}_{id_}", id_, sensor, values))
    return found


def _model_id(prefix: str) -> str:
    return f"{prefix}_model"


def _package(pack: Pack, sources: Sequence[Source], folder: str, prefix: str) -> str:
    """Write the package, which says how to include it."""
    metadata = pack.metadata
    target = plain(str(metadata.get("target", "prediction")))
    decimals = _decimals(metadata.get("scores", {}))
    shown = "" if decimals is None else f"\n      accuracy_decimals: {decimals}"
    substitutions = "\n".join(
        f"  {one.substitution}: {one.id}  # {one.kind} for {plain(one.column)}: {one.values}"
        for one in sources
    )
    named = "features" in metadata
    reads = "\n".join(
        f"      {_text(one.column)}: ${{{one.substitution}}}"
        if named
        else f"      - ${{{one.substitution}}}"
        for one in sources
    )
    outputs = {"value": target}
    if pack.intervals is not None:
        outputs |= {"low": f"{target} at least", "high": f"{target} at most"}
    given = "\n".join(
        f"    {key}:\n      id: {prefix}_{key}\n      name: {_text(name)}{shown}"
        for key, name in outputs.items()
    )
    if pack.domain is not None:
        given += (
            f"\n    outside:\n      id: {prefix}_outside\n      name: {_text(f'{target} unusual')}"
        )
    text = f"""\
# Predicts {target}. In the configuration of a device, beside which the folder {folder} lies:
#
#     packages:
#       {prefix}: !include {folder}/{PACKAGE}
#
# A configuration whose sensors have other ids says which to read:
#
#     substitutions:
#       {sources[0].substitution}: my_sensor

substitutions:
{substitutions}

external_components:
  - source: {_text(f"{folder}/components")}

sensor:
  - platform: twinedge
    id: {_model_id(prefix)}
    pack: {_text(f"{folder}/{PACK}")}
    sources:
{reads}
{given}
"""
    return text + (_teaching(pack, target, prefix, decimals) if pack.intervals else "")


def _teaching(pack: Pack, target: str, prefix: str, decimals: int | None) -> str:
    """Write the entities that teach, with room for values beyond those of training."""
    values = targets_of(pack, pack.targets).astype(np.float64)
    least, most = float(values.min()), float(values.max())
    room = (most - least) or max(abs(most), 1.0)
    step = 10.0 ** -(decimals or 0)
    low, high = math.floor((least - room) / step) * step, math.ceil((most + room) / step) * step
    digits = max(decimals or 0, 0)
    return f"""
number:
  - platform: twinedge
    twinedge_id: {_model_id(prefix)}
    id: {prefix}_truth
    name: {_text(f"True {target}")}
    min_value: {low:.{digits}f}
    max_value: {high:.{digits}f}
    step: {step:.{digits}f}

button:
  - platform: twinedge
    twinedge_id: {_model_id(prefix)}
    id: {prefix}_forget
    name: {_text(f"Forget the last true {target}")}
"""


def _decimals(scores: Any) -> int | None:
    """Decimals of which the last is a small part of the error of the model."""
    for key in ("rmse_test", "rmse_val"):
        error = scores.get(key)
        if error and math.isfinite(error):
            return min(max(1 - math.floor(math.log10(error)), 0), 6)
    return None


def _text(text: str) -> str:
    """Quote a text for YAML, which takes those of JSON."""
    return json.dumps(text, ensure_ascii=False)
