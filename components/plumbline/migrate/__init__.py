"""Replacing a pool without losing work: for now the guard that lets a generation go."""
