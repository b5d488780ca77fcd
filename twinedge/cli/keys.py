"""``twinedge keys``: keys that sign packs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinedge.cli import options
from twinedge.cli.output import print_help, print_result, print_text

if TYPE_CHECKING:
    from twinedge.signing import Key


@options.group("keys", "keys new product", "keys show product.pub --c")
@click.pass_context
def keys(context: click.Context) -> None:
    """Make and show keys that sign packs."""
    print_help(context)


@options.command("new", "keys new product", "keys new product --hmac")
@options.argument("name", "NAME", "Where to write it: NAME.key, and NAME.pub.")
@options.flag("--hmac", "hmac_key", text="One secret key for HMAC-SHA-256, for tiny devices.")
@options.as_json
def new(name: Path, hmac_key: bool, as_json: bool) -> None:
    """Draw a new key: NAME.key signs, NAME.pub verifies.

    NAME.key is private: whoever has it can sign packs for your devices, and without it you cannot
    update them. Keep a copy where nothing else is. NAME.pub is public, and goes into the program of
    the device. Both are PEM files of Ed25519, as openssl reads them.

    With --hmac there is one secret key, of 64 hex digits, which signs and verifies: every device
    that knows it could sign for all others.
    """
    from twinedge.signing import Key, write_key

    key = Key.new(hmac_key=hmac_key)
    paths = write_key(key, name)
    print_result({"files": [str(path) for path in paths], **_described(key)}, as_json)


@options.command("show", "keys show product.pub", "keys show product.pub --c > key.h")
@options.argument("file", "FILE", "Key that 'keys new' or openssl wrote.")
@options.flag("--c", "as_c", text="Print the bytes that a device verifies with, for C.")
@options.as_json
def show(file: Path, as_c: bool, as_json: bool) -> None:
    """Show which key a file holds, but nothing secret.

    With --c, the bytes that a device verifies with are printed as an array: the public key, or the
    secret key of HMAC.
    """
    from twinedge.signing import c_array, read_key

    key = read_key(file)
    if as_c and not as_json:
        print_text(c_array(key))
    else:
        print_result({"file": str(file), **_described(key)}, as_json)


def _described(key: "Key") -> dict[str, Any]:
    from twinedge.signing import ALGORITHMS

    return {
        "algorithm": ALGORITHMS[key.algorithm],
        "id": key.id.hex(),
        "signs": key.secret is not None,
        "public_key": None if key.public is None else key.public.hex(),
    }


for _command in (new, show):
    keys.add_command(_command)
