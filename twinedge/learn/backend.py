"""TensorFlow, imported quietly and set up for networks this small.

A matrix of 128 by 128 is too small to share among cores; what scales is several networks side by
side. So where the program has not imported TensorFlow itself, each operation gets one thread and
independent operations run in parallel; a program that imported it first keeps its own settings.
"""

import logging
import os
import sys

_OURS_TO_CONFIGURE = "tensorflow" not in sys.modules
# Read once, when the library is loaded: no start-up chatter, and no oneDNN, whose different
# blocking from machine to machine costs time at this size and changes the last bits.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import tensorflow as tf  # noqa: E402

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

if _OURS_TO_CONFIGURE:
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(CORES)
    except RuntimeError:  # already initialised by someone who loaded it another way
        pass

__all__ = ["CORES", "tf"]
