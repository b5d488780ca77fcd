"""What an installation lacks, and what installs it: an extra, or a C compiler."""

from importlib.util import find_spec

from twinedge.errors import MissingPackageError

# By the name that is imported. What a library brings along can be the first that is found missing.
EXTRAS = {
    **dict.fromkeys(("tensorflow", "keras", "flatbuffers"), "train"),
    **dict.fromkeys(("sklearn", "scipy", "joblib", "threadpoolctl"), "train"),
    "onnx": "export",
    "onnxruntime": "onnx",
    "ai_edge_litert": "tflite",
    **dict.fromkeys(("matplotlib", "jinja2"), "report"),
    **dict.fromkeys(("pandas", "pyarrow", "openpyxl"), "tables"),
    "distributed": "cluster",
    "paho": "mqtt",
    "cryptography": "sign",
}

NO_COMPILED_RUNTIME = (
    "this installation has no compiled C runtime: numpy evaluates packs, with the same bits but "
    "slower; where there is a C compiler, 'pip install --force-reinstall --no-deps "
    "--no-binary twinedge twinedge' compiles it"
)


def has_compiled_runtime() -> bool:
    """Tell whether the C runtime was compiled for this Python; nothing is loaded."""
    return find_spec("twinedge.runtime._native") is not None


def missing(module: str | None) -> MissingPackageError | None:
    """Return the error for a module that cannot be imported; None if no extra installs it.

    Examples
    --------
    >>> str(missing("onnx.helper"))
    "onnx is not installed: pip install 'twinedge[export]'"
    >>> missing("sqlite3") is None
    True
    """
    name = (module or "").partition(".")[0]
    if name not in EXTRAS:
        return None
    return MissingPackageError(f"{name} is not installed: pip install 'twinedge[{EXTRAS[name]}]'")


def lacking(*modules: str) -> MissingPackageError | None:
    """Return the error for the first of these modules that is not installed; None if all are."""
    return next((missing(name) for name in modules if find_spec(name) is None), None)


def require(*modules: str) -> None:
    """Refuse to begin work that would end at the import of one of these modules.

    Raises
    ------
    MissingPackageError
        If one is not installed; it names the extra that installs it.
    """
    if error := lacking(*modules):
        raise error
