"""Tests of the rehearsal: its simulated nodes, what outlives a daemon, its commands."""
