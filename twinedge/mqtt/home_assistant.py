"""Messages by which Home Assistant finds a site: a sensor, and a number to type true values into.

Home Assistant looks for them under a prefix, ``homeassistant`` unless it was set up otherwise.
"""

import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinedge.mqtt.topics import Topics
from twinedge.runtime.device import Device
from twinedge.version import __version__

_FARTHEST = 1e9  # of a number that may be typed
_STEP = 0.001  # the finest that is allowed
_MOST = 40  # characters of a name in a topic


@dataclass(frozen=True)
class Discovery:
    """How to announce sites.

    Parameters
    ----------
    prefix : str
        First level of the topics that Home Assistant looks at.
    name : str
        That of the service.
    unit : str or None
        Unit of the target.
    expire : int or None
        Seconds after which a prediction is too old to show.
    teach : bool
        Whether true values can be learnt.
    """

    prefix: str
    name: str
    unit: str | None
    expire: int | None
    teach: bool

    def messages(
        self, site: str, device: Device, topics: Topics, status: str
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return topic and content of each message about a site.

        ``status`` is the topic of the service's status.
        """
        key = _key(self.name, site or "device")
        both: dict[str, Any] = {
            "availability_topic": status,
            "availability_template": "{{ value_json.state }}",
            "device": {
                "identifiers": [key],
                "name": site or self.name,
                "manufacturer": "twinedge",
                "model": Path(device.info["file"]).name,
                "sw_version": __version__,
            },
            "origin": {"name": "twinedge", "sw_version": __version__},
        }
        if self.unit:
            both["unit_of_measurement"] = self.unit
        found = []
        for target in device.target_names:
            alone = device.targets == 1
            own = key if alone else f"{key}_{_key(target)}"
            name = json.dumps(target)
            sensor: dict[str, Any] = {
                "name": target,
                "unique_id": own,
                "state_topic": topics.prediction(site),
                "value_template": f"{{{{ value_json.prediction{'' if alone else f'[{name}]'} }}}}",
                "json_attributes_topic": topics.prediction(site),
                "state_class": "measurement",
            }
            if self.expire:
                sensor["expire_after"] = self.expire
            found.append((f"{self.prefix}/sensor/{own}/config", sensor | both))
            if not self.teach:
                continue
            number: dict[str, Any] = {
                "name": f"True {target}",
                "unique_id": f"{own}_truth",
                "command_topic": topics.truth(site),
                "min": -_FARTHEST,
                "max": _FARTHEST,
                "step": _STEP,
                "mode": "box",
                "entity_category": "config",
            }
            if not alone:
                number["command_template"] = f"{{{{ {{{name}: value}} | to_json }}}}"
            found.append((f"{self.prefix}/number/{own}_truth/config", number | both))
        return found


def _key(*names: str) -> str:
    """Return names as part of a topic and of an identity; different names stay different."""
    words = [slug(one) for one in names]
    if words != [*names]:
        words.append(f"{zlib.crc32('/'.join(names).encode()):08x}")
    return "_".join(filter(None, words))


def slug(name: str) -> str:
    """Return a name in letters, digits and dashes, as topics of Home Assistant have it."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name)[:_MOST].strip("-")
