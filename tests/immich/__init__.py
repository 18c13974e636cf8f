"""The room of Immich, against a small server of our own."""
