"""Train networks: batches of pairs, the compiled loop, the choice of settings, teachers."""
