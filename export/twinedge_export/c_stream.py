"""Inputs derived from samples in C: the constants of ``twin_window.h``, and ``model_push``."""

import re
from typing import NamedTuple

import numpy as np

from twinedge.encoding.derived import Derived
from twinedge.encoding.encoder import Encoding
from twinedge.encoding.times import NUMBERS
from twinedge.encoding.windows import sources_of, window_bytes
from twinedge.pack.contents import Array
from twinedge.runtime.sample_streams import SampleStreams
from twinedge_export.c_columns import literal, plain

_DECLARATIONS = """
/* Ticks of @unit@ that times are counted in, the usual ones between two samples, and how many
 * samples fill the window. A longer step than @gap@ ticks is a gap: the window begins anew. */
#define MODEL_TICKS   @ticks@
#define MODEL_PERIOD  @period@u
#define MODEL_SAMPLES @samples@u

/* Bytes of RAM that the last samples take; model.c has them. */
#define MODEL_WINDOW @bytes@u
"""
_PROTOTYPES = """
/* What is derived from the samples, for streams of your own: see twin_window.h. */
extern const twin_windows model_windows;

/* Adds a sample, measured at a time in ticks that wraps around after 2^32, and fills in all
 * features for twin_predict. Returns 1 if the window is full; 0 if it takes more samples, and some
 * features are not known. */
int model_push(const struct model_row *sample, uint32_t when, float x[MODEL_FEATURES]);

/* Whether the window is full; and forget all samples. */
int model_ready(void);
void model_reset(void);
"""
_DEFINITIONS = """
@constants@
const twin_windows model_windows = {model_sources, @gap@u, @count@, @samples@};

static int64_t model_memory[MODEL_WINDOW / 8];
static twin_window model_samples;

int model_push(const struct model_row *sample, uint32_t when, float x[MODEL_FEATURES]) {
    if (!model_samples.windows) /* the first one */
        (void)twin_window_begin(&model_samples, &model_windows, model_memory, sizeof model_memory);
    (void)model_encode(sample, x);
    return twin_window_push(&model_samples, when, x);
}

int model_ready(void) {
    return twin_window_ready(&model_samples);
}

void model_reset(void) {
    twin_window_reset(&model_samples);
}
"""
EXAMPLE_CALL = """\
    do /* or the time of a clock: gaps are then noticed */
        when += MODEL_PERIOD;
    while (!model_push(&row, when, x));
"""


class CStream(NamedTuple):
    """Texts about derived inputs for the files of a C project."""

    declarations: str
    prototypes: str
    definitions: str


def c_stream(encoding: Encoding) -> CStream:
    """Write what ``model.h`` and ``model.c`` need for derived inputs."""
    clock = encoding.derived[0].clock
    unit = "whatever times are in" if clock.notation.unit == NUMBERS else "a second"
    lines, rows = [], []
    places = dict(zip(encoding.names, encoding.parts, strict=True))
    for number, source in enumerate(sources_of(encoding.derived)):
        inputs = ", ".join(
            f"{{TWIN_{one.statistic.upper()}, {one.samples}, {_place(encoding, one)}}}"
            for one in source.inputs
        )
        what = ", ".join(plain(encoding.inputs[_place(encoding, one)]) for one in source.inputs)
        lines.append(
            f"/* {what} */\nstatic const twin_derived model_inputs_{number}[] = {{{inputs}}};"
        )
        rows.append(
            f"    {{model_inputs_{number}, {literal(source.centre)}, "
            f"{literal(2.0**source.bits)}, {len(source.inputs)}, "
            f"{places[source.column].start}, {source.length}}},"
        )
    lines += ["static const twin_source model_sources[] = {", *rows, "};"]
    words = {
        "unit": unit,
        "ticks": f"{clock.ticks:g}",
        "period": str(max(1, round(clock.period * clock.ticks))),
        "gap": str(clock.gap),
        "samples": str(encoding.longest),
        "count": str(len(rows)),
        "bytes": str(window_bytes(encoding.derived)),
        "constants": "\n".join(lines),
    }
    return CStream(*(_filled(text, words) for text in (_DECLARATIONS, _PROTOTYPES, _DEFINITIONS)))


def _place(encoding: Encoding, one: Derived) -> int:
    """Where a derived input is among the features."""
    return int(encoding.parts[encoding.kinds.index(one)].start)


def _filled(text: str, words: dict[str, str]) -> str:
    return re.sub(r"@(\w+)@", lambda found: words[found[1]], text)


def example_query(encoding: Encoding, measured: Array) -> Array:
    """Return the query ``(f,)`` after as many equal samples as the window takes."""
    streams = SampleStreams(encoding)
    for _ in range(encoding.longest):
        query, _ = streams.push(measured.tolist())
    return np.array(query)
