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
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_configs_ship():
    assert shipped.names() == NAMES
    lines = spen("configs").output.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert all(len(line.split()) > 4 for line in lines)  # with a description


def test_plugins_ship_configs(folder, monkeypatch, tmp_path_factory):
    def install(plugin, text, name="leaves"):
        site = tmp_path_factory.mktemp("site")
        config_folder = site / f"spen_{plugin}" / "configs"
        config_folder.mkdir(parents=True)
        (config_folder / f"{name}.jsonnet").write_text(text)
        (config_folder / "srl_seal.jsonnet").write_text("{ seed: 9 }")
        (config_folder.parent / "__init__.py").write_text("raise ValueError('imported')")
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
    paths = shipped.copy("leaves", folder / "mine")
    assert [path.relative_to(folder / "mine").as_posix() for path in paths] == [
        "leaves.jsonnet",
        "lib/choose.libsonnet",
    ]
    install("twig", "import 'leaves.jsonnet'", "twigs")  # of another plugin
    assert evaluate("twigs") == evaluate("leaves")
    paths = shipped.copy("twigs", folder / "mine")
    assert [path.name for path in paths] == ["twigs.jsonnet", "leaves.jsonnet", "choose.libsonnet"]
    install("other", "{}")
    output = spen("configs").output
    assert "leaves" in output and "ships with two plugins" in output
    with pytest.raises(ConfigError, match=r"'leaves' ships with two plugins; give the path of one: .*acme.*other"):
        evaluate("leaves")


@pytest.mark.parametrize("name", ["srl_seal", "srl_seal.jsonnet"])
def test_a_config_is_found_by_its_name(name):
    assert evaluate(name, {"method": "crf"})["inference_net"] == {"type": "crf"}
    assert "method" in [parameter.name for parameter in parameters(name)]


def test_a_users_file_comes_first(folder):
    (folder / "srl_seal.jsonnet").write_text("{ seed: 7 }")
    assert evaluate("srl_seal.jsonnet") == {"seed": 7}
    (folder / "labels").mkdir()
    assert evaluate("labels")["task"]["type"] == "multilabel"
    with pytest.raises(ConfigError, match=r"not exist\. 'srl_seal' ships with the package: give that name alone"):
        evaluate("configs/srl_seal.jsonnet")
    with pytest.raises(ConfigError, match=r"srl_sel does not exist\. Did you mean 'srl_seal'\?"):
        evaluate("srl_sel")


def test_a_users_config_imports_a_shipped_one(folder):
    (folder / "mine.jsonnet").write_text(
        "local srl = import 'srl_seal.jsonnet';\nfunction(method='crf') srl(method=method) + { seed: 5 }"
    )
    assert evaluate("mine.jsonnet") == evaluate("srl_seal", {"method": "crf", "seed": "5"})
    (folder / "trees.jsonnet").write_text("local parsing = import 'parsing.jsonnet';\nparsing() { seed: 5 }")
    assert evaluate("trees.jsonnet") == evaluate("parsing", {"seed": "5"})  # a plugin's
    (folder / "trees.jsonnet").write_text("import 'parsin.jsonnet'")
    with pytest.raises(ConfigError, match=r"resolve parsin\.jsonnet .*\. Did you mean 'parsing\.jsonnet'\?"):
        evaluate("trees.jsonnet")


def test_copies_are_equivalent_and_replace_nothing(folder):
    for name in NAMES:  # into one folder
        assert spen("configs", "copy", name, "mine").output.splitlines()[0] == f"mine/{name}.jsonnet"
        assert evaluate(f"mine/{name}.jsonnet") == evaluate(name)
    spen("configs", "copy", "srl_seal", "mine")
    (folder / "mine/srl_seal.jsonnet").write_text("{}")
    result = spen("configs", "copy", "srl_seal", "mine", status=2)
    assert "with other contents" in result.output
    assert (folder / "mine/srl_seal.jsonnet").read_text() == "{}"
    assert "Did you mean 'srl_seal'?" in spen("configs", "copy", "srl_sael", "mine", status=2).output


def test_wheel_and_sdist_hold_configs_and_sample_corpora(folder):
    """Both are built as pip builds them, from tracked files and the link that a checkout has."""
    source = folder / "source"
    source.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "spen_plugins", source / "spen_plugins", symlinks=True, ignore=ignored)
    shutil.copytree(ROOT / "configs", source / "configs")
    build = "from setuptools import build_meta as b; b.build_wheel('out'); b.build_sdist('out')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    [wheel], [sdist] = (source / "out").glob("*.whl"), (source / "out").glob("*.tar.gz")
    expected = {str(path.relative_to(ROOT / "configs")) for path in (ROOT / "configs").rglob("*") if path.is_file()}
    corpora = {path.name for path in (ROOT / "spen_plugins/samples").iterdir() if path.suffix not in (".py", "")}
    with zipfile.ZipFile(wheel) as file:
        samples = {name.rpartition("/")[2] for name in file.namelist() if name.startswith("spen_plugins/samples/")}
        configs = {
            name.partition("/configs/")[2] for name in file.namelist() if name.startswith("spen_plugins/configs/")
        }
    assert configs == expected and corpora and corpora <= samples
    with tarfile.open(sdist) as file:
        assert corpora <= {Path(m.name).name for m in file.getmembers() if "/spen_plugins/samples/" in m.name}
        members = [m for m in file.getmembers() if "/spen_plugins/configs/" in m.name and m.isfile()]
    assert {member.name.partition("/configs/")[2] for member in members} == expected
