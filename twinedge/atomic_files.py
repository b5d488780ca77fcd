"""Write results atomically, without losing files that twinedge did not write.

A folder is written beside its destination and then replaces it in one step. The record in it
(``run.json``, ``export.json``) holds a checksum of every file that was written, itself included,
which tells the next writer what has not been changed since. A folder that holds anything else is
refused; with ``overwrite`` the other files stay. A process that is killed halfway leaves the old
result or the new one, and beside it a hidden folder that the next writer clears away.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from twinedge.errors import InputError, Parameter, ParameterError
from twinedge.wording import joined

try:
    import fcntl
except ImportError:  # Windows: no way to tell whether another process is alive
    fcntl = None  # type: ignore[assignment]

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_NAMED = 4  # files that a refusal names
_OVERWRITE = Parameter("overwrite", True)


class FolderKind(NamedTuple):
    """What a folder holds: a word for it, and the file that is its record."""

    noun: str
    record: str


RUN, EXPORT = FolderKind("run", "run.json"), FolderKind("export", "export.json")


class EarlierFiles(NamedTuple):
    """What became of earlier files in a folder, apart from those simply written again.

    Parameters
    ----------
    stale : tuple of str
        From an earlier result, and left there; a folder stands for all its files.
    removed : tuple of str
        From an earlier result, and removed with the subfolder they were in.
    replaced : tuple of str
        Changed since, or of others, and replaced because of ``overwrite``.
    """

    stale: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


def write_folder(
    folder: Path,
    kind: FolderKind,
    write: Callable[[Path], dict[str, Any]],
    *,
    overwrite: bool = False,
) -> EarlierFiles:
    """Let ``write`` fill a new folder, and replace ``folder`` by it.

    If anything goes wrong, the existing folder stays as it was.

    Parameters
    ----------
    folder : path
        May exist if it is empty or has a record.
    kind : FolderKind
        What is written.
    write : function
        Fills the folder it is given and returns its record, without checksums.
    overwrite : bool
        Replace files that were changed since they were written, and any in the way of new ones.
    """
    target = folder.resolve()
    new, old = _beside(target)
    try:
        recover(target, kind)
        new.mkdir(parents=True)
        with _locked(new), _locked(target):
            record = write(new)
            earlier = _complete(new, target, kind, record, overwrite)
            try:
                _swap(new, target, old)
            finally:
                if old.exists() and not target.exists():
                    old.rename(target)
            # Clear the old folder away, and keep what somebody put into it in the meantime.
            left = new if new.exists() else old
            for path in _clear(left, target, kind):
                if not os.path.lexists(target / path):
                    (target / path).parent.mkdir(parents=True, exist_ok=True)
                    (left / path).rename(target / path)
        return earlier
    except OSError as error:
        raise InputError(_trouble(error, folder, new)) from error
    finally:
        for left in (new, old):
            _clear(left, target, kind)


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file atomically, or leave what was there.

    It is written to a temporary file, flushed to disk and renamed, so that not even a power failure
    leaves half a file. Text is stored as UTF-8, with its line endings unchanged.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    target = path.resolve()
    new, _ = _beside(target)
    try:
        with new.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
        _flush_folder(target.parent)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            new.unlink()


def _flush_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, if the system can."""
    with suppress(OSError):  # Windows cannot open a folder; the file is whole anyway
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def check_file(path: Path) -> None:
    """Refuse a path that cannot be written, before the work is done."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file to write")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}")


def check_folder(folder: Path, kind: FolderKind, *, overwrite: bool = False) -> None:
    """Refuse a folder that cannot be written, before hours are spent on its contents.

    Parameters
    ----------
    folder : path
        May exist if it is empty or has a record.
    kind : FolderKind
        What will go there.
    overwrite : bool
        Whether it may hold files that were changed since, or are of others.
    """
    if folder.name in ("", ".."):
        raise InputError(f"{folder} has no name of its own: name a folder for the {kind.noun}")
    target = folder.resolve()
    new, _ = _beside(target)
    try:
        recover(target, kind)
        if folder.exists():
            if not folder.is_dir():
                raise InputError(f"{folder} is a file: name a folder for the {kind.noun}")
            if any(folder.iterdir()) and not (folder / kind.record).is_file():
                raise InputError(
                    f"{folder} holds something that is not {_a(kind.noun)}: name another folder"
                )
            if not overwrite:
                _refuse_others(folder, kind, _compare(target, kind))
        new.parent.mkdir(parents=True, exist_ok=True)
        new.mkdir()  # permission bits do not say whether this works
        new.rmdir()
    except OSError as error:
        raise InputError(f"cannot write to {new.parent}: {error.strerror}") from error


def recover(folder: Path, kind: FolderKind) -> None:
    """Restore a folder that a process was moving when it was killed, and clear what it left."""
    target = folder.resolve()
    for left in _left(target):
        if _abandoned(left):
            if left.suffix == ".old" and not target.exists():
                left.rename(target)
            else:
                _clear(left, target, kind)


def recover_below(parent: Path, kind: FolderKind) -> None:
    """Restore every folder in ``parent`` that a process was moving when it was killed."""
    names = {found[1] for one in _names(parent) if (found := _LEFT.fullmatch(one))}
    for name in names:
        recover(parent / name, kind)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


class _Contents(NamedTuple):
    """Paths of files in a folder: as they were written, changed since, and of others."""

    unchanged: set[str]
    changed: set[str]
    others: set[str]

    @property
    def all(self) -> set[str]:
        return self.unchanged | self.changed | self.others


def _compare(folder: Path, kind: FolderKind) -> _Contents:
    """Compare a folder with the checksums in its record."""
    record = _read_record(folder / kind.record)
    sums = _sums(record)
    found = _Contents(set(), set(), set())
    for path in _files(folder):
        if path == kind.record:
            same = sums.get(path) == _own_sum(record, kind)
        else:
            same = path in sums and _has_sum(folder / path, sums[path])
        known = path in sums or path == kind.record
        (found.unchanged if same else found.changed if known else found.others).add(path)
    return found


def _refuse_others(folder: Path, kind: FolderKind, found: _Contents) -> None:
    if not (found.changed or found.others):
        return
    reasons = []
    if found.changed:
        one = len(found.changed) == 1
        verb = "was changed since it was" if one else "were changed since they were"
        reasons.append(f"{joined(sorted(found.changed), _NAMED)} {verb} written")
    if found.others:
        names = _together(found.others, found.all)
        verb = "is" if len(names) == 1 else "are"
        reasons.append(f"{joined(names, _NAMED)} {verb} not part of the {kind.noun}")
    raise ParameterError(
        f"{folder}: {', and '.join(reasons)}; name another folder, or use ",
        _OVERWRITE,
        ", which replaces changed files and leaves the rest",
    )


def _complete(
    new: Path, target: Path, kind: FolderKind, record: dict[str, Any], overwrite: bool
) -> EarlierFiles:
    """Write the record, and carry over whatever stays from the old folder."""
    files = {*_files(new), kind.record}
    old = _compare(target, kind) if target.exists() else _Contents(set(), set(), set())
    if not overwrite:
        _refuse_others(target, kind, old)
    rest = old.unchanged - files
    # A subfolder is a project of its own: a leftover file would become part of it.
    removed = {path for path in rest if "/" in path and (new / path.split("/")[0]).is_dir()}
    stale, others = rest - removed, (old.others | old.changed) - files
    blocked = [path for path in others if (new / path).is_dir()]
    replaced = ((old.others | old.changed) & files) | {*blocked}
    kept = stale | others - replaced
    for path in sorted(kept):
        for parent in PurePosixPath(path).parents:
            if str(parent) in files:
                raise InputError(f"{target / parent} is a folder where a file must be written")
    earlier = EarlierFiles(
        stale=_together(stale, files | kept),
        removed=_together(removed, old.all),
        replaced=tuple(sorted(replaced)),
    )
    sums = {path: digest(new / path) for path in sorted(files - {kind.record})}
    sums |= {path: digest(target / path) for path in sorted(stale)}
    record = json.loads(json.dumps({**record, **earlier._asdict(), "sha256": sums}))
    record["sha256"][kind.record] = _own_sum(record, kind)
    # Until the record exists, the new folder holds only files just written: see _clear.
    (new / kind.record).write_text(_text(record), encoding="utf-8")
    if target.exists():
        _carry(kept, target, new)
    return earlier


def _carry(kept: set[str], target: Path, new: Path) -> None:
    """Carry the files that stay, and empty folders, over to the new folder."""
    made = ["."]
    empty = _empty_folders(target)
    for path in sorted(kept | empty):
        for folder in (*map(str, reversed(PurePosixPath(path).parents)), *[path] * (path in empty)):
            if not (new / folder).exists():
                (new / folder).mkdir()
                made.append(folder)
        if path in kept:
            _link(target / path, new / path)
    for folder in reversed(made):
        shutil.copymode(target / folder, new / folder)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except (OSError, NotImplementedError):  # a file system without links, or another user's file
        shutil.copy2(source, target, follow_symlinks=False)


def _swap(new: Path, target: Path, old: Path) -> None:
    """Put the new folder in place, in one step if the system can."""
    if target.exists():
        if _exchange(new, target):
            return
        target.rename(old)
    new.rename(target)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders atomically; False if the system cannot."""
    try:
        import ctypes  # which few need

        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, ImportError, OSError, TypeError):
        return False
    return bool(renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def _clear(left: Path, target: Path, kind: FolderKind) -> list[str]:
    """Remove a leftover folder, except for files that exist nowhere else; return their paths.

    Without a record it was never completed, and holds only what its process wrote.
    """
    if not left.is_dir():
        return []
    record = left / kind.record
    if left.suffix == ".partial" and not record.is_file():
        shutil.rmtree(left, ignore_errors=True)
        return []
    sums = _sums(_read_record(record))
    replaced = _read_record(target / kind.record).get("replaced", ())
    only_here: list[str] = []
    with suppress(OSError):
        for path in sorted(_files(left), key=lambda path: path == kind.record):
            if path in (kind.record, *replaced) or (
                _has_sum(left / path, sums.get(path)) or _same(left / path, target / path)
            ):
                if path != kind.record or not only_here:
                    (left / path).unlink()
            else:
                only_here.append(path)
        for folder, _, _ in os.walk(left, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()
    return only_here


def _left(target: Path) -> list[Path]:
    """Leftover folders beside a target, from any process."""
    found = ((name, _LEFT.fullmatch(name)) for name in _names(target.parent))
    return [target.with_name(name) for name, match in found if match and match[1] == target.name]


_LEFT = re.compile(r"\.(.+)\.\d+\.(?:partial|old)")


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def _abandoned(left: Path) -> bool:
    """Tell whether no process is using a leftover folder."""
    if fcntl is None:
        return f".{os.getpid()}." in left.name
    try:
        number = os.open(left, os.O_RDONLY)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(number)
    except OSError:
        return False
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, even while it is moved, so that nobody takes it for abandoned."""
    number = -1
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        if fcntl is not None:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        yield
    finally:
        if number >= 0:
            os.close(number)


def _files(folder: Path, below: str = "") -> Iterator[str]:
    """Paths of all files, including links, as ``a/b``."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path), f"{below}{entry.name}/")
            else:
                yield below + entry.name


def _empty_folders(folder: Path) -> set[str]:
    walk = os.walk(folder)
    return {
        Path(one).relative_to(folder).as_posix()
        for one, folders, files in walk
        if not folders and not files and Path(one) != folder
    }


def _read_record(path: Path) -> dict[str, Any]:
    """Read a record; empty if there is none that can be read."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _sums(record: dict[str, Any]) -> dict[str, Any]:
    sums = record.get("sha256")
    return sums if isinstance(sums, dict) else {}


def _own_sum(record: dict[str, Any], kind: FolderKind) -> str:
    """Checksum of a record, leaving out the entry for the record itself."""
    others = {path: one for path, one in _sums(record).items() if path != kind.record}
    return sha256(_text({**record, "sha256": others}).encode()).hexdigest()


def _text(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=1) + "\n"


def _has_sum(path: Path, expected: Any) -> bool:
    return expected is not None and _plain(path) and digest(path) == expected


def _same(one: Path, other: Path) -> bool:
    if not os.path.lexists(other):
        return False
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return one.samefile(other) or (_plain(one) and _plain(other) and digest(one) == digest(other))


def _plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _together(paths: set[str], among: set[str], below: str = "") -> tuple[str, ...]:
    """List paths, with a folder for all its files if ``paths`` has every one in ``among``."""
    names: dict[str, bool] = {}
    for path in among:
        if path.startswith(below):
            head, slash, _ = path[len(below) :].partition("/")
            name = below + head + slash
            names[name] = names.get(name, True) and path in paths
    listed: list[str] = []
    for name, whole in sorted(names.items()):
        if whole:
            listed.append(name)
        elif name.endswith("/"):
            listed.extend(_together(paths, among, name))
    return tuple(listed)


def _trouble(error: OSError, folder: Path, new: Path) -> str:
    """Say which file could not be written, by its final rather than its temporary path."""
    reason = error.strerror or str(error)
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if path is not None and path.is_relative_to(new):
        return f"cannot write {folder / path.relative_to(new)}: {reason}"
    where = "" if path is None or path == new.parent else f" ({path})"
    return f"cannot write {folder}: {reason}{where}"


def _beside(target: Path) -> tuple[Path, Path]:
    """Choose two free names beside ``target``: for the new folder, and for the old one."""
    pairs = (
        (target.with_name(f".{name}.partial"), target.with_name(f".{name}.old"))
        for name in (f"{target.name}.{number}" for number in count(os.getpid()))
    )
    return next(pair for pair in pairs if not any(map(os.path.lexists, pair)))


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
