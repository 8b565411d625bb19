"""Pictures of frames: as SVG, and for displaCy."""
