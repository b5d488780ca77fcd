"""``twinedge serve``: predictions for an MQTT broker."""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinedge.cli import options
from twinedge.cli.output import note
from twinedge.cli.reading import check_state
from twinedge.cli.values import SHARE, Number, Whole, exported_for
from twinedge.defaults import COVERAGE
from twinedge.errors import InputError

if TYPE_CHECKING:
    import ssl

_USERNAME, _PASSWORD = "TWINEDGE_MQTT_USERNAME", "TWINEDGE_MQTT_PASSWORD"


@options.command(
    "serve",
    "serve out --mqtt mqtt://hub --topic plant/+/raw",
    "serve out --mqtt mqtt://hub --topic plant/+/raw --store stores",
    "serve out --mqtt mqtts://me@hub --topic hall/+ --password-file key",
)
@options.argument(
    "model", "FILE", "Export folder, or a .twin, .tflite or .onnx file; only a .twin learns."
)
@options.option(
    "--mqtt",
    metavar="URL",
    required=True,
    text="The broker: mqtt://HOST, or mqtts://HOST for TLS; USER@HOST and HOST:PORT work, too.",
)
@options.option(
    "--topic",
    metavar="FILTER",
    required=True,
    text="Where queries come from; + stands for any site, as in plant/+/raw.",
)
@options.option(
    "--prediction",
    metavar="WORD",
    default="prediction",
    text="Last level of the topics for predictions.",
)
@options.option(
    "--truth", metavar="WORD", default="truth", text="Last level of the topics for true values."
)
@options.folder_option("--store", text="Folder with a store for each site; it is made if needed.")
@options.state_file
@options.value(
    "--coverage",
    f"{COVERAGE}|SHARE",
    SHARE,
    text="How often the true value is between low and high.",
)
@options.value("--neighbors", "N", Whole(1), text="Use only the N anchors nearest to each point.")
@options.option(
    "--keep",
    metavar="KEY",
    multiple=True,
    text="Key of a query that its answer repeats, such as time; may be repeated.",
)
@options.option(
    "--discovery",
    metavar="PREFIX",
    text="Announce each site to Home Assistant, which looks under the prefix homeassistant.",
)
@options.option("--unit", metavar="UNIT", text="Unit of the target, for --discovery.")
@options.value(
    "--expire",
    "SECONDS",
    Whole(1),
    text="With --discovery: a prediction that is older is not shown any more.",
)
@options.option(
    "--name",
    metavar="NAME",
    text="What the broker knows this program by; by default it is made of target and filter.",
)
@options.file_option(
    "--password-file", text=f"File with the password; or set {_PASSWORD} (and {_USERNAME})."
)
@options.file_option("--ca", text="Certificates to trust, in PEM, instead of the system's.")
@options.file_option("--cert", text="Certificate of this program, in PEM.")
@options.file_option("--key", text="Key of that certificate.")
@options.value(
    "--every",
    "SECONDS",
    Number(0.1),
    default=10.0,
    text="Time between two messages on the status topic.",
)
@options.backend
@options.quiet
def serve(
    model: Path,
    mqtt: str,
    topic: str,
    prediction: str,
    truth: str,
    store: Path | None,
    state: Path | None,
    coverage: float | None,
    neighbors: int | None,
    keep: tuple[str, ...],
    discovery: str | None,
    unit: str | None,
    expire: int | None,
    name: str | None,
    password_file: Path | None,
    ca: Path | None,
    cert: Path | None,
    key: Path | None,
    every: float,
    backend: str,
    quiet: bool,
) -> None:
    """Answer what a broker brings, until it is stopped.

    A query is a JSON object with the columns of the model, or an array; of a model with one column,
    also a bare number. It comes on a topic like plant/press/raw, and is answered with a JSON object
    on plant/press/prediction: prediction, spread, what is outside the range, scale, low, high.

    On plant/press/truth, a number is the true value of the last query; an object with "value" and
    the columns is a point of its own. With --store, each site learns from its true values.

    A model with derived inputs takes samples: each site has a window of its own, and is answered
    once that is full. A sample without a time counts as measured now; a true value is that of the
    last sample.

    Nothing that is acknowledged is lost if the broker or this program restarts. Counts, delays and
    faults are on the topic twinedge/NAME/status, which the broker retains.
    """
    from twinedge.extras import require
    from twinedge.runtime.loading import load

    require("paho")
    from twinedge.mqtt.broker import Address, Connection, Events
    from twinedge.mqtt.home_assistant import Discovery, slug
    from twinedge.mqtt.service import MOST_SITES, Service, offline
    from twinedge.mqtt.topics import Topics
    from twinedge.runtime.sample_streams import KeptState, SampleStreams
    from twinedge.runtime.store_folder import StoreFolder

    topics, address = Topics(topic, prediction, truth), Address.parse(mqtt)
    model = exported_for(model, backend)
    if model.is_dir() or not model.suffix:
        raise InputError(f"{model}: serve takes exported files, not a run: export it first")
    if discovery is None and (unit or expire):
        raise InputError("--unit and --expire are for Home Assistant: add --discovery")
    _check_level("--discovery", discovery)
    _check_level("--name", name)
    context = _context(ca, cert, key) if address.encrypted else None
    if context is None and (ca or cert or key):
        raise InputError("--ca, --cert and --key are for TLS: begin --mqtt with mqtts://")
    credentials = _credentials(address.username, password_file)
    device = load(model, backend)
    if unit and device.targets > 1:
        raise InputError("--unit is for models of one target")
    if coverage is not None:
        device.check_coverage(coverage)
    check_state(state, device)
    streams = SampleStreams(device.encoding, MOST_SITES)
    name = name or f"twinedge-{slug(device.target_name)}-{slug(topic)}"
    status_topic = f"twinedge/{name}/status"
    service = Service(
        device,
        topics,
        status_topic,
        coverage=coverage,
        neighbors=neighbors,
        keep=keep,
        stores=None if store is None else StoreFolder(device, store),
        discovery=None
        if discovery is None
        else Discovery(discovery, name, unit, expire, teach=store is not None),
        every=every,
        state=None if state is None else KeptState(state, streams),
        streams=streams,
    )
    connection = Connection(
        address,
        name,
        [topics.queries, topics.truths],
        (status_topic, offline()),
        Events(
            note=lambda line: note(line, quiet=quiet),
            answered=service.status.answered,
            refused=service.refuse,
            connected=service.report,
        ),
        credentials=credentials,
        context=context,
    )
    stopped: list[int] = []

    def stop(number: int, _frame: Any) -> None:
        stopped.append(number)
        signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
        connection.wake()

    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        service.run(connection, lambda: bool(stopped))
    finally:
        service.keep()
        for number, handler in before.items():
            signal.signal(number, handler)
    if signal.SIGINT in stopped:
        raise KeyboardInterrupt  # which has an exit code of its own


def _check_level(option: str, word: str | None) -> None:
    if word is not None and (not word or set(word) & set("/+#\0")):
        raise InputError(f"{option} {word!r} is not a level of a topic: a word without / + #")


def _credentials(username: str | None, file: Path | None) -> tuple[str | None, str | None]:
    """Return user and password, from the file or from the environment."""
    username = username or os.environ.get(_USERNAME)
    password = os.environ.get(_PASSWORD)
    if file is not None:
        try:
            password = file.read_text("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(f"{file} is not UTF-8 text") from error
        except OSError as error:
            raise InputError(f"cannot read {file}: {error.strerror}") from error
    if password is not None and username is None:
        raise InputError(f"there is a password but no user: write USER@HOST, or set {_USERNAME}")
    return username, password


def _context(ca: Path | None, cert: Path | None, key: Path | None) -> "ssl.SSLContext":
    """Return what TLS trusts, and what it proves who we are with."""
    import ssl

    if key is not None and cert is None:
        raise InputError("--key belongs to a certificate: add --cert")
    for file in (ca, cert, key):
        if file is not None and not file.is_file():
            raise InputError(f"{file} does not exist")
    try:
        context = ssl.create_default_context(cafile=ca)
        if cert is not None:
            context.load_cert_chain(cert, key)
    except (ssl.SSLError, OSError) as error:
        files = ", ".join(str(one) for one in (ca, cert, key) if one is not None)
        raise InputError(f"{files}: no certificates in PEM that fit together ({error})") from error
    return context
