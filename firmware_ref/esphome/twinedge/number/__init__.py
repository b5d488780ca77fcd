"""``number: - platform: twinedge``: a field to type true values into, which the model learns."""

import esphome.codegen as cg
import esphome.config_validation as cv
from esphome.components import number
from esphome.const import CONF_MAX_VALUE, CONF_MIN_VALUE, CONF_MODE, CONF_STEP

from .. import CONF_TWINEDGE_ID, MODEL_SCHEMA, check_learns, teachable, twinedge_ns

TruthNumber = twinedge_ns.class_("TruthNumber", number.Number)


def _check(config):
    if config[CONF_MAX_VALUE] <= config[CONF_MIN_VALUE]:
        raise cv.Invalid("max_value must be greater than min_value")
    return config


CONFIG_SCHEMA = cv.All(
    number.number_schema(TruthNumber)
    .extend(MODEL_SCHEMA)
    .extend(
        {
            cv.Required(CONF_MIN_VALUE): cv.float_,
            cv.Required(CONF_MAX_VALUE): cv.float_,
            cv.Required(CONF_STEP): cv.positive_float,
            cv.Optional(CONF_MODE, default="BOX"): cv.enum(number.NUMBER_MODES, upper=True),
        }
    ),
    _check,
)
FINAL_VALIDATE_SCHEMA = check_learns


async def to_code(config):
    """Write the C++ of the field."""
    field = await number.new_number(
        config,
        min_value=config[CONF_MIN_VALUE],
        max_value=config[CONF_MAX_VALUE],
        step=config[CONF_STEP],
    )
    cg.add(field.set_parent(await teachable(config[CONF_TWINEDGE_ID])))
