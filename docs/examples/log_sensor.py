#!/usr/bin/env python3
"""Reads a sensor, predicts with a pack, and logs how far the prediction can be trusted, as CSV.

    log_sensor.py model.twin predictions.csv
    log_sensor.py model.twin - --every 0.1 --count 20

Of a model that was calibrated it logs low and high, between which the true value lies nine times of
ten; of another the spread of the estimates. Last come the features outside their training range.

The sensor is simulated: it wanders through the ranges of the training data, and at times a wire is
loose. Put your own into ``readings``.
"""

import argparse
import csv
import random
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import compress
from pathlib import Path

import twinedge

LOOSE = 1e6  # what an input without a wire reads


def readings(ranges: list[tuple[float, float]]) -> Iterator[list[float]]:
    """One value of each feature, in the units of the training data, for ever."""
    values = [random.uniform(low, high) for low, high in ranges]
    while True:
        steps = [random.gauss(0, (high - low) / 50) for low, high in ranges]
        values = [
            min(max(value + step, low), high)
            for value, step, (low, high) in zip(values, steps, ranges, strict=True)
        ]
        loose = random.randrange(len(ranges)) if random.random() < 0.05 else None
        yield [LOOSE if number == loose else value for number, value in enumerate(values)]


def main() -> None:
    """Log until the count is reached, or for ever."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="a .twin, .tflite or .onnx file")
    parser.add_argument("log", help="CSV file to add to, or - for standard output")
    parser.add_argument("--every", type=float, default=1.0, help="seconds (default 1)")
    parser.add_argument("--count", type=int, help="readings (default: no end)")
    options = parser.parse_args()

    device = twinedge.load(options.model)
    ranges = [(one["min"], one["max"]) for one in device.info["features"]]
    trust = ["low", "high"] if device.coverages else ["spread"]
    with sys.stdout if options.log == "-" else Path(options.log).open("a", newline="") as log:
        writer = csv.writer(log, lineterminator="\n")
        if options.log == "-" or not log.tell():
            names = [*device.feature_names, device.target_name]
            writer.writerow(["time", *names, *trust, "outside"])
        for number, x in enumerate(readings(ranges), start=1):
            found = device.predict_all([x])
            numbers = [f"{getattr(found, name)[0]:.7g}" for name in ("mean", *trust)]
            far = "|".join(compress(device.feature_names, found.outside[0]))
            now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
            writer.writerow([now, *x, *numbers, far])
            log.flush()  # for those who follow the file, and in case this program is killed
            if number == options.count:
                break
            time.sleep(options.every)


if __name__ == "__main__":
    main()
