"""Recompute the paper's tables and figures: ``python -m benchmarks.reproduction TABLE``.

A table is made of *cells*, each one data set, one split and one method. Cells are independent of
each other, so that they run on as many cores or machines as there are, and each is kept in its own
file when it is done.
"""
