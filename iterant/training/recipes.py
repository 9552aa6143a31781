"""The named recipes: for each task and network, the fields that differ from those of `Recipe`.

``paper`` follows the paper's text and tables, with what they leave out taken from the authors'
public code; ``paper-code`` follows the code where the two disagree; notes in the recipes say where.
``quick``, the default, and ``best`` are ours: ``quick`` trains in minutes on a CPU.

`NAMED` at the end says which fields belong to which recipe, task and network.
"""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]

# The paper's recipes

_VALIDATION = (
    "validated after every epoch, the first of equals is the best: the authors' code; the paper "
    "says only that the best on validation is tested"
)
_LR_DECAY = "lr_decay 0.01 as in the paper's table; the authors' code has 0.1: recipe paper-code"
_LR_DECAY_CODE = "lr_decay 0.1 as in the authors' code"
_LR_DT = (
    "lr 1e-4 for DT with alpha 1 as in the authors' code; the paper's table, and the code for "
    "other alphas, have 1e-3"
)

_SUMS_PAPER: Fields = {
    "batch_size": 100, "epochs": 150, "alpha": 1.0, "optimizer": "adam", "lr": 1e-3,
    "warmup_epochs": 10, "milestones": (60, 100), "lr_decay": 0.01, "grad_clip": 1.0,
    "validate_every": 1, "monitor_every": 50, "checkpoint_every": 30,
    "notes": (_LR_DECAY, _VALIDATION),
}  # fmt: skip
_SUMS_PAPER_DT: Fields = {**_SUMS_PAPER, "lr": 1e-4, "notes": (_LR_DECAY, _LR_DT, _VALIDATION)}
_SUMS_PAPER_FF: Fields = {**_SUMS_PAPER, "alpha": 0.0}

_SUMS_CODE: Fields = {**_SUMS_PAPER, "lr_decay": 0.1, "notes": (_LR_DECAY_CODE, _VALIDATION)}
_SUMS_CODE_DT: Fields = {
    **_SUMS_CODE, "lr": 1e-4, "notes": (_LR_DECAY_CODE, _LR_DT, _VALIDATION),
}  # fmt: skip
_SUMS_CODE_FF: Fields = {**_SUMS_CODE, "alpha": 0.0}

_OPEN_PIXELS = (
    "the loss is averaged over open pixels as in the authors' code; the paper's text says all "
    "pixels"
)
_MAZES_PAPER: Fields = {
    "batch_size": 50, "epochs": 50, "alpha": 0.01, "optimizer": "adam", "lr": 1e-3,
    "warmup_epochs": 10, "schedule": "constant", "throttle": True,
    "validate_every": 1, "monitor_every": 10, "checkpoint_every": 5,
    "notes": (_OPEN_PIXELS, _VALIDATION),
}  # fmt: skip
_MAZES_PAPER_FF: Fields = {
    **_MAZES_PAPER, "lr": 1e-4, "epochs": 200, "schedule": "steps", "milestones": (175,),
    "lr_decay": 0.1, "throttle": False, "alpha": 0.0,
}  # fmt: skip

_CHESS_EPOCHS = (
    "warm-up 3 epochs, 120 epochs and milestones 100/110 as in the paper's table; the authors' "
    "code has 10, 130 and 100/115: recipe paper-code"
)
_CHESS_EPOCHS_CODE = "lr_decay, warm-up, epochs and milestones as in the authors' code"
_CHESS_PAPER: Fields = {
    "batch_size": 300, "epochs": 120, "alpha": 0.5, "optimizer": "sgd", "lr": 1e-2,
    "warmup_epochs": 3, "milestones": (100, 110), "lr_decay": 0.01,
    "validate_every": 1, "monitor_every": 5, "checkpoint_every": 1,
    "notes": (_CHESS_EPOCHS, _LR_DECAY, _VALIDATION),
}  # fmt: skip
_CHESS_PAPER_FF: Fields = {**_CHESS_PAPER, "alpha": 0.0}

_CHESS_CODE: Fields = {
    **_CHESS_PAPER, "lr_decay": 0.1, "warmup_epochs": 10, "epochs": 130, "milestones": (100, 115),
    "notes": (_CHESS_EPOCHS_CODE, _VALIDATION),
}  # fmt: skip
_CHESS_CODE_FF: Fields = {**_CHESS_CODE, "alpha": 0.0}

# Our recipes

_SUMS_QUICK: Fields = {
    "width": 32, "objective": "pool", "pool_slots": 1024, "pool_shortest": 5, "batch_size": 100,
    "epochs": 4, "optimizer": "adam", "lr": 6e-3, "warmup_epochs": 0, "schedule": "cosine",
    "weight_decay": 0.0, "grad_clip": 1.0, "ema_decay": 0.98, "monitor_every": 1,
    "monitor_count": 100,
}  # fmt: skip
_SUMS_BEST: Fields = {
    "width": 16, "hidden": 64, "isotropic": False, "objective": "pool", "iterations": 40,
    "pool_slots": 1024, "pool_new_fraction": 0.25, "pool_corrupt_fraction": 0.0, "pool_noise": 0.1,
    "pool_shortest": 12, "pool_longest": 12, "pool_all_losses": True,
    "pool_change_penalty": 0.3, "optimizer": "adam", "lr": 4e-3, "weight_decay": 0.0,
    "grad_clip": 1.0, "ema_decay": 0.99, "batch_size": 100, "epochs": 5, "warmup_epochs": 0,
    "warmup_steps": 100, "schedule": "wsd", "stable_fraction": 0.6, "monitor_every": 5,
    "monitor_count": 100, "checkpoint_every": 5,
}  # fmt: skip

_MAZES_QUICK: Fields = {
    "width": 32, "objective": "pool", "pool_slots": 512, "batch_size": 50, "epochs": 2,
    "count": 10_000, "optimizer": "adam", "lr": 3e-3, "warmup_epochs": 0, "schedule": "cosine",
    "weight_decay": 0.0, "grad_clip": 1.0, "ema_decay": 0.99, "label_smoothing": 0.2,
    "monitor_every": 1, "monitor_count": 50,
}  # fmt: skip
_MAZES_BEST: Fields = {
    "width": 24, "hidden": 80, "messages": True, "masked": True, "problems": "start=any",
    "objective": "pool", "iterations": 150, "pool_slots": 1024, "pool_new_fraction": 0.25,
    "pool_corrupt_fraction": 0.0, "pool_noise": 0.6, "pool_noise_varied": True,
    "pool_shortest": 12, "pool_longest": 12, "pool_until_solved": True, "optimizer": "adam",
    "lr": 8e-3, "weight_decay": 0.0, "grad_clip": 1.0, "batch_size": 64, "epochs": 6,
    "warmup_epochs": 0, "warmup_steps": 100, "schedule": "wsd", "stable_fraction": 0.6,
    "validate_every": 6, "restart_below": 0.99, "monitor_every": 6, "monitor_count": 200,
    "checkpoint_every": 1,
}  # fmt: skip
_MAZES_MAX_PLUS: Fields = {
    "width": 4, "hidden": 8, "problems": "start=any,walls=0.3,path=12-22", "size": 12,
    "count": 18_000, "iterations": 48, "alpha": 0.0, "optimizer": "adam", "lr": 0.03,
    "weight_decay": 0.0, "grad_clip": 1.0, "batch_size": 32, "epochs": 1, "warmup_epochs": 0,
    "warmup_steps": 20, "schedule": "wsd", "stable_fraction": 0.5, "monitor_every": 1,
    "monitor_count": 50,
}  # fmt: skip

_ON_A_CPU = (
    "on two CPU cores: with the 1,600 puzzles that ship, about a minute, and no held-out puzzle is "
    "solved; with 600,000 puzzles (docs/chess.md), half of the held-out ones after 1,000 steps, in "
    "about 4 minutes. The network that ships solves 98 % of those: iterant solve chess"
)
_AN_HOUR = (
    "an hour of one H200; a time limit trains it for minutes at a time, and a branch that starts "
    "from it lets the learning rate fall (docs/chess.md). On a CPU try width 32, batch_size 64, "
    "pool_slots 256 and precision fp32"
)
_CHESS_QUICK: Fields = {
    "width": 32, "bounded": True, "validation": 0.02, "mirror": True, "objective": "pool",
    "pool_slots": 256, "pool_new_fraction": 0.85, "pool_insert_fraction": 0.06,
    "pool_stale_fraction": 0.25, "pool_corrupt_fraction": 0.0, "pool_shortest": 5,
    "pool_longest": 5, "pool_all_losses": True, "position_loss": 0.06, "batch_size": 64,
    "epochs": 1, "optimizer": "muon", "lr": 4e-3, "momentum": 0.95, "beta2": 0.95,
    "weight_decay": 0.0, "grad_clip": 1.0, "warmup_epochs": 0, "warmup_steps": 60,
    "schedule": "wsd", "stable_fraction": 0.3, "ema_decay": 0.99, "monitor_every": 1,
    "monitor_count": 50,
    "notes": (_ON_A_CPU,),
}  # fmt: skip
_CHESS_BEST: Fields = {
    "width": 256, "bounded": True, "validation": 0.02, "mirror": True, "objective": "pool",
    "iterations": 30, "pool_slots": 2048, "pool_new_fraction": 0.85, "pool_insert_fraction": 0.06,
    "pool_stale_fraction": 0.25, "pool_corrupt_fraction": 0.0, "pool_shortest": 6,
    "pool_longest": 6, "pool_all_losses": True, "position_loss": 0.06,
    "optimizer": "muon", "lr": 3e-3, "momentum": 0.95, "beta2": 0.95, "weight_decay": 0.05,
    "grad_clip": 1.0, "ema_decay": 0.999, "batch_size": 256, "epochs": 260, "warmup_epochs": 0,
    "warmup_steps": 300, "schedule": "wsd", "stable_fraction": 0.8, "validate_every": 5,
    "monitor_every": 10, "monitor_count": 2000, "checkpoint_every": 10, "precision": "bf16",
    "notes": (_AN_HOUR,),
}  # fmt: skip

_OTHER_QUICK: Fields = {
    "width": 64, "objective": "pool", "pool_slots": 512, "batch_size": 50, "epochs": 5,
    "lr": 2e-3, "warmup_epochs": 0, "schedule": "cosine", "weight_decay": 0.0, "grad_clip": 1.0,
    "ema_decay": 0.99, "monitor_every": 1, "monitor_count": 50,
}  # fmt: skip
_OTHER_BEST: Fields = {
    **_OTHER_QUICK,
    "notes": ("no recipe is known to be better for this task than the quick one, which this is",),
}

ANY = "any other"
_PAPER_WIDTH: Fields = {"width": None}
"""For a network that a recipe was not made for."""

NAMED: dict[str, dict[str, dict[str, Fields]]] = {
    "paper": {
        "prefix-sums": {"dt-recall": _SUMS_PAPER, "dt": _SUMS_PAPER_DT, "ff": _SUMS_PAPER_FF,
                        "ff-recall": _SUMS_PAPER_FF},
        "mazes": {"dt-recall": _MAZES_PAPER, "ff": _MAZES_PAPER_FF, "ff-recall": _MAZES_PAPER_FF},
        "chess": {"dt-recall": _CHESS_PAPER, "ff": _CHESS_PAPER_FF, "ff-recall": _CHESS_PAPER_FF},
        ANY: {"dt-recall": {}},
    },
    "paper-code": {
        "prefix-sums": {"dt-recall": _SUMS_CODE, "dt": _SUMS_CODE_DT, "ff": _SUMS_CODE_FF,
                        "ff-recall": _SUMS_CODE_FF},
        "mazes": {"dt-recall": _MAZES_PAPER, "ff": _MAZES_PAPER_FF, "ff-recall": _MAZES_PAPER_FF},
        "chess": {"dt-recall": _CHESS_CODE, "ff": _CHESS_CODE_FF, "ff-recall": _CHESS_CODE_FF},
        ANY: {"dt-recall": {}},
    },
    "quick": {
        "prefix-sums": {"dt-recall": _SUMS_QUICK},
        "mazes": {"local-rule": _MAZES_BEST, "max-plus": _MAZES_MAX_PLUS, ANY: _MAZES_QUICK},
        "chess": {"dt-recall": _CHESS_QUICK},
        ANY: {"dt-recall": _OTHER_QUICK},
    },
    "best": {
        "prefix-sums": {"local-rule": _SUMS_BEST, ANY: _SUMS_BEST | _PAPER_WIDTH},
        "mazes": {"local-rule": _MAZES_BEST, "max-plus": _MAZES_MAX_PLUS,
                  ANY: _MAZES_BEST | _PAPER_WIDTH},
        "chess": {"dt-recall": _CHESS_BEST, ANY: _CHESS_BEST | _PAPER_WIDTH},
        ANY: {"dt-recall": _OTHER_BEST},
    },
}  # fmt: skip
"""The fields of a recipe by task and network: the first network is the default of the task, and a
network that is not listed has the fields of `ANY`, or else of the first."""
