"""One run: build, train, evaluate, write its folder."""
