"""The stores of many devices that share a pack, in a folder: one file for each, by its name.

However many devices there are, the points of only so many are in memory at a time.
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from twinedge.errors import InputError
from twinedge.pack.contents import Array
from twinedge.runtime.adaptation import MOST_POINTS
from twinedge.runtime.device import Device
from twinedge.runtime.pack_device import PackDevice

MOST_OPEN = 1000
_NAMELESS = "device"  # the file of a device without a name
_LONGEST = 255  # bytes of a name on most file systems


class StoreFolder:
    """Stores of devices, and devices that predict with them.

    Parameters
    ----------
    device : Device
        The model, which has learnt nothing.
    folder : path
        Where the stores are; it is made with the first one.
    most_open : int
        Of how many devices the points are kept in memory.

    Raises
    ------
    InputError
        If the model cannot learn, or the folder is a file.
    """

    def __init__(self, device: Device, folder: str | Path, most_open: int = MOST_OPEN) -> None:
        if not isinstance(device, PackDevice) or device.pack.intervals is None:
            raise InputError(
                f"{device.info['file']} cannot learn: only a .twin with intervals does"
            )
        self._model, self._folder, self._most_open = device, Path(folder), most_open
        self._open: OrderedDict[str, PackDevice] = OrderedDict()
        if self._folder.exists() and not self._folder.is_dir():
            raise InputError(f"{folder} is a file, not a folder for stores")

    def path(self, name: str) -> Path:
        """Return the file of a device's store.

        Raises
        ------
        InputError
            If the name is too long for one.
        """
        file = quote(name or _NAMELESS, safe=" ,;@()[]{}!'+=&~-") + ".store"
        if file.startswith("."):
            file = "%2E" + file[1:]
        if len(file) > _LONGEST:
            raise InputError(f"{name[:40]!r}... is too long for the name of a file")
        return self._folder / file

    def device(self, name: str) -> PackDevice | None:
        """Return a device with what its store holds; None if it has none.

        Raises
        ------
        InputError
            If the file is not a store, or belongs to another model.
        """
        if name not in self._open and not self.path(name).exists():
            return None
        return self._opened(name)

    def learn(self, name: str, x: Array, y: Sequence[float], time: int) -> PackDevice:
        """Learn a point ``(f,)`` with its targets ``(m,)``, and return the device.

        If its store is full, the oldest quarter goes.

        Raises
        ------
        InputError
            If the point cannot be learnt, or the file cannot be written.
        """
        device = self._opened(name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make {self._folder}: {error.strerror}") from error
        assert device.store is not None
        try:
            if len(device.store.held) >= MOST_POINTS:
                device.forget(keep=3 * MOST_POINTS // 4)
            device.learn(x[None], y if device.targets == 1 else [y], [time])
        finally:
            device.store.journal.close()  # others may read and write; files are not kept open
        return device

    def _opened(self, name: str) -> PackDevice:
        if name not in self._open:
            device = self._model.without_points()
            device.keep(self.path(name))
            self._open[name] = device
            if len(self._open) > self._most_open:
                self._open.popitem(last=False)
        self._open.move_to_end(name)
        return self._open[name]
