"""From the cells of a table to the inputs of a network: numbers, names, dates and times."""
