"""Moved to `twinedge.times`, beside the reader of cells, since streams read times as files do."""

from twinedge.times import *  # noqa: F403
