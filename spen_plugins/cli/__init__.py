"""The command lines: `spen-run` trains and evaluates, `spen` has the rest.

Modules here import nothing heavy at their top, so that help comes at once.
"""

import os

# Threads that spin while they wait make a busy machine many times slower; read by OpenMP when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
