"""The rehearsal: a real control plane, a simulated cloud and simulated nodes, for one state folder.

The code under test cannot tell: nothing in `components/` knows that this package exists.
"""
