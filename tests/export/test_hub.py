"""A folder for the hub reads back as the same network, and its card claims what is known."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import iterant
from iterant.errors import UntrustedCode
from iterant.export import export_hub, export_onnx
from iterant.io import RunFolder, read_weights, save_weights
from iterant.nets import LocalRuleConfig, build
from iterant.zoo.loading import folder_of

RULE = LocalRuleConfig(dims=2, channels=3, stem=2, masked=True, readout="argmax-open")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with two checkpoints."""
    config = {
        "task": "mazes",
        "net": {"kind": RULE.kind, "config": RULE.described()},
        "recipe": {"objective": "pool", "rate": 0.001, "alpha": None},
        "seed": 7,
    }
    folder = RunFolder.create(tmp_path / "m7", config)
    for seed, name in enumerate(("last", "best")):
        net = build(RULE.kind, RULE.described(), seed=seed)
        assert isinstance(net, nn.Module)
        folder.save(name, {f"net.{key}": value for key, value in net.state_dict().items()}, {})
    return folder.path


def test_round_trip(tmp_path: Path, run: Path) -> None:
    export_hub(run, tmp_path / "hub")
    batch = iterant.task("mazes").sample(2, size=5, seed=1)
    first, second = (
        iterant.solve(iterant.load(folder), batch.inputs, max_steps=5).prediction
        for folder in (run, tmp_path / "hub")
    )
    assert torch.equal(first, second)
    names = {path.name for path in (tmp_path / "hub").iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors"}
    tensors = load_file(tmp_path / "hub" / "model.safetensors")
    assert torch.equal(tensors["mix.weight"], read_weights(run)[1]["mix.weight"])
    assert json.loads((tmp_path / "hub" / "config.json").read_text())["model_type"] == "iterant"
    config, _ = read_weights(tmp_path / "hub")
    assert (config["task"], config["seed"]) == ("mazes", 7)
    _, last = read_weights(export_hub(run, tmp_path / "last", which="last"))
    assert torch.equal(last["mix.weight"], read_weights(run, "last")[1]["mix.weight"])
    assert not torch.equal(last["mix.weight"], tensors["mix.weight"])
    # And once more from there: nothing is lost on the way.
    export_hub(tmp_path / "hub", tmp_path / "again")
    assert read_weights(tmp_path / "again")[0] == config


def test_card(tmp_path: Path, run: Path) -> None:
    text = (export_hub(run, tmp_path / "hub") / "README.md").read_text()
    assert text.startswith("---\nlibrary_name: iterant\n")
    count = sum(value.numel() for value in read_weights(run)[1].values())
    assert f"# m7\n\nA network with {count:,} parameters for the task `mazes`" in text
    recorded = json.loads(text.partition("```json\n")[2].partition("```")[0])
    assert (recorded["kind"], recorded["seed"]) == ("local-rule", 7)
    assert recorded["recipe"]["rate"] == 0.001
    code = text.partition("```python\n")[2].partition("```")[0]
    code = code.replace("PATH/TO/THIS/FOLDER", str(tmp_path / "hub")).replace("1000", "3")
    (tmp_path / "card.py").write_text(code)
    assert runpy.run_path(str(tmp_path / "card.py"))["answer"].prediction.shape[0] == 4


def test_card_of_a_shipped_network(tmp_path: Path) -> None:
    folder = export_hub("mazes-messages", tmp_path / "hub")
    text = (folder / "README.md").read_text()
    assert "```\n\n- **Trained on**" in text
    shown = set(re.findall(r"]\(([^)]*\.png)\)", text))
    assert shown == {path.name for path in folder.glob("*.png")} != set()
    again = export_hub(folder, tmp_path / "again")
    assert {path.name for path in again.iterdir()} == {path.name for path in folder.iterdir()}


def test_pictures_outside_the_folder(tmp_path: Path) -> None:
    config, tensors = read_weights(folder_of("mazes"))
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"not yours")
    described = {key: config[key] for key in ("kind", "config", "task", "card")}
    described["card"] = {**config["card"], "pictures": {"../secret.png": "a", str(secret): "b"}}
    folder = save_weights(tmp_path / "w", described, tensors)
    (folder / "CARD.md").write_text("![a](../secret.png) ![b](link.png)")
    (folder / "link.png").symlink_to(secret)
    assert not list(export_hub(folder, tmp_path / "hub").rglob("*.png"))


def test_code_that_a_folder_names_is_not_imported(tmp_path: Path) -> None:
    save_weights(tmp_path / "w", {"kind": "strange:Net", "config": {}}, {"a": torch.ones(1)})
    for export in (export_hub, export_onnx):
        with pytest.raises(UntrustedCode, match="strange:Net"):
            export(tmp_path / "w", tmp_path / "out")
    assert not (tmp_path / "out").exists()
