"""Keys, and the signatures of packs: Ed25519 through ``cryptography``, or HMAC-SHA-256.

A pack that comes over the air is only as good as whoever made it. Ed25519 signs with a private key
and verifies with a public one, which may be known to everybody. HMAC-SHA-256 has one secret key for
both, so a device that gives it away lets others sign; it is for parts too small for Ed25519.
"""

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from twinedge.atomic_files import check_file, write_file
from twinedge.errors import InputError
from twinedge.extras import require
from twinedge.pack import PackError, Reason, read_header, read_pack, write_pack
from twinedge.pack.layout import Kind
from twinedge.pack.release import (
    ED25519,
    HMAC_SHA256,
    Identity,
    prepare_signature,
    put_sections,
    put_signature,
    read_signature,
    release_of,
)
from twinedge.runtime.self_test import check_release, new_identity, self_test_of

ALGORITHMS = {ED25519: "Ed25519", HMAC_SHA256: "HMAC-SHA-256"}
_SECRET_SIZES = range(32, 65)  # bytes of a key of HMAC: longer ones would be hashed first
_LONGEST_FILE = 1 << 16


@dataclass(frozen=True)
class Key:
    """A key that signs, verifies, or both.

    Parameters
    ----------
    algorithm : int
        ``ED25519`` or ``HMAC_SHA256``.
    public : bytes, optional
        The public key, 32 bytes; HMAC has none.
    secret : bytes, optional
        The private key, 32 bytes, or the key of HMAC. Without it, a key only verifies.
    """

    algorithm: int
    public: bytes | None
    secret: bytes | None = None

    def __repr__(self) -> str:
        """Show which key it is, and never its secret."""
        return f"Key({ALGORITHMS[self.algorithm]}, id={self.id.hex()})"

    @classmethod
    def new(cls, *, hmac_key: bool = False) -> "Key":
        """Draw a new key from the random numbers of the system.

        Raises
        ------
        MissingPackageError
            For Ed25519, if ``cryptography`` is not installed.
        """
        secret = secrets.token_bytes(32)
        return cls(HMAC_SHA256, None, secret) if hmac_key else _with_public(secret)

    @property
    def id(self) -> bytes:
        """Eight bytes that stand for the key in signatures, and say nothing of its secret."""
        shown = self.secret if self.public is None else self.public
        assert shown is not None
        return hashlib.sha256(shown).digest()[:8]

    def signature(self, message: bytes) -> bytes:
        """Sign a message.

        Raises
        ------
        InputError
            If this is a public key.
        """
        if self.secret is None:
            raise InputError("this is a public key: sign with the private one")
        if self.algorithm == HMAC_SHA256:
            return hmac.digest(self.secret, message, "sha256")
        require("cryptography")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.secret).sign(message)

    def is_good(self, signature: bytes, message: bytes) -> bool:
        """Whether the signature of a message is by this key."""
        if self.algorithm == HMAC_SHA256:
            return hmac.compare_digest(self.signature(message), signature)
        require("cryptography")
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        assert self.public is not None
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def text(self, *, public: bool = False) -> str:
        """Return the file of the key: PEM, as openssl has it, or hex digits for HMAC."""
        if self.algorithm == HMAC_SHA256:
            assert self.secret is not None
            return self.secret.hex() + "\n"
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (
            Ed25519PrivateKey,
            Ed25519PublicKey,
        )

        if public or self.secret is None:
            assert self.public is not None
            return (
                Ed25519PublicKey.from_public_bytes(self.public)
                .public_bytes(
                    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
                )
                .decode()
            )
        return (
            Ed25519PrivateKey.from_private_bytes(self.secret)
            .private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            .decode()
        )


def _with_public(secret: bytes) -> Key:
    require("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = Ed25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
    return Key(ED25519, public, secret)


def write_key(key: Key, name: Path) -> tuple[Path, ...]:
    """Write a new key as NAME.key, which only its owner may read, and NAME.pub if it has one.

    Raises
    ------
    InputError
        If a file of this name exists: a key that is lost cannot be had again.
    """
    private, public = (name.with_name(f"{name.name}.{end}") for end in ("key", "pub"))
    paths = (private,) if key.public is None else (private, public)
    for path in paths:
        check_file(path)
        if path.exists():
            raise InputError(f"{path} exists, and a key is never replaced: choose another name")
    text = key.text()
    try:
        number = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w", encoding="ascii", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            if not isinstance(error, FileExistsError):
                private.unlink()
        raise InputError(f"cannot write {private}: {error.strerror}") from error
    if key.public is not None:
        try:
            write_file(public, key.text(public=True))
        except BaseException:
            private.unlink()
            raise
    return paths


def read_key(path: Path) -> Key:
    """Read a private or public key of Ed25519 (PEM), or a key of HMAC (hex digits).

    Raises
    ------
    InputError
        If it is none of them; a ``MissingPackageError`` if a PEM cannot be read without more.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_FILE)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if text.lstrip().startswith(b"-----BEGIN "):
        return _read_pem(path, text)
    digits = b"".join(text.split())
    secret = b""
    with suppress(ValueError):
        secret = bytes.fromhex(digits.decode("ascii"))
    if len(secret) not in _SECRET_SIZES:
        raise InputError(
            f"{path} is not a key: neither PEM of Ed25519, nor 64 to 128 hex digits for HMAC"
        )
    return Key(HMAC_SHA256, None, secret)


def c_array(key: Key) -> str:
    """Return what a device verifies with as a C array, eight bytes to a line."""
    own = key.secret if key.public is None else key.public
    assert own is not None
    lines = (own[at : at + 8] for at in range(0, len(own), 8))
    rows = ",\n".join("    " + ", ".join(f"0x{one:02x}" for one in line) for line in lines)
    return f"static const unsigned char twin_key[{len(own)}] = {{\n{rows}}};"


def _read_pem(path: Path, text: bytes) -> Key:
    require("cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

    try:
        if b"PUBLIC KEY" in text:
            public = serialization.load_pem_public_key(text)
            if isinstance(public, Ed25519PublicKey):
                return Key(ED25519, public.public_bytes_raw())
        else:
            private = serialization.load_pem_private_key(text, None)
            if isinstance(private, Ed25519PrivateKey):
                return _with_public(private.private_bytes_raw())
    except TypeError as error:
        raise InputError(
            f"{path} is encrypted: 'openssl pkey -in {path}' asks for its password and prints it "
            "without"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"{path} is damaged, or not a key") from error
    raise InputError(f"{path} is a key of another kind: only Ed25519 and HMAC sign packs")


def sign(data: bytes, key: Key, counter: int | None = None, *, lean: bool = False) -> bytes:
    """Sign a pack, in place of a signature that it has.

    A pack without a self-test or an identity gets them first.

    Parameters
    ----------
    data : bytes
        The whole file.
    key : Key
        With its secret.
    counter : int, optional
        Of releases; by default that in the pack, or 0.
    lean : bool
        Leave out metadata and ids of anchors, which a device does not need.

    Raises
    ------
    InputError
        If the pack is not sound, or not what it says it is; if the key does not sign.
    """
    pack = read_pack(data)
    identity, test = check_release(pack)
    if identity is None:
        identity = new_identity(pack, counter=counter)
    elif counter is not None:
        identity = replace(identity, counter=counter)
    contents = {} if test is not None else {Kind.SELF_TEST: self_test_of(pack).content()}
    contents[Kind.IDENTITY] = identity.content()
    if lean:
        data = write_pack(pack, metadata=False)
    room, message = prepare_signature(put_sections(data, contents), key.algorithm, key.id)
    return put_signature(room, key.signature(message))


def verify(data: bytes, key: Key, lowest_counter: int = 0) -> Identity | None:
    """Refuse a pack that is not signed by the owner of a key.

    Parameters
    ----------
    data : bytes
        The whole file.
    key : Key
        A public key, a private one, or one of HMAC.
    lowest_counter : int
        Refuse packs whose counter is below: what was signed once stays signed.

    Returns
    -------
    Identity or None
        What the pack says it is, as its signer vouches; None if it does not say.

    Raises
    ------
    PackError
        If it is not sound, not signed, signed by another key, changed since, or too old.
    """
    read_header(data)
    found = read_signature(data)
    if found is None:
        raise PackError(Reason.VALUE, "it is not signed")
    if (found.algorithm, found.key) != (key.algorithm, key.id):
        raise PackError(
            Reason.VALUE,
            f"it is signed by another key: {ALGORITHMS[found.algorithm]} {found.key.hex()}, not "
            f"{ALGORITHMS[key.algorithm]} {key.id.hex()}",
        )
    if not key.is_good(found.value, found.signed):
        raise PackError(Reason.VALUE, "its signature is wrong: it was changed after it was signed")
    release = release_of(data)
    content = None if release is None else release.identity
    identity = None if content is None else Identity.read(content)
    counter = 0 if identity is None else identity.counter
    if counter < lowest_counter:
        raise PackError(
            Reason.VALUE, f"its counter is {counter}: a release before {lowest_counter} is refused"
        )
    return identity
