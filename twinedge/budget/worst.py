"""The most instructions that a prediction can take, from the shape of its model.

The C runtime is loops over twins, blocks of anchors, layers, neurons and inputs. How often each of
them runs follows from the shape alone; what one round takes depends on the numbers in it, but not
without limit. So the most instructions are a sum of such counts, each with a rate that covers the
longest way through one round. ``twinedge firmware measure`` finds the rates.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from twinedge.budget.model import Model
from twinedge.errors import InputError
from twinedge.pack.layout import align

_GROUPS = 4, 8  # neurons or inputs that a kernel computes together; the rest may take longer
FOURS = 4  # rows of weights are padded to a multiple of this


def rounds(model: Model, pairs: int) -> dict[str, int]:
    """Count how often each loop of a prediction runs.

    Parameters
    ----------
    model : Model
    pairs : int
        Anchors in a block of the kernel; a block that is not full takes as long.

    Returns
    -------
    dict of str to int
        Rounds by what they are for, always with the same names.
    """
    features, first = align(model.inputs, FOURS), model.hidden[0]
    blocks = sum(-(-count // pairs) for count in model.evaluated)
    further = [(align(inputs, FOURS), outputs) for inputs, outputs in pairwise(model.hidden)]
    searched = [
        (owned, chosen)
        for owned, chosen in zip(model.counts, model.evaluated, strict=True)
        if chosen < owned
    ]
    steps = [(owned + 2 * chosen, chosen.bit_length() - 1) for owned, chosen in searched]
    found = {
        "call": 1,
        "feature": model.features,
        "twin": model.twins,
        "query neuron": model.twins * first,
        "query product": model.twins * first * features,
        "estimate": model.members,
        "block": blocks,
        "block feature": blocks * features,
        "layer": blocks * len(model.hidden),
        "neuron": blocks * sum(model.hidden),
        "last neuron": blocks * model.hidden[-1],
        "only neuron": blocks * first * (len(model.hidden) == 1),
        "first product": blocks * first * features,
        "product": blocks * sum(inputs * outputs for inputs, outputs in further),
        "search step": sum(step for step, _ in steps),
        "heap level": sum(step * depth for step, depth in steps),
        "distance": sum(owned * model.inputs for owned, _ in searched),
    }
    layers = [(features, first), *further]
    for group in _GROUPS:
        found |= {
            f"neurons by {group}": blocks * sum(-(-one // group) for one in model.hidden),
            f"neuron beside {group}": blocks * sum(one % group for one in model.hidden),
            f"first product beside {group}": blocks * features * (first % group),
            f"product beside {group}": blocks * sum(ins * (out % group) for ins, out in further),
            f"inputs by {group}": blocks * sum(-(-ins // group) * out for ins, out in layers),
            f"products by {group}": blocks * sum(ins * -(-out // group) for ins, out in layers),
        }
    return found


NAMES = tuple(rounds(Model(1, (1,), (1,)), 1))


def part_rounds(model: Model) -> dict[str, dict[str, int]]:
    """Count how often the loops of an input map and of a target curve run, by their part.

    A map goes through the knots of each curve, and adds two rows of its table to the outputs. A
    target curve brings a prediction and the ends of its interval back.
    """
    curves, outputs = model.map_curves, model.map_outputs
    return {
        "map": {
            "map": int(outputs > 0),
            "map output": outputs,
            "map curve": curves,
            "map knot": model.map_rows,
            "map product": curves * outputs,
        },
        "target_curve": {"target curve": int(model.target_bins > 0)},
    }


PART_NAMES = {name: tuple(found) for name, found in part_rounds(Model(1, (1,), (1,))).items()}


@dataclass(frozen=True)
class Worst:
    """What the longest prediction takes with one build.

    Parameters
    ----------
    pairs : int
        Anchors in a block of its kernel.
    rates : dict of str to float
        Most instructions of a round, by its name in ``rounds`` or ``part_rounds``; 0 for names that
        are not there.
    """

    pairs: int
    rates: dict[str, float]

    def instructions(self, model: Model) -> int:
        """Most instructions of one query, rounded up."""
        counts = rounds(model, self.pairs)
        for found in part_rounds(model).values():
            counts |= found
        return -int(-sum(rate * counts[name] for name, rate in self.rates.items()) // 1)


def read_worst(entry: Any) -> Worst | None:
    """Check the entry of a build, and return it; None if none was measured, as for host kernels.

    Raises
    ------
    InputError
        If a field is missing, unknown or of the wrong type.
    """
    if entry is None:
        return None
    if not isinstance(entry, dict) or set(entry) != {"pairs", "rates"}:
        raise InputError("worst does not consist of pairs and rates")
    pairs, rates = entry["pairs"], entry["rates"]
    if isinstance(pairs, bool) or not isinstance(pairs, int) or pairs < 1:
        raise InputError(f"pairs of worst: {pairs!r} is not a whole number of at least 1")
    return Worst(pairs, read_rates("worst", rates, NAMES))


def read_rates(what: str, rates: Any, names: tuple[str, ...]) -> dict[str, float]:
    """Check rates of rounds with these names, and return them."""
    if not isinstance(rates, dict):
        raise InputError(f"rates of {what} is not an object")
    for name, rate in rates.items():
        if name not in names:
            raise InputError(f"rates of {what} has the unknown field {name}")
        # Not a comparison that NaN would pass.
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1e9:
            raise InputError(f"{name} of {what}: {rate!r} is not a number of at least 0")
    return {name: float(rate) for name, rate in rates.items()}
