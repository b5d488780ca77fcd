"""Train networks: batches of pairs, the compiled loop, the choice of settings, teachers."""

# Raised by one whenever the same table, defaults and seed give another model, or its default export
# another pack. What was measured before is then void: `make bench` computes it again. Until then,
# pages name the version of what they quote. docs/training.md says what each version changed.
VERSION = 6
