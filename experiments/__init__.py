"""The paper's experiments 1 to 5: one command computes every table and figure."""
