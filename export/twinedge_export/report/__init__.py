"""The report: what a model costs, how good it is, and where it runs, on one page."""
