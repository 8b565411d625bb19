"""The command `spen package`: finished runs as an installable pipeline."""
