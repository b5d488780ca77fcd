"""Measurements: one script per question, and their results.

``python -m benchmarks`` computes again what a change of the training makes void, and ``python -m
benchmarks.NAME --help`` describes each measurement.
"""
