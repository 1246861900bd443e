"""The gate: phases that prove a pool, pure over what was read; one reader does the input and output."""
