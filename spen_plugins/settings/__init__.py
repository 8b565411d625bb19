"""Settings: the base class of typed configs, the types of their fields, YAML."""
