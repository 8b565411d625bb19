"""Configs that ship with the package: found by name, listed, copied, imported, and part of wheel and sdist."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from spen_plugins.config import shipped
from spen_plugins.config.evaluation import evaluate, parameters
from spen_plugins.errors import ConfigError
from tests.loaded import ROOT, spen

NAMES = sorted(path.stem for path in [*ROOT.glob("configs/*.jsonnet"), *ROOT.glob("plugins/*/*/configs/*.jsonnet")])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_configs_ship():
    assert shipped.names() == NAMES
    listed = spen("configs").output.splitlines()
    assert [line.split()[0] for line in listed] == NAMES
    assert all(len(line.split()) > 4 for line in listed)  # with a word on what it trains


def test_plugins_ship_configs(elsewhere, monkeypatch, tmp_path_factory):
    def install(plugin, text, name="leaves"):
        site = tmp_path_factory.mktemp("site")
        folder = site / f"spen_{plugin}" / "configs"
        folder.mkdir(parents=True)
        (folder / f"{name}.jsonnet").write_text(text)
        (folder / "srl_seal.jsonnet").write_text("{ seed: 9 }")
        (folder.parent / "__init__.py").write_text("raise ValueError('imported')")
        info = site / f"spen_{plugin}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: spen-{plugin}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[spen_plugins]\n{plugin} = spen_{plugin}\n")
        monkeypatch.syspath_prepend(site)

    install(
        "acme", "// Leaves.\nlocal choose = import 'lib/choose.libsonnet';\n{ seed: 7, big: choose.is_path('a.b') }"
    )
    assert evaluate("leaves") == {"seed": 7, "big": True}
    assert evaluate("srl_seal")["task"]["type"] == "srl"  # the core's own
    assert "leaves" in spen("configs").output
    copied = shipped.copy("leaves", elsewhere / "mine")
    assert [path.relative_to(elsewhere / "mine").as_posix() for path in copied] == [
        "leaves.jsonnet",
        "lib/choose.libsonnet",
    ]
    install("twig", "import 'leaves.jsonnet'", "twigs")  # of another plugin
    assert evaluate("twigs") == evaluate("leaves")
    copied = shipped.copy("twigs", elsewhere / "mine")
    assert [path.name for path in copied] == ["twigs.jsonnet", "leaves.jsonnet", "choose.libsonnet"]
    install("other", "{}")
    listed = spen("configs").output
    assert "leaves" in listed and "ships with two plugins" in listed
    with pytest.raises(ConfigError, match=r"'leaves' ships with two plugins; give the path of one: .*acme.*other"):
        evaluate("leaves")


@pytest.mark.parametrize("name", ["srl_seal", "srl_seal.jsonnet"])
def test_a_config_is_found_by_its_name(name):
    assert evaluate(name, {"method": "crf"})["inference_net"] == {"type": "crf"}
    assert "method" in [parameter.name for parameter in parameters(name)]


def test_a_file_of_ones_own_comes_first(elsewhere):
    (elsewhere / "srl_seal.jsonnet").write_text("{ seed: 7 }")
    assert evaluate("srl_seal.jsonnet") == {"seed": 7}
    (elsewhere / "labels").mkdir()
    assert evaluate("labels")["task"]["type"] == "multilabel"
    with pytest.raises(ConfigError, match=r"not exist\. 'srl_seal' ships with the package: give that name alone"):
        evaluate("configs/srl_seal.jsonnet")
    with pytest.raises(ConfigError, match=r"srl_sel does not exist\. Did you mean 'srl_seal'\?"):
        evaluate("srl_sel")


def test_a_config_of_ones_own_imports_a_shipped_one(elsewhere):
    (elsewhere / "mine.jsonnet").write_text(
        "local srl = import 'srl_seal.jsonnet';\nfunction(method='crf') srl(method=method) + { seed: 5 }"
    )
    assert evaluate("mine.jsonnet") == evaluate("srl_seal", {"method": "crf", "seed": "5"})
    (elsewhere / "trees.jsonnet").write_text("local parsing = import 'parsing.jsonnet';\nparsing() { seed: 5 }")
    assert evaluate("trees.jsonnet") == evaluate("parsing", {"seed": "5"})  # a plugin's
    (elsewhere / "trees.jsonnet").write_text("import 'parsin.jsonnet'")
    with pytest.raises(ConfigError, match=r"resolve parsin\.jsonnet .*\. Did you mean 'parsing\.jsonnet'\?"):
        evaluate("trees.jsonnet")


def test_copies_say_the_same_and_replace_nothing(elsewhere):
    for name in NAMES:  # into one folder
        assert spen("configs", "copy", name, "mine").output.splitlines()[0] == f"mine/{name}.jsonnet"
        assert evaluate(f"mine/{name}.jsonnet") == evaluate(name)
    spen("configs", "copy", "srl_seal", "mine")
    (elsewhere / "mine/srl_seal.jsonnet").write_text("{}")
    changed = spen("configs", "copy", "srl_seal", "mine", status=2)
    assert "with other contents" in changed.output
    assert (elsewhere / "mine/srl_seal.jsonnet").read_text() == "{}"
    assert "Did you mean 'srl_seal'?" in spen("configs", "copy", "srl_sael", "mine", status=2).output


def test_wheel_and_sdist_hold_configs_and_sample_corpora(elsewhere):
    """Both are built as pip builds them, from what git knows and the link that a checkout has."""
    source = elsewhere / "source"
    source.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "spen_plugins", source / "spen_plugins", symlinks=True, ignore=ignored)
    shutil.copytree(ROOT / "configs", source / "configs")
    build = "from setuptools import build_meta as b; b.build_wheel('out'); b.build_sdist('out')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    [wheel], [sdist] = (source / "out").glob("*.whl"), (source / "out").glob("*.tar.gz")
    wanted = {str(path.relative_to(ROOT / "configs")) for path in (ROOT / "configs").rglob("*") if path.is_file()}
    corpora = {path.name for path in (ROOT / "spen_plugins/samples").iterdir() if path.suffix not in (".py", "")}
    with zipfile.ZipFile(wheel) as file:
        samples = {name.rpartition("/")[2] for name in file.namelist() if name.startswith("spen_plugins/samples/")}
        inside = {
            name.partition("/configs/")[2] for name in file.namelist() if name.startswith("spen_plugins/configs/")
        }
    assert inside == wanted and corpora and corpora <= samples
    with tarfile.open(sdist) as file:
        assert corpora <= {Path(m.name).name for m in file.getmembers() if "/spen_plugins/samples/" in m.name}
        members = [m for m in file.getmembers() if "/spen_plugins/configs/" in m.name and m.isfile()]
    assert {member.name.partition("/configs/")[2] for member in members} == wanted
