"""Predictions for a broker: queries in, answers out, and true values to learn from."""
