"""What is announced to Home Assistant about a site."""

from pathlib import Path

import pytest

from twinedge.mqtt.home_assistant import Discovery
from twinedge.mqtt.topics import Topics
from twinedge.runtime.loading import load

TOPICS = Topics("plant/+/raw")


@pytest.fixture
def announced(pack):
    """Topics, and what a service called s announces on them: ``announced("press")``."""

    def make(site, unit=None, expire=None, teach=True, model=pack):
        discovery = Discovery("ha", "s", unit, expire, teach)
        return discovery.messages(site, load(model), TOPICS, "status")

    return make


def test_a_site_is_a_sensor_and_a_number_to_type_true_values_into(announced):
    (one, sensor), (other, number) = announced("press", "MPa", 60)
    assert (one, other) == ("ha/sensor/s_press/config", "ha/number/s_press_truth/config")
    assert sensor["state_topic"] == "plant/press/prediction"
    assert number["command_topic"] == "plant/press/truth"
    assert sensor["unit_of_measurement"] == number["unit_of_measurement"] == "MPa"
    assert (sensor["expire_after"], number.get("expire_after")) == (60, None)


def test_without_a_store_nothing_is_taught_and_only_what_is_known_is_announced(announced):
    ((topic, sensor),) = announced("press", teach=False)
    assert topic == "ha/sensor/s_press/config"
    assert not {"unit_of_measurement", "expire_after"} & set(sensor)


def test_names_that_look_alike_in_a_topic_stay_different(announced):
    topics = [announced(site)[0][0] for site in ("press 3", "press/3", "press-3")]
    assert topics[2] == "ha/sensor/s_press-3/config"
    assert all(one.startswith("ha/sensor/s_press-3_") for one in topics[:2])
    assert len(set(topics)) == 3


def test_each_of_several_targets_has_its_own(announced):
    model = Path(__file__).parents[1] / "golden" / "three-targets-of-everything.twin"
    names = load(model).target_names
    found = announced("press", model=model)
    assert len({topic for topic, _ in found}) == 2 * len(names)
    sensors, numbers = [one for _, one in found[::2]], [one for _, one in found[1::2]]
    for name, sensor, number in zip(names, sensors, numbers, strict=True):
        assert sensor["value_template"] == f'{{{{ value_json.prediction["{name}"] }}}}'
        assert number["command_template"] == f'{{{{ {{"{name}": value}} | to_json }}}}'
