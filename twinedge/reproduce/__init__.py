"""The paper's tables and figures, computed again: ``twinedge reproduce``.

A table is made of *cells*, each one data set, one split and one method. Cells know nothing of each
other, so that they run on as many cores or machines as there are, and each is kept in a file of
its own when it is done.
"""
