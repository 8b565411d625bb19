"""`spen annotate` over corpora at hand: engines side by side, equal rows, a killed worker, memory.

    SPEN_DATA=... python tools/bench_annotate.py --words 1000000 --json annotate.json

The texts are those of GoEmotions, English Web Treebank and BTC, a document a line, from the beginning until there are
--words words; if they are fewer, again from the beginning. Each contestant annotates all of them, in this order:

  pipe x2   spaCy's own nlp.pipe(n_process=2) over the same texts, whose docs are counted and not written
  local     spen annotate, one process
  local x2  spen annotate --processes 2
  ray x2    spen annotate --engine ray --workers 2
  killed    as ray x2; one of the two workers is killed (SIGKILL) when a third of the shards are there
  resumed   as local x2; all of it is killed when a third of the shards are there, and the same command goes on

Printed: words/s of each, as a ratio to local, too; the largest difference of its rows from those of local, by
column; resident memory of local by part of the corpus; seconds of each shard of local (--json; tools/simulate_scale.py
reads them). Contestants do not take turns: on a busy machine their ratios are no better than its load is even.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

import spen_plugins as sp
