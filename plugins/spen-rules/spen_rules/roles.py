"""Constraints on the arguments of a predicate."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.nn import at_least_float32, mask_padding, require_tags
from spen_rules.logic import Constraint, log_truth, violation

CORE = re.compile(r"[BS]-(?:A|ARG)[0-5]")
NUMBERED = re.compile(r"(?:[BIES]-)?(?:A|ARG)([0-9A])")
FRAME = '{"id": "kill.01", "roles": [{"role": "ARG0"}, {"role": "ARG1"}]}'


class UniqueRole(Constraint):
    """Each core role at most once: "X begins at word i" implies "X begins at no other word" (Li et al. 2020, Sec. 3.2).

    E(x, y) = Σ_X Σ_i max(0, ln p_i(B-X) − min_{j≠i} ln(1 − p_j(B-X))). Two equal roles count 2 · 13.8. Under BIOES,
    p(B-X) is the sum over B-X and S-X.
    """

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_tags(self)
        roles = dict.fromkeys(tag[2:] for tag in self.space.tags if CORE.fullmatch(tag))
        if not roles:
            raise sp.ConfigError(
                "energy 'rules.unique_role' requires tags of core roles, B-A0 to B-A5 or B-ARG0 to B-ARG5; the task "
                "has none"
            )
        begins = [[float(tag in (f"B-{role}", f"S-{role}")) for role in roles] for tag in self.space.tags]
        self.register_buffer("begins", torch.tensor(begins), persistent=False)  # (tag, role)

    def forward(self, features: Tensor | None, y: Tensor) -> Tensor:
        y = at_least_float32(y)
        with torch.autocast(y.device.type, enabled=False):
            p = y @ self.begins.to(y.dtype)
        begins = mask_padding(p, features).transpose(2, 3)
        return violation(log_truth(begins), self.all_others(log_truth(1 - begins))).flatten(2).sum(-1)


class FrameRoles(Constraint):
    """A predicate's numbered roles are those of its sense's frame (Li et al. 2020).

    E(x, y) = −min_{i, l ∉ R(f)} ln(1 − p_i(l)), with f the sense that the task's file gives, and R(f) the roles of its
    frame. C- and R- roles and modifiers are always allowed. A predicate without a sense, or whose sense has no frame,
    counts 0. Prediction needs neither senses nor frames.
    """

    class Config(Constraint.Config):
        rolesets: str
        """File of frames, one per line: JSON with the sense as `id` and its `roles`, tables with `role`, such as ARG0;
        `data:` paths are below $SPEN_DATA."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_tags(self)
        if not isinstance(task, sp.NamesSenses):
            raise sp.ConfigError("energy 'rules.frame_roles' requires senses of predicates, and the task has none")
        numbers = [match[1] if (match := NUMBERED.fullmatch(tag)) else None for tag in self.space.tags]
        if not any(numbers):
            raise sp.ConfigError(
                "energy 'rules.frame_roles' requires tags of numbered roles, such as B-A0 or B-ARG0; the task has none"
            )
        self._file, frames = None, {}
        if len(task.part("train")):
            self._file = sp.locate(config.rolesets)
            frames = read_frames(self._file)
            task.number_senses([*frames])
        forbidden = [[number is not None and number not in roles for number in numbers] for roles in frames.values()]
        table = torch.tensor([*forbidden, [False] * len(numbers)])  # the last row is for senses without a frame
        self.register_buffer("forbidden", table, persistent=False)

    def checksums(self) -> dict[str, str]:
        return {} if self._file is None else {self.config.rolesets: sp.sha256(self._file)}

    def encode(self, x: sp.X) -> tuple[Tensor | None, Tensor]:
        """The mask, and the tags that each predicate's frame forbids, `(batch, tag)`."""
        senses = x.inputs.get("sense", torch.full((x.size,), -1, device=self.forbidden.device))
        return x.mask, self.forbidden[senses]

    def forward(self, features: tuple[Tensor | None, Tensor], y: Tensor) -> Tensor:
        mask, forbidden = features
        p = mask_padding(at_least_float32(y) * forbidden[:, None, None], mask)
        return -self.all_of(log_truth(1 - p).flatten(2))


def read_frames(path: Path) -> dict[str, set[str]]:
    """Numbers of the roles of each sense in a file of frames: `{"kill.01": {"0", "1"}}`.

    Raises:
        DataError: a line has another form.
    """

    def read(value: Any) -> tuple[str, set[str]]:
        try:
            matches = (NUMBERED.fullmatch(role["role"]) for role in value["roles"])
            return str(value["id"]), {match[1] for match in matches if match}
        except (LookupError, TypeError):
            raise sp.DataError("frame", None, f"{value!r:.80}", FRAME) from None

    return dict(frame for _, frame in sp.read_json_lines(path, FRAME, read))
