"""A maturity meter for concrete: trained here, run on an emulated Cortex-M4, compared with Python.

The network is trained on four fifths of the mixes. For each of the others, the meter in main.c
learns the strength of the youngest samples, and predicts the later ones before and after. This
script trains, exports, builds main.c for the board and runs it, compares every line that it prints
with Python, and draws a figure.

    python firmware_ref/examples/concrete/concrete.py
    python firmware_ref/examples/concrete/concrete.py -o folder --plot concrete.svg
    python firmware_ref/examples/concrete/concrete.py --run runs/concrete/run    # trained before
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import twinedge
from twinedge import TwinRegressor, data
from twinedge.figure_style import styled
from twinedge.pack import Pack, write_pack
from twinedge.run_folder import Run, load_run
from twinedge.runtime.pack_device import PackDevice
from twinedge_export.boards import Builder, Image, port_named
from twinedge_export.boards.build import bad_end, flags_for, output_lines, run_emulator
from twinedge_export.c_project import scratch_expression

HERE = Path(__file__).parent
BOARD = "mps2-an386"  # a Cortex-M4, emulated by QEMU
ANCHORS = 32
MOST_LEARNT = 3  # as in main.c
FEWEST_LATER = 3  # samples of a mix that is drawn
SECONDS = 600  # time limit of the emulator
ANSWER = re.compile(r"    (\d+) days (\S+) \((\S+) to (\S+)\), measured (\S+)")

BEFORE, AFTER = "#d55e00", "#0072b2"

MODEL_H = """\
/* The pack, by concrete.py. */

#define MODEL_FEATURES {features}
#define MODEL_SIZE     {size}u
#define MODEL_SCRATCH  {scratch}

/* The union aligns it. */
static const union {{
    unsigned char bytes[MODEL_SIZE];
    uint32_t word;
}} model_twin = {{{{
{content}
}}}};
"""
MIXES_H = """\
/* Mixes that the pack was trained without, and samples of them, by concrete.py. */

static const sample samples[] = {{
{samples}
}};

static const mix mixes[] = {{
{mixes}
}};
"""


class Mix(NamedTuple):
    """A mix of concrete and its samples, the youngest first.

    ``amounts`` ``(f - 1,)`` are all features but the age; ``days`` and ``strengths`` ``(n,)``
    belong to the samples.
    """

    amounts: np.ndarray
    days: np.ndarray
    strengths: np.ndarray

    def at(self, days: Any) -> np.ndarray:
        """Features of the mix at these ages, float32 ``(n, f)``."""
        amounts = np.tile(self.amounts, (len(days), 1))
        return np.column_stack([amounts, days]).astype(np.float32)


class Answer(NamedTuple):
    """A prediction of the meter after some samples, and what was measured."""

    mix: int
    learnt: int
    days: int
    mean: float
    low: float
    high: float
    measured: float


def groups_of(table: data.Dataset) -> np.ndarray:
    """Find the mix of each row, as a number: all columns but the age are the same."""
    return np.unique(table.X[:, :-1], axis=0, return_inverse=True)[1].ravel()


def mixes_of(table: data.Dataset, rows: np.ndarray) -> list[Mix]:
    """Collect mixes among these rows that were sampled at two ages or more."""
    group = groups_of(table)[rows]
    mixes = []
    for number in np.unique(group):
        mine = rows[group == number]
        mine = mine[np.argsort(table.X[mine, -1], kind="stable")]
        mix = Mix(table.X[mine[0], :-1], table.X[mine, -1].astype(int), table.y[mine])
        if mix.days[-1] > mix.days[0]:
            mixes.append(mix)
    return mixes


def train(table: data.Dataset) -> Run:
    """Train on the mixes that are not held out."""
    group = groups_of(table)
    rows = data.split_groups(group, 0)
    train, validation, test = ((table.X[part], table.y[part]) for part in rows)
    model = TwinRegressor(twins=4, hidden=(64, 64), effort="quick", random_state=0)
    model.fit(*train, validation=(*validation, group[rows.val]), groups=group[rows.train])
    scores = {"rmse_val": model.validation_rmse_, "rmse_test": model.rmse(*test)}
    names = table.feature_names, table.target_name
    return Run(model, *names, validation, test, {"dataset": "cs", "split": 0}, scores)


def write_headers(folder: Path, pack: Pack, mixes: list[Mix]) -> None:
    """Write the headers of main.c: the pack, and the mixes."""
    content = write_pack(pack, metadata=False)
    rows = (content[start : start + 16] for start in range(0, len(content), 16))
    model = MODEL_H.format(
        features=pack.features,
        size=len(content),
        scratch=scratch_expression(pack),
        content="\n".join("    " + "".join(f"{byte}, " for byte in row).rstrip() for row in rows),
    )
    samples, lines = [], []
    for mix in mixes:
        amounts = ", ".join(map(literal, mix.amounts))
        lines.append(f"    {{samples + {len(samples)}, {len(mix.days)}, {{{amounts}}}}},")
        pairs = zip(mix.days, mix.strengths, strict=True)
        samples += [f"    {{{days}, {literal(strength)}}}," for days, strength in pairs]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.h").write_text(model)
    (folder / "mixes.h").write_text(
        MIXES_H.format(samples="\n".join(samples), mixes="\n".join(lines))
    )


def literal(value: float) -> str:
    """Write a float32 in C, with the fewest digits that restore it."""
    return f"{np.float32(value)!s}f"


def build(folder: Path, pack: Pack, mixes: list[Mix]) -> tuple[Image, int]:
    """Compile main.c with the runtime for the board; return the image and its flash bytes."""
    write_headers(folder, pack, mixes)
    flags = (*flags_for(pack), "-I.")
    builder = Builder(port_named(BOARD), folder, flags, program=str(HERE.resolve() / "main"))
    # The program gets its pack from the header; the linker drops the empty one.
    image = builder.image(b"", np.empty((0, pack.features)))
    return image, builder.flash_bytes(image)


def board_lines(image: Image) -> list[str]:
    """Run an image on the emulated board; return the lines that it prints."""
    board = port_named(BOARD)
    command = board.command(board.run, image=image.path)
    done = run_emulator(board, command, SECONDS)
    lines = output_lines(done.stdout)
    if done.returncode or lines[-1:] != ["done"]:
        raise bad_end(board, command[0], done.returncode, lines)
    return lines


def expected(device: PackDevice, mixes: list[Mix]) -> Iterator[str]:
    """Compute the lines that main.c should print."""
    for number, mix in enumerate(mixes, start=1):
        yield f"mix {number}"
        device.forget()
        for learnt in range(MOST_LEARNT + 1):
            known = max(learnt - 1, 0)
            if mix.days[known] >= mix.days[-1]:
                break
            if learnt:
                new = slice(known, learnt)
                device.learn(mix.at(mix.days[new]), mix.strengths[new])
                yield f"learnt: {mix.days[known]} days {fixed(mix.strengths[known])}"
            later = mix.days > mix.days[known]
            found = device.predict_all(mix.at(mix.days[later]))
            ends = found.mean, found.low, found.high, mix.strengths[later]
            for days, *numbers in zip(mix.days[later], *ends, strict=True):
                mean, low, high, measured = map(fixed, numbers)
                yield f"    {days} days {mean} ({low} to {high}), measured {measured}"
    device.forget()
    yield "done"


def fixed(value: float) -> str:
    """Write a number with two decimals, in the arithmetic of main.c."""
    hundredths = int(np.abs(np.float32(value)) * np.float32(100) + np.float32(0.5))
    return f"{'-' * bool(value < 0)}{hundredths // 100}.{hundredths % 100:02}"


def compare(lines: list[str], right: list[str]) -> int:
    """Refuse lines that differ; return how many numbers were predicted."""
    for number, (line, wanted) in enumerate(zip(lines, right, strict=False), start=1):
        if line != wanted:
            raise SystemExit(f"line {number} of the board is {line!r}, of Python {wanted!r}")
    if len(lines) != len(right):
        raise SystemExit(f"the board prints {len(lines)} lines, Python {len(right)}")
    return 3 * sum(ANSWER.fullmatch(line) is not None for line in lines)


def answers(lines: list[str]) -> Iterator[Answer]:
    """Read what the board has printed."""
    mix, learnt = 0, 0
    for line in lines:
        if line.startswith("mix "):
            mix, learnt = int(line.split()[1]), 0
        elif line.startswith("learnt: "):
            learnt += 1
        elif found := ANSWER.fullmatch(line):
            yield Answer(mix, learnt, int(found[1]), *map(float, found.groups()[1:]))


def scores(found: list[Answer], learnt: int) -> dict[str, Any]:
    """Score errors and intervals after ``learnt`` samples, and before, on the same later ones."""
    after = [one for one in found if one.learnt == learnt]
    which = {(one.mix, one.days) for one in after}
    before = [one for one in found if one.learnt == 0 and (one.mix, one.days) in which]
    assert [(one.mix, one.days) for one in before] == [(one.mix, one.days) for one in after]
    return {
        "learnt": learnt,
        "mixes": len({one.mix for one in after}),
        "later": len(after),
        "before": quality(before),
        "after": quality(after),
    }


def quality(rows: list[Answer]) -> dict[str, float]:
    """Root mean square error, coverage and mean width of the intervals."""
    _, _, _, mean, low, high, measured = np.array(rows).T
    return {
        "rmse": float(np.sqrt(np.mean(np.square(mean - measured)))),
        "covered": float(np.mean((low <= measured) & (measured <= high))),
        "width": float(np.mean(high - low)),
    }


def show(found: list[Answer]) -> None:
    """Print the scores as a table in Markdown."""
    print("| learnt | mixes | later samples | RMSE, MPa | covered | width, MPa |")
    print("|---|---|---|---|---|---|")
    for learnt in range(1, MOST_LEARNT + 1):
        row = scores(found, learnt)
        before, after = row.pop("before"), row.pop("after")
        forms = {"rmse": ".2f", "covered": ".2f", "width": ".1f"}
        pairs = [f"{before[one]:{form}} -> {after[one]:{form}}" for one, form in forms.items()]
        print(f"| {' | '.join([*map(str, row.values()), *pairs])} |")


def to_draw(found: list[Answer]) -> dict[str, int]:
    """Choose three mixes by what one sample does to their error: best, median and worst.

    Only mixes with several later ages; numbers count from 1.
    """
    gain = {}
    for mix in sorted({one.mix for one in found}):
        before, after = ([one for one in found if one[:2] == (mix, learnt)] for learnt in (0, 1))
        if len({one.days for one in before}) >= FEWEST_LATER:
            gain[mix] = quality(before)["rmse"] - quality(after)["rmse"]
    order = sorted(gain, key=gain.__getitem__, reverse=True)
    middle = order[len(order) // 2]
    return {"helped most": order[0], "in the middle": middle, "helped least": order[-1]}


def draw(path: Path, device: PackDevice, mixes: list[Mix], found: list[Answer]) -> None:
    """Draw strength against age before and after one sample."""
    with styled({"font.size": 10}) as figure_of:
        figure = figure_of(figsize=(9.6, 3.6), layout="constrained")
        all_axes = figure.subplots(1, 3, sharey=True)
        for axes, (name, number) in zip(all_axes, to_draw(found).items(), strict=True):
            mix = mixes[number - 1]
            days = np.geomspace(mix.days[0], mix.days[-1], 40)
            device.forget()
            curve(axes, days, device.predict_all(mix.at(days)), "--", BEFORE, "before")
            device.learn(mix.at(mix.days[:1]), mix.strengths[:1])
            curve(axes, days, device.predict_all(mix.at(days)), "-", AFTER, "after one sample")
            device.forget()
            axes.plot(mix.days[1:], mix.strengths[1:], "ko", markersize=4, label="measured later")
            style = {"color": AFTER, "markeredgecolor": "black", "markersize": 8, "zorder": 4}
            axes.plot(mix.days[:1], mix.strengths[:1], "D", label="learnt", **style)
            axes.set_xscale("log")
            ticks = np.unique(mix.days)
            axes.set_xticks(ticks, map(str, ticks))
            axes.minorticks_off()
            axes.set_xlabel("age, days")
            axes.set_title(f"mix {number}, {name}", fontsize=10)
            axes.grid(alpha=0.3)
        all_axes[0].set_ylabel("strength, MPa")
        all_axes[1].legend(fontsize=8, loc="upper left")
        title = "Strength of three mixes of concrete, predicted before and after one sample"
        # Without a date, and without the version of the library.
        metadata = {"Title": title, "Date": None, "Creator": None}
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata=metadata)


def curve(axes: Any, days: np.ndarray, found: Any, line: str, colour: str, name: str) -> None:
    """Draw a prediction and its interval."""
    axes.plot(days, found.mean, line, color=colour, label=name)
    axes.fill_between(days, found.low, found.high, color=colour, alpha=0.18, linewidth=0)


def main() -> None:
    """Do it all, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", "-o", type=Path, default=Path("runs/concrete"))
    parser.add_argument("--run", type=Path, help="take this run instead of training one")
    parser.add_argument("--plot", type=Path, help="where the figure goes, if not to the output")
    options = parser.parse_args()
    folder: Path = options.output

    table = data.load("cs")
    rows = data.split_groups(groups_of(table), 0).test
    if options.run:
        run = load_run(options.run)
        if not np.array_equal(run.test[0], table.X[rows]):
            raise SystemExit(f"{options.run} was not trained by this script: its test rows differ")
    else:
        print("training (a minute) ...")
        run = train(table)
        run.save(folder / "run")
    print(f"exporting with {ANCHORS} anchors ...")
    twinedge.export(run, folder / "export", anchors=ANCHORS, formats=("twin",))
    device = twinedge.load(folder / "export" / "model.twin")
    mixes = mixes_of(table, rows)
    print(f"building for {BOARD} ...")
    image, flash = build(folder / "board", device.pack, mixes)
    print(f"running {image.path} ...")
    lines = board_lines(image)
    (folder / "board.txt").write_text("\n".join(lines) + "\n")
    numbers = compare(lines, list(expected(device, mixes)))
    print(f"{numbers} numbers of the board are those of Python\n")

    found = list(answers(lines))
    show(found)
    plot = options.plot or folder / "concrete.svg"
    draw(plot, device, mixes, found)
    youngest = sorted(Counter(int(mix.days[0]) for mix in mixes).items())
    print("\nyoungest samples:", ", ".join(f"{count} of {days} days" for days, count in youngest))
    print(
        f"{flash} bytes of flash, {len(write_pack(device.pack, metadata=False))} of them the pack"
    )
    print(f"lines of the board: {folder / 'board.txt'}; figure: {plot}")


if __name__ == "__main__":
    main()
