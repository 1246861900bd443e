"""Kubernetes: the objects that are created in a cluster, and the connection that gates and guards read it by."""
