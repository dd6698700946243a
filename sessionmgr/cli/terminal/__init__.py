"""Terminal input and output: tables, colours, progress, prompts and signals."""
