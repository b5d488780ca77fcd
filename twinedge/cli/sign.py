"""``twinedge sign`` and ``twinedge verify``: packs that come from the owner of a key."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinedge.cli import options
from twinedge.cli.output import note, print_result
from twinedge.errors import InputError
from twinedge.wording import shown

if TYPE_CHECKING:
    from twinedge.pack.release import Identity
    from twinedge.signing import Key


def require_signature(file: Path, key: Path, lowest_counter: int) -> bytes:
    """Refuse a file that is no pack signed by the owner of a key; return its SHA-256."""
    from twinedge import signing

    owner = signing.read_key(key)
    if file.suffix != ".twin":
        raise InputError(f"{shown(file)} is not signed: only a .twin pack can be")
    data = _read(file)
    with _naming(file):
        signing.verify(data, owner, lowest_counter)
    return sha256(data).digest()


@options.command(
    "sign",
    "sign out/model.twin --key product.key",
    "sign out --key product.key --counter 7 --lean -o lean-7.twin",
)
@options.written_pack
@options.file_option("--key", required=True, text="Private key, from 'keys new'.")
@options.counter("By default as it is.")
@options.flag(
    "--lean", text="Leave out names, scores and ids of anchors, which no microcontroller needs."
)
@options.file_option("--output", "-o", text="Pack to write; by default the old one is replaced.")
@options.as_json
@options.quiet
def sign(
    file: Path,
    key: Path,
    counter: int | None,
    lean: bool,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Sign a pack, so that devices can tell it from any other.

    The signature covers every byte of the pack. Sign last: whatever changes the pack, such as
    calibrate or adapt, drops the signature. A pack of an earlier version gets a self-test and an
    identity first.
    """
    from twinedge import signing
    from twinedge.atomic_files import check_file, write_file

    target = output or file
    check_file(target)
    owner = signing.read_key(key)
    if owner.secret is None:
        raise InputError(f"{key} is a public key: sign with the private one")
    data = _read(file)
    with _naming(file):
        made = signing.sign(data, owner, counter, lean=lean)
        identity = signing.verify(made, owner)
    write_file(target, made)
    print_result({"pack": str(target), "bytes": len(made), **_described(identity, owner)}, as_json)
    if output is None and (file.parent / "c").is_dir():
        note(f"{file.parent / 'c'} still holds the pack without a signature", quiet=quiet)


@options.command(
    "verify",
    "verify model.twin --key product.pub",
    "verify model.twin --key product.pub --lowest-counter 7 --json",
)
@options.written_pack
@options.file_option("--key", required=True, text="Public key, or the secret one of HMAC.")
@options.lowest_counter
@options.as_json
def verify(file: Path, key: Path, lowest_counter: int, as_json: bool) -> None:
    """Check that a pack was signed by the owner of a key.

    This is what a device does before it uses an update: the signature, every rule of the format,
    the counter and the self-test. Exit code 2 says that one of them is wrong, and which.
    """
    from twinedge import signing
    from twinedge.pack import read_pack
    from twinedge.runtime.self_test import check_release

    owner, data = signing.read_key(key), _read(file)
    with _naming(file):
        identity = signing.verify(data, owner, lowest_counter)
        check_release(read_pack(data))
    print_result({"pack": str(file), "bytes": len(data), **_described(identity, owner)}, as_json)


def _read(file: Path) -> bytes:
    """Read a pack that nobody has checked yet."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{shown(file)} cannot be read: {error.strerror}") from error


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Name the pack that an error is about."""
    from twinedge.pack import PackError

    try:
        yield
    except PackError as error:
        raise InputError(f"{shown(file)}: {error}") from error


def _described(identity: "Identity | None", owner: "Key") -> dict[str, Any]:
    """Return who signed a pack, and what it says it is."""
    from twinedge.signing import ALGORITHMS

    return {
        "algorithm": ALGORITHMS[owner.algorithm],
        "key": owner.id.hex(),
        **({} if identity is None else identity.described),
    }
