"""Spread work over the workers of a Dask cluster."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from twinedge.errors import Parameter, ParameterError
from twinedge.extras import require

_PATIENCE = "20s"


def connect(address: str) -> Any:
    """Connect to the scheduler of a cluster.

    Parameters
    ----------
    address : str
        Where it is, as in ``tcp://10.0.0.5:8786``.

    Returns
    -------
    distributed.Client
        Close it after use.

    Raises
    ------
    ParameterError
        If no scheduler answers there.
    """
    require("distributed")
    from distributed import Client

    try:
        return Client(  # type: ignore[no-untyped-call]
            address, timeout=_PATIENCE, set_as_default=False
        )
    except (OSError, ValueError, TypeError) as error:
        raise ParameterError(
            Parameter("cluster", address),
            ": no Dask scheduler answers there; expected an address like tcp://10.0.0.5:8786",
        ) from error


def computed(client: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Yield what a function makes of each item, as soon as it is there; then close the client.

    If a worker dies, another one computes its item.
    """
    from distributed import as_completed

    with client:
        futures = client.map(function, items, pure=False)
        for future in as_completed(futures, loop=client.loop):  # type: ignore[no-untyped-call]
            yield future.result()
            future.release()
