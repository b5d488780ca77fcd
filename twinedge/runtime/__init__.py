"""Evaluate exported models: packs in C or numpy, other files by their interpreters."""
