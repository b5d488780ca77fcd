"""twinedge in ESPHome: predictions with intervals from sensors, by a model in a .twin pack."""

from dataclasses import dataclass

import esphome.codegen as cg
import esphome.config_validation as cv
import esphome.final_validate as fv
from esphome import automation
from esphome.const import CONF_ID, CONF_VALUE
from esphome.core import CORE, ID, EsphomeError

from .pack import Pack, read_pack

DOMAIN = "twinedge"
CONF_PACK = "pack"
CONF_TWINEDGE_ID = "twinedge_id"

twinedge_ns = cg.esphome_ns.namespace("twinedge")
TwinModel = twinedge_ns.class_("TwinModel", cg.Component)
LearnAction = twinedge_ns.class_("LearnAction", automation.Action)

_CANNOT_LEARN = (
    "this model cannot learn: its pack was exported without intervals, which say how far to trust "
    "a true value"
)

MODEL_SCHEMA = cv.Schema({cv.GenerateID(CONF_TWINEDGE_ID): cv.use_id(TwinModel)})


@dataclass(frozen=True)
class Learner:
    """What a model needs to keep points."""

    pack: Pack
    points: int


def learners() -> dict[str, Learner]:
    """Return what each model would need, by its id."""
    return CORE.data.setdefault(DOMAIN, {})


def check_learns(config):
    """Refuse to teach a model whose pack cannot learn."""
    full = fv.full_config.get()
    model = full.get_config_for_path(full.get_path_for_id(config[CONF_TWINEDGE_ID])[:-1])
    if not read_pack(model[CONF_PACK]).coverages:
        raise cv.Invalid(_CANNOT_LEARN)


async def teachable(model_id: ID) -> cg.MockObj:
    """Return the variable of a model, which will then keep points."""
    model = await cg.get_variable(model_id)
    learner = learners().pop(model_id.id, None)
    if learner is not None:  # the first that teaches it
        if not learner.pack.coverages:
            raise EsphomeError(f"{model_id}: {_CANNOT_LEARN}")
        features = cg.TemplateArguments(learner.pack.features)
        cg.add(model.keep_points(features, learner.points, _key(model_id, learner.pack)))
    return model


def _key(model_id: ID, pack: Pack) -> int:
    """Where preferences of a model's points begin: another id or other columns, another place."""
    key = 2166136261  # FNV-1a
    for byte in f"twinedge {model_id.id} {pack.schema} {pack.features}".encode():
        key = (key ^ byte) * 16777619 % (1 << 32)
    return key & ~0x3FF  # no more points than that follow it


@automation.register_action(
    "twinedge.learn",
    LearnAction,
    cv.Schema(
        {
            cv.GenerateID(): cv.use_id(TwinModel),
            cv.Required(CONF_VALUE): cv.templatable(cv.float_),
        }
    ),
    synchronous=True,
)
async def learn_to_code(config, action_id, template_arg, args):
    """Write the C++ of the action."""
    action = cg.new_Pvariable(action_id, template_arg)
    cg.add(action.set_parent(await teachable(config[CONF_ID])))
    cg.add(action.set_value(await cg.templatable(config[CONF_VALUE], args, cg.float_)))
    return action
