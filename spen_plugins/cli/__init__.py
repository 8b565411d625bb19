"""The command lines: `spen-run` trains and evaluates, `spen` does the rest.

Modules here import nothing heavy at the top, so that help is fast.
"""

import os

from spen_plugins.cli.allocator import return_large_blocks

# Spinning threads make a busy machine many times slower. OpenMP reads this when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
return_large_blocks()
