"""The training loop, which runs every trainer's stages of phases."""
