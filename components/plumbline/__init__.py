"""Plumbline: clusters for training, whose fabric and storage are proven before the stack completes."""

__version__ = "0.1.0"
