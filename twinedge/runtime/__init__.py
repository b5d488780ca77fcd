"""Evaluating a pack: the integer arithmetic of FORMAT.md."""
