"""How good a model is, and whether another would be better: held-out rows, rivals, verdicts."""
