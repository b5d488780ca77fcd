"""``button: - platform: twinedge``: takes back the true value that was learnt last, or all."""

import esphome.codegen as cg
import esphome.config_validation as cv
from esphome.components import button
from esphome.const import ENTITY_CATEGORY_CONFIG

from .. import CONF_TWINEDGE_ID, MODEL_SCHEMA, check_learns, teachable, twinedge_ns

CONF_FORGET = "forget"

ForgetButton = twinedge_ns.class_("ForgetButton", button.Button)

CONFIG_SCHEMA = (
    button.button_schema(ForgetButton, entity_category=ENTITY_CATEGORY_CONFIG)
    .extend(MODEL_SCHEMA)
    .extend({cv.Optional(CONF_FORGET, default="last"): cv.one_of("last", "all", lower=True)})
)
FINAL_VALIDATE_SCHEMA = check_learns


async def to_code(config):
    """Write the C++ of the button."""
    found = await button.new_button(config)
    cg.add(found.set_parent(await teachable(config[CONF_TWINEDGE_ID])))
    cg.add(found.set_all(config[CONF_FORGET] == "all"))
