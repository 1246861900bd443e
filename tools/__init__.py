"""The pinned tools of the rehearsal, and how they are got."""
