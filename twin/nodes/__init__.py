"""Simulated nodes: kubelets, device managers and the registry that images are pulled from."""
