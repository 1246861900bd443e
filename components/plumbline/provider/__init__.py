"""The Pulumi provider process of Plumbline: gates and guards, over the engine's own protocol."""
