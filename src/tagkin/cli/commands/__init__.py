"""The commands. `tagkin.cli.registry` imports every module here; each enters its commands."""
