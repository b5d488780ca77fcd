"""``twinedge inspect``: what is inside a pack, byte by byte."""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinedge.cli import options
from twinedge.cli.output import note, print_json, print_record, print_table, print_text
from twinedge.errors import InputError
from twinedge.extras import NO_COMPILED_RUNTIME, has_compiled_runtime
from twinedge.wording import listed, plural, quoted, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from twinedge.encoding.encoder import Kind
    from twinedge.pack.contents import Pack, TargetCurve
    from twinedge.pack.describe import Checksum, Description


@options.command(
    "inspect",
    "inspect out/model.twin",
    "inspect out/model.twin --json",
    "inspect out/model.twin --verify",
)
@options.written_pack
@options.flag("--verify", text="Recompute the id, and run the self-test with numpy and in C.")
@options.as_json
def inspect(file: Path, verify: bool, as_json: bool) -> None:
    """Show what a .twin file holds and where each of its bytes goes.

    Sizes and offsets are in bytes; ranges in the units of the table the model was trained on. A
    damaged file is refused, after printing what its checksums confirm.

    Packs say which they are: the id stands for what a pack computes, and the parent is the pack
    that it was adapted, calibrated or retrained from. Whether a signature is good, 'twinedge
    verify' says.
    """
    from twinedge.pack.describe import describe

    try:
        data = file.read_bytes()
    except OSError as error:
        why = error.strerror
        raise InputError(f"{shown(file)} cannot be read: {why}; name a .twin file") from error
    found = describe(data)
    if as_json:
        print_json(_as_json(str(file), data, found))
    elif found.stated or found.checksums:
        _print(shown(file), data, found)
        if not has_compiled_runtime():
            note(NO_COMPILED_RUNTIME)
    if found.fault is not None:
        raise InputError(f"{shown(file)}: {found.fault}") from found.fault
    if verify and found.pack is not None:
        try:
            _verify(data, found.pack)
        except InputError as error:
            raise InputError(f"{shown(file)}: {error}") from error
        if not as_json:
            print_text("", "Verified: the id is right, and the self-test passes.")


def _verify(data: bytes, pack: "Pack") -> None:
    """Refuse a pack that is not what it says, or whose answers differ on this machine."""
    from twinedge.errors import MissingPackageError
    from twinedge.runtime.native import Native
    from twinedge.runtime.self_test import check_answers, check_release

    identity, test = check_release(pack)
    if identity is None or test is None:
        raise InputError("it has no identity or no self-test to verify: 'twinedge sign' adds them")
    with suppress(MissingPackageError):  # no compiled runtime
        check_answers(test, Native(data, pack).self_test(test.queries))


def _release(data: bytes, pack: "Pack") -> dict[str, Any]:
    """Return what a pack says of itself; where that makes no sense, what is wrong with it."""
    from twinedge.pack.release import Identity, SelfTest, read_signature
    from twinedge.pack.sections import pack_id
    from twinedge.signing import ALGORITHMS

    found: dict[str, Any] = {"id": pack_id(data).hex()}
    release = pack.release
    if release is None:
        return found
    try:
        if release.identity is not None:
            found["identity"] = Identity.read(release.identity).described
        if release.self_test is not None:
            test = SelfTest.read(release.self_test, pack.features, len(pack.every_target))
            found["self_test"] = {"queries": len(test.queries)}
        if (signature := read_signature(data)) is not None:
            algorithm = ALGORITHMS[signature.algorithm]
            found["signature"] = {"algorithm": algorithm, "key": signature.key.hex()}
    except InputError as error:
        found["fault"] = str(error)
    return found


def _as_json(file: str, data: bytes, found: "Description") -> dict[str, Any]:
    from twinedge.pack.describe import meaning_of, name_of, uses

    fault, pack = found.fault, found.pack
    result: dict[str, Any] = {
        "file": file,
        "bytes": found.length,
        "sound": fault is None,
        "refused": fault and {"reason": fault.reason.value, "message": str(fault)},
        "checksums": {
            name: {
                "stored": f"{one.stored:08x}",
                "computed": None if one.computed is None else f"{one.computed:08x}",
                "fits": one.fits,
            }
            for name, one in found.checksums.items()
        },
        **found.stated,
        "sections": [
            {
                "kind": one.kind,
                "name": name_of(one.kind, found.stated["version"]),
                "offset": one.offset,
                "size": one.length,
                "meaning": meaning_of(one, found.stated["version"]),
            }
            for one in found.sections
        ],
    }
    if pack is not None:
        result |= {
            "anchors_of_each_twin": pack.counts.tolist(),
            "members": pack.members,
            "map": pack.map and {"outputs": pack.map.outputs, "bins": pack.map.bins.tolist()},
            **_target_curves(found),
            "ranges": [one._asdict() for one in found.ranges],
            "parts": [one._asdict() for one in found.pieces],
            "uses": uses(found.pieces),
            "metadata": pack.metadata,
            "release": _release(data, pack),
        }
    return result


def _print(file: str, data: bytes, found: "Description") -> None:
    from twinedge.pack.describe import meaning_of, name_of, uses

    summary = _summary(found)
    if found.pack is not None:
        summary |= _lineage(_release(data, found.pack))
    print_record({"file": file, "bytes": found.length, **summary})
    if found.sections:
        version = found.stated["version"]
        _print_table(
            ("section", "offset", "size", "meaning"),
            [
                (name_of(one.kind, version), one.offset, one.length, meaning_of(one, version))
                for one in found.sections
            ],
        )
    if found.pack is None:
        return
    _print_ranges(found)
    rest = dict(found.pack.metadata)
    if _print_columns(found):
        del rest["columns"]
    _print_table(
        ("section", "part", "offset", "size", "padding", "holds"),
        [
            (one.section, one.part, one.offset, one.size, one.padding, one.holds)
            for one in found.pieces
        ],
    )
    _print_table(
        ("use", "bytes", "%"),
        [
            (use, size, f"{100 * size / found.length:.1f}")
            for use, size in (uses(found.pieces) | {"all": found.length}).items()
        ],
    )
    _print_metadata(rest)


def _print_metadata(metadata: dict[str, Any]) -> None:
    """Print metadata, which may hold anything: lists of features or targets become tables."""
    rest = dict(metadata)
    for key, value in metadata.items():
        if not (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
            continue
        rows = [dict(_flat(one)) for one in value]
        header = sorted({name: None for row in rows for name in row}, key=_column)
        if header:
            first, *others = (_safe(name).replace("_", " ") for name in header)
            cells = [[_safe(row[name]) if name in row else "" for name in header] for row in rows]
            _print_table((f"{_safe(key)}: {first}", *others), cells)
            del rest[key]
    if rest:
        print_text("")
        print_record({_safe(key): _safe(value) for key, value in _origin(rest)})


def _column(name: str) -> int:
    """Where a column stands: names first, and the least before the most."""
    usual = ("name", "target", "min", "max")
    return usual.index(name) if name in usual else len(usual)


def _flat(entries: dict[str, Any]) -> "Iterator[tuple[str, Any]]":
    """Yield entries; those of a dictionary inside by both their names."""
    for key, value in entries.items():
        if isinstance(value, dict) and value:
            yield from ((f"{key}, {name}", one) for name, one in value.items())
        else:
            yield key, value


def _print_ranges(found: "Description") -> None:
    """Print how features and target are scaled; with curves, how many bins each has."""
    assert found.pack is not None
    header = ["feature or target", "offset", "gain", "least", "most", "anchors from", "to"]
    rows = [
        [_safe(one.name), *("" if value is None else f"{value:.6g}" for value in one[1:])]
        for one in found.ranges
    ]
    curves, of_targets = found.pack.map, [one.target_curve for one in found.pack.every_target]
    if curves is not None or any(of_targets):
        bins = [0] * found.pack.features if curves is None else curves.bins.tolist()
        bins += [0 if one is None else one.bins for one in of_targets]
        header.append("bins of its curve")
        for row, count in zip(rows, bins, strict=True):
            row.append(str(count or ""))
    _print_table(header, rows)


def _print_table(header: "Sequence[str]", rows: "Iterable[Sequence[Any]]") -> None:
    print_text("")
    print_table(header, [[str(one) for one in row] for row in rows])


def _target_curves(found: "Description") -> dict[str, Any]:
    """Curve of the only target; of several, by name."""
    assert found.pack is not None
    curves = [one.target_curve for one in found.pack.every_target]
    described = [
        one and {"first": one.first, "step": 1 << one.shift, "bins": one.bins} for one in curves
    ]
    if len(curves) == 1:
        return {"target_curve": described[0]}
    names = [one.name for one in found.ranges[found.pack.features :]]
    each = zip(names, described, strict=True)
    return {"targets": [{"name": name, "target_curve": one} for name, one in each]}


def _origin(metadata: dict[str, Any]) -> "Iterator[tuple[str, Any]]":
    """Yield the entries of metadata, with the digest of the training rows in words."""
    from twinedge.provenance import DIGEST, TrainingRows

    for key, value in metadata.items():
        rows = None
        with suppress(InputError):  # something else of the same name
            rows = TrainingRows.read(value) if key == DIGEST else None
        if rows is not None:
            every = "of each" if rows.is_complete else f"of {len(rows.hashes)} of them"
            yield key, f"{rows.count}, with a hash {every} to recognize them"
        else:
            yield from _flat({key: value})


def _print_columns(found: "Description") -> bool:
    """Print the columns that the features are made of if any holds names or times: is that so?"""
    from twinedge.encoding.encoder import Encoding

    assert found.pack is not None
    features = [one.name for one in found.ranges[: found.pack.features]]
    encoding = Encoding.of(found.pack.metadata.get("columns"), features)
    if encoding.is_plain:
        return False
    _print_table(
        ("column", "features", "levels", "rare levels"),
        [
            (_safe(name), *_described(kind))
            for name, kind in zip(encoding.names, encoding.kinds, strict=True)
        ],
    )
    return True


def _described(kind: "Kind") -> tuple[str, str, str]:
    """Return the number of features of a column, its levels or times, and its rare levels."""
    from twinedge.encoding.calendars import Calendar
    from twinedge.encoding.derived import Derived

    if isinstance(kind, Calendar):
        ends = " to ".join(kind.format(one) for one in (kind.first, kind.last))
        return str(kind.width), f"a calendar, trained on {ends}", ""
    if isinstance(kind, Derived):
        window = f"derived from {plural(kind.window, 'sample')} of {quoted(kind.column)}"
        return "1", window, ""
    if kind is None:
        return "1", "", ""
    return str(kind.width), listed(kind.levels), listed(kind.others)


def _summary(found: "Description") -> dict[str, Any]:
    """Return the fields of the header, worded for a person."""
    stated = dict(found.stated)
    summary: dict[str, Any] = {}
    if stated.pop("length", found.length) != found.length:
        summary["bytes it should have"] = found.stated["length"]
    if "hidden" in stated:
        near, trained = stated.pop("neighbors"), stated.pop("trained_on_neighbors")
        who = f"the {near} nearest anchors of each twin" if near else "all anchors"
        stated["predict with"] = who + "; trained on neighbors" * trained
        stated["hidden"] = ", ".join(map(str, stated["hidden"]))
    if found.pack is not None and found.pack.map is not None:
        curves = found.pack.map
        with_curve = int((curves.bins > 0).sum())
        what = f"{plural(with_curve, 'curve')}, {plural(len(curves.knots), 'knot')}"
        stated["map"] = f"{what}; the twins take {plural(curves.outputs, 'number')} of a point"
    if found.pack is not None:
        each = found.pack.every_target
        if len(each) > 1:
            stated["targets"] = len(each)
        bends = [_curve_words(one.target_curve) for one in each]
        if any(one.target_curve for one in each):
            stated["target curve"] = "; ".join(bends)
    if found.pack is not None and len(found.pack.counts) > 1:
        counts = ", ".join(map(str, found.pack.counts.tolist()))
        stated["anchors"] = f"{stated['anchors']} (of each twin: {counts})"
    summary |= stated
    return summary | {f"{name} crc": _verdict(one) for name, one in found.checksums.items()}


def _curve_words(curve: "TargetCurve | None") -> str:
    if curve is None:
        return "none"
    return f"{plural(curve.bins, 'bin')} of {1 << curve.shift} estimate units"


def _lineage(release: dict[str, Any]) -> dict[str, Any]:
    """Word what a pack says of itself."""
    identity, signature = release.get("identity"), release.get("signature")
    lines = {"id": release["id"]}
    if identity is not None:
        if identity["id"] != release["id"]:
            lines["id"] += f", but its identity says {identity['id']}"
        lines |= {
            "parent": identity["parent"] or "none",
            "counter": identity["counter"],
            "schema": identity["schema"] or "unknown",
            "training table": identity["table"] or "unknown",
        }
    if "self_test" in release:
        lines["self-test"] = plural(release["self_test"]["queries"], "answer")
    if signature is not None:
        lines["signature"] = f"{signature['algorithm']} by key {signature['key']}, not verified"
    if "fault" in release:
        lines["fault"] = release["fault"]
    return lines


def _verdict(one: "Checksum") -> str:
    if one.computed is None:
        return f"{one.stored:08x} stored; the bytes it covers are missing"
    verdict = "right" if one.fits else "wrong"
    return f"{one.stored:08x} stored, {one.computed:08x} computed: {verdict}"


def _safe(value: Any) -> str:
    """Show a value from a file on one line, whatever it holds."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
