"""``sensor: - platform: twinedge``: a pack, the sensors it reads, and what it gives."""

import esphome.codegen as cg
import esphome.config_validation as cv
from esphome.components import binary_sensor, sensor, text_sensor
from esphome.const import CONF_ID, CONF_VALUE, STATE_CLASS_MEASUREMENT
from esphome.core import CORE

from . import CONF_PACK, Learner, TwinModel, learners, twinedge_ns
from .pack import PackError, read_pack

AUTO_LOAD = ["binary_sensor"]

CONF_COVERAGE = "coverage"
CONF_HIGH = "high"
CONF_LOW = "low"
CONF_OUTSIDE = "outside"
CONF_POINTS = "points"
CONF_SOURCES = "sources"

Level = twinedge_ns.struct("Level")


def _pack_file(value):
    path = cv.file_(value)
    try:
        read_pack(path)
    except PackError as error:
        raise cv.Invalid(str(error)) from error
    return path


def _check(config):
    """Compare with what the pack has."""
    pack = read_pack(config[CONF_PACK])
    with cv.prepend_path(CONF_SOURCES):
        config[CONF_SOURCES] = _sources(pack, config[CONF_SOURCES])
    if not pack.coverages:
        for key in (CONF_LOW, CONF_HIGH, CONF_COVERAGE):
            if key in config:
                raise cv.Invalid("the pack was exported without intervals", path=[key])
    if CONF_OUTSIDE in config and not pack.domain:
        raise cv.Invalid(
            "the pack was exported without the ranges of its features", path=[CONF_OUTSIDE]
        )
    coverage = round(1000 * config.get(CONF_COVERAGE, 0))
    if coverage and coverage not in pack.coverages:
        known = ", ".join(f"{one / 10:g}%" for one in pack.coverages)
        raise cv.Invalid(f"the pack has intervals for {known}", path=[CONF_COVERAGE])
    return config


def _sources(pack, given):
    """Ids of the sources in the order of the pack's columns."""
    names = [one.name for one in pack.columns or ()]
    if isinstance(given, list):
        count = len(names) or pack.features
        if len(given) != count:
            of = f": {', '.join(names)}" if names else ""
            raise cv.Invalid(f"{len(given)} sources are given, but the pack needs {count}{of}")
        if not names:
            return [cv.use_id(sensor.Sensor)(one) for one in given]
        return [_source(*pair) for pair in zip(pack.columns, given, strict=True)]
    if not isinstance(given, dict):
        raise cv.Invalid("sources are ids of sensors: a list, or one for each name")
    if not names:
        raise cv.Invalid(
            "the pack does not name its features: give the sources as a list, in their order"
        )
    given = {str(name): one for name, one in given.items()}
    for name in given:
        if name not in names:
            raise cv.Invalid(
                f"the pack has no feature {name}; it has {', '.join(names)}", path=[name]
            )
    lacking = [name for name in names if name not in given]
    if lacking:
        raise cv.Invalid(
            f"{len(given)} sources are given, but the pack needs {len(names)}: "
            f"{', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} missing"
        )
    return [_source(one, given[one.name]) for one in pack.columns]


def _source(column, given):
    kind = sensor.Sensor if column.levels is None else text_sensor.TextSensor
    with cv.prepend_path(column.name):
        return cv.use_id(kind)(given)


CONFIG_SCHEMA = cv.All(
    cv.Schema(
        {
            cv.GenerateID(): cv.declare_id(TwinModel),
            cv.Required(CONF_PACK): _pack_file,
            cv.Required(CONF_SOURCES): cv.valid,
            cv.Optional(CONF_COVERAGE): cv.percentage,
            cv.Optional(CONF_POINTS, default=16): cv.int_range(min=1, max=1024),
            cv.Optional(CONF_VALUE): sensor.sensor_schema(state_class=STATE_CLASS_MEASUREMENT),
            cv.Optional(CONF_LOW): sensor.sensor_schema(state_class=STATE_CLASS_MEASUREMENT),
            cv.Optional(CONF_HIGH): sensor.sensor_schema(state_class=STATE_CLASS_MEASUREMENT),
            cv.Optional(CONF_OUTSIDE): binary_sensor.binary_sensor_schema(),
        }
    ).extend(cv.COMPONENT_SCHEMA),
    cv.has_at_least_one_key(CONF_VALUE, CONF_LOW, CONF_HIGH, CONF_OUTSIDE),
    _check,
)


async def to_code(config):
    """Write the C++ of a model."""
    pack, id_ = read_pack(config[CONF_PACK]), config[CONF_ID]
    learners()[id_.id] = Learner(pack, config[CONF_POINTS])
    model = cg.new_Pvariable(id_, _array(f"{id_.id}_pack", pack.content), len(pack.content))
    await cg.register_component(model, config)
    columns = pack.columns
    for k, source in enumerate(config[CONF_SOURCES]):
        found = await cg.get_variable(source)
        column = columns and columns[k]
        if not column or column.levels is None:
            cg.add(model.add_source(found, column.start if column else k))
            continue
        levels = _levels(f"{id_.id}_levels_{k}", column.levels)
        cg.add(model.add_source(found, column.start, column.width, levels, len(column.levels)))
    if CONF_COVERAGE in config:
        cg.add(model.set_coverage(round(1000 * config[CONF_COVERAGE])))
    for key in (CONF_VALUE, CONF_LOW, CONF_HIGH):
        if key in config:
            cg.add(getattr(model, f"set_{key}_sensor")(await sensor.new_sensor(config[key])))
    if CONF_OUTSIDE in config:
        outside = await binary_sensor.new_binary_sensor(config[CONF_OUTSIDE])
        cg.add(model.set_outside_binary_sensor(outside))


def _array(name, content):
    """Declare the pack as a constant where the runtime can read it in place."""
    lines = [
        ", ".join(map(str, content[start : start + 32])) for start in range(0, len(content), 32)
    ]
    return _global(f"alignas(16) static const uint8_t {name}[]", ",\n".join(lines), name)


def _levels(name, levels):
    entries = ", ".join(f"{{{cg.safe_exp(text)}, {feature}}}" for text, feature in levels)
    return _global(f"static const {Level} {name}[]", entries, name)


def _global(declared, entries, name):
    CORE.add_global(cg.RawStatement(f"{declared} = {{\n{entries}}};"))
    return cg.RawExpression(name)
