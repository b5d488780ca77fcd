"""What benchmarks share: cells and their files, processes, rows, trained models, versions."""
