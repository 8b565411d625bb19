"""The commands of README and docs: run as printed, in order, in one folder per page, or parsed and checked.

`tests/spacy/test_tour.py` runs the commands of docs/spacy.md, `tests/users/test_tutorial.py` of docs/tutorial.md,
and `tests/rules/test_page.py` of docs/rules.md.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from PIL import Image

from spen_images import denoising_sample
from spen_implicit.citations import samples as citations
from spen_plugins.builtin.features.packaged import PACKAGES
from spen_plugins.cli import main, run
from spen_plugins.cli.many import evaluate_parts
from spen_plugins.config.evaluation import evaluate, parse_arguments
from spen_plugins.config.experiment import parse_experiment
from spen_plugins.config.shipped import find
from spen_plugins.registry import Registry
from spen_plugins.samples import labels, srl, tagged
from tests.loaded import ROOT, module_of, small_bert
from tests.pages import blocks, call, commands, files

PAGES = [
    "README.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")) if path.stem != "tutorial"),
]
RUN_PAGES = [
    "README.md",
    "docs/configs.md",
    "docs/encoders.md",
    "docs/first_run.md",
    "docs/images.md",
    "docs/label_sets.md",
    "docs/own_data.md",
    "docs/own_table.md",
    "docs/paper_methods.md",
    "docs/plugins.md",
    "docs/processes.md",
    "docs/research.md",
    "docs/roles.md",
    "docs/runs.md",
    "docs/scale.md",
    "docs/word_tags.md",
]

NOT_RUN = {
    r"^make ": "installs into .venv, or runs all tests",
    r"^pip ": "installs",
    r"^torchrun ": "starts processes of its own",
    r"^spen data get ": "needs the network",
    r" data=(bibtex|cal500|goemotions|twitter_pos|wnut17|ewt|btc|bsd|cora|horses)\b": "needs data from $SPEN_DATA",
    r" task\.reuters=": "needs Reuters-21578",
    r" encoder=bert-base-cased\b": "needs a pretrained encoder by its name",
    r"[ .]encoder=(minilm|mpnet)\b|\"minilm\"": "needs a pretrained encoder's package",
}
"""Commands that are parsed, evaluated and checked, but not run: patterns and reasons."""

SHORTER = {
    r"^spen-run (?!--)(?!.* trainer\.epochs=)(?!\S+\.json )": ["trainer.epochs=1"],
    r"^spen-run .* method=spen\b": ["trainer.net_epochs=1", "inference_net.steps=2"],
    r"^spen-run .* method=unrolled\b": ["trainer.init_epochs=1", "trainer.clamped_epochs=1"],
    r"^spen-run masks(?!.* method=cross_entropy)": ["trainer.net_epochs=1"],
    r"^spen-run .* method=static_(crf|segments)\b": ["trainer.energy_epochs=1"],
    r"^spen-run .* method=gspen\b": ["trainer.net_epochs=1", "trainer.global_epochs=1"],
    r"^spen-run .* method=i?alen\b": ["trainer.warmup_epochs=1"],
    r"^spen-run (names|tags)\b(?!.* methods?=)": ["trainer.pretrain_epochs=1"],
    r"^spen-run citations\b(?!.* method=)": ["trainer.net_epochs=1"],
    r"^spen-run (?!--)": ["--device", "cpu"],
    r"^spen-run .* --jobs ": ["--jobs", "1"],
    r"^spen sweep ": ["--trials", "2", "--device", "cpu"],
}
"""Arguments that are appended to commands that match a pattern, to shorten their training."""


def find_reason(line: str) -> str | None:
    """Returns the reason why a command is not run."""
    return next((reason for pattern, reason in NOT_RUN.items() if re.search(pattern, line)), None)


ALL_LINES = list(dict.fromkeys(line for page in PAGES for line in commands(page)))


# Stand-ins for the reader's own files.


def stand_ins(folder: Path) -> None:
    for name in ("configs", "examples"):
        (folder / name).symlink_to(ROOT / name)
    parts = {"train": 24, "dev": 8, "test": 9}
    contents = {"mine.arff": make_arff(40), "mine.xml": "<labels><label name='a'/><label name='b'/></labels>"}
    contents["texts.txt"] = "we won the match\nthe band played\n"
    contents["citations/plain.txt"] = "A. Bee. On it.\n"
    contents["texts/names.txt"] = "sport\nmusic\n"
    words = ["rain", "wind", "sun", "snow", "ice", "fog"]
    tables = {"mails": "body,topics", "tickets": "comment,tags", "patients": "age,codes"}
    for name, head in tables.items():
        rows = [(f"no {i} of {words[i % 6]}", f"{words[i % 6]};{words[i % 5]}") for i in range(30)]
        first = [str(i) for i in range(30)] if name == "patients" else [text for text, _ in rows]
        cells = [topics.split(";")[0] if name == "tickets" else topics for _, topics in rows]
        contents[f"{name}.csv"] = head + "\n" + "".join(map("{},{}\n".format, first, cells))
    contents["dev.conll"] = "\n".join(
        "".join(f"{word}\t{tag}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True))
        for sentence in tagged.sample_corpus("pos")["validation"][:8]
    )
    for part, size in parts.items():
        contents[f"srl/{part}.conll"] = "Anna\t-\t(ARG0*)\nsent\tsend\t(V*)\nletters\t-\t(ARG1*)\n\n" * size
        contents[f"ner/{part}.conll"] = "".join(
            f"Ann{chr(97 + i)}\tB-PER\nlives\tO\nin\tO\nNew\tB-LOC\nYork\tI-LOC\n\n" for i in range(size)
        )
        contents[f"pos/{part}.conllu"] = (
            "1\tAnna\t_\tPROPN\tNNP\t_\t_\t_\t_\t_\n2\tsleeps\t_\tVERB\tVBZ\t_\t_\t_\t_\t_\n\n" * size
        )
        contents[f"citations/{part}.txt"] = "<author> A. Bee. </author> <title> On it. </title>\n" * size
        contents[f"trees/{part}.trees"] = "".join(f"(S (NP (NN {c}at)) (VP (VBZ sits)))\n" for c in "abcdefgh"[:size])
        contents[f"table/{part}.csv"] = "x,colour,tag_a,tag_b\n1,red,0,1\n2.5,,1,0\n" + "3,blue,1,1\n" * size
        contents[f"texts/{part}.tsv"] = "the match\tsport\nthe band\tmusic\n" * size
    for name, text in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for part in parts:
        (folder / "photos" / part).mkdir(parents=True)
        for name, image in zip("ab", denoising_sample.make()["test"], strict=False):
            Image.fromarray(image).save(folder / "photos" / part / f"{name}.png")


def make_arff(rows: int) -> str:
    """Returns an ARFF file with two numeric attributes and two labels."""
    head = "@relation mine\n@attribute x numeric\n@attribute y numeric\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n"
    return head + "".join(f"{i % 5},{i % 3},{i % 2},{int(i % 3 == 0)}\n" for i in range(rows))


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN_PAGES)
def test_commands_run_as_printed(page: str, site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On embedded corpora with few examples, for one epoch."""
    site.install("acme", (files("docs/plugins.md") | files(page))["spen_acme.py"], module="spen_acme")
    for corpus in (citations, labels, srl, tagged):
        monkeypatch.setattr(corpus, "SIZES", {"train": 100, "validation": 30, "test": 30})
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    stand_ins(folder)
    for name, text in files(page).items():
        Path(name).write_text(text, encoding="utf-8")
    for line in commands(page):
        if find_reason(line) is None:
            arguments = [word for pattern, words in SHORTER.items() if re.search(pattern, line) for word in words]
            call(line, *arguments)


def test_every_page_is_run_here_or_in_its_own_test() -> None:
    assert {page for page in PAGES if commands(page)} == {*RUN_PAGES, "docs/rules.md", "docs/spacy.md"}


@pytest.mark.parametrize("pattern", [*NOT_RUN, *SHORTER])
def test_every_exception_matches_a_command(pattern: str) -> None:
    assert any(re.search(pattern, line) for line in ALL_LINES)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/configs.md"])
def test_a_pretrained_encoder_has_the_rates_of_the_page(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands and its config, with a small encoder that has as many layers as the named one."""
    monkeypatch.setattr(srl, "SIZES", {"train": 20, "validation": 5, "test": 5})
    monkeypatch.chdir(tmp_path)
    sizes = {"hidden_size": 4, "num_attention_heads": 1, "intermediate_size": 4}  # bert-base-cased has as many layers
    small_bert(tmp_path / "bert", ["the", "."], num_hidden_layers=12, **sizes)
    Path("layers.jsonnet").write_text(files(page)["layers.jsonnet"], encoding="utf-8")
    [line] = [line for line in commands(page) if "encoder=bert-base-cased" in line]
    for command in (line, "spen-run layers.jsonnet encoder=bert-base-cased"):
        local_command = command.replace("encoder=bert-base-cased", f"encoder={tmp_path / 'bert'}")
        call(local_command, "trainer.epochs=1", "--device", "cpu")


# All commands, run or not.


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stand-ins for the reader's files, and the files of all pages."""
    folder = tmp_path_factory.mktemp("readers")
    stand_ins(folder)
    for page in PAGES:
        for name, text in files(page).items():
            (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("line", ALL_LINES)
def test_every_command_exists(line: str, site, monkeypatch: pytest.MonkeyPatch, readers: Path) -> None:
    """Options and arguments are parsed by the real parser, configs evaluated and checked, make targets resolved."""
    site.install("acme", files("docs/plugins.md")["spen_acme.py"], module="spen_acme")
    words = shlex.split(line, comments=True)
    if words[0] == "torchrun":
        words = words[words.index("spen-run") :]
    if words[0] == "make":
        subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
    elif words[0] == "pip":
        assert words[1] == "install"
        folders = [ROOT / path for option, path in pairwise(words) if option == "-e"]
        assert all((folder / "pyproject.toml").exists() for folder in folders)
        assert folders or words[2] == "--no-deps"
        for package in words[3:] if words[2] == "--no-deps" else ():
            extras = (ROOT / "setup.cfg").read_text(encoding="utf-8")
            assert f"    {package}>=" in extras or any(package in packages for packages in PACKAGES.values())
    elif words[:3] == ["python", "-m", "spacy"]:
        from spacy.cli._util import app

        command = typer.main.get_command(app).commands[words[3]]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options
    elif words[:2] == ["python", "-m"]:
        assert find_spec(f"{words[2]}.__main__")
    elif words[0] == "spen":
        parse_spen(words[1:])
    else:
        assert words[0] == "spen-run"
        monkeypatch.chdir(readers)
        parse_spen_run(words[1:])


def examples_in_help(command: Any) -> Iterator[str]:
    """Yields the examples in the help of a command and of its subcommands."""
    with command.make_context(command.name, [], resilient_parsing=True) as context:
        command = context.command  # the imported command, if a plugin provides it
        yield from re.findall(r"^Example: (.+)$", command.help or "", re.M)
        for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
            yield from examples_in_help(command.get_command(context, name))


def test_the_help_of_every_command_has_a_valid_example() -> None:
    [line] = examples_in_help(typer.main.get_command(run.app))
    typer.main.get_command(run.app).make_context("spen-run", shlex.split(line)[1:])
    lines = [shlex.split(line) for line in examples_in_help(typer.main.get_command(main.app))]
    spen = typer.main.get_command(main.app)
    assert {words[1] for words in lines} == set(spen.list_commands(typer.Context(spen)))
    for words in lines:
        parse_spen(words[1:])


def parse_spen(words: list[str]) -> None:
    command = typer.main.get_command(main.app)
    with command.make_context("spen", list(words)) as context:
        while hasattr(command, "resolve_command") and (rest := [*context._protected_args, *context.args]):
            name, command, rest = command.resolve_command(context, rest)
            context = command.make_context(name, rest, parent=context)
        if name == "describe":
            Registry().resolve(context.params["kind"], context.params["type_name"])
        if name == "together":
            for table, source in evaluate_parts(context.params["words"]).values():
                parse_experiment(table, source, Registry())
        file = context.params.get("file")
        if file is not None and str(file).startswith("examples/"):
            assert (ROOT / file).exists()


def parse_spen_run(words: list[str]) -> None:
    context = typer.main.get_command(run.app).make_context("spen-run", list(words))
    if (path := context.params["config"]) is None:
        return
    if path.parent.name == "copied":
        parse_spen(["configs", "copy", path.stem, "copied"])
        path = Path(path.name)
    arguments = parse_arguments(context.params["arguments"] or [])
    if "methods" in arguments:
        arguments["method"] = run.parse_methods(arguments.pop("methods"))[-1]
    if "seeds" in arguments:
        arguments["seed"] = str(run.parse_seeds(arguments.pop("seeds"))[0])
    parse_experiment(evaluate(path, arguments), path, Registry())


# docs/results, whose commands require the data sets.

RESULTS = [
    "docs/gallery.md",
    "docs/results.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/results").glob("*.md")),
]


def list_published() -> Iterator[tuple[str, str]]:
    """Yields groups of tools/results/results.yaml with the commands of their rows, as docs/results shows them."""
    tool = module_of(ROOT / "tools/results/results.py")
    for name, group in yaml.safe_load((ROOT / "tools/results/results.yaml").read_text()).items():
        for row, spec in group["rows"].items():
            command = tool.command(group["config"], tool._merge_arguments(group, spec), 0)
            if "of" in spec:
                assert "of" not in group["rows"][spec["of"]] and tool._list_seeds(group, spec) == tool._list_seeds(
                    group, group["rows"][spec["of"]]
                )
                command = tool.decoding(name, row, spec, 0)
            yield name, f"{shlex.join(command)}   # {row}, seeds {tool._list_seeds(group, spec)}"


def list_result_lines() -> list[str]:
    """Returns the lines of blocks, and the commands in paragraphs."""
    lines = [line for page in RESULTS for block in blocks(page, "") for line in block.splitlines()]
    text = "\n".join((ROOT / page).read_text() for page in RESULTS)
    return [*lines, *re.findall(r"`((?:spen|spen-run) [^`]*[/=][^`]*)`", text)]


def test_results_show_the_commands_of_the_tool() -> None:
    section, page_commands = "", set()
    for line in "\n".join((ROOT / page).read_text() for page in RESULTS).splitlines():
        if match := re.match(r"#+ (\w+)$", line):
            section = match[1]
        if line.startswith(("spen-run", "spen decode")) and "   # " in line:
            page_commands.add((section, line))
    assert len(page_commands) > 50 and page_commands <= set(list_published())


def test_commands_of_results_are_checked() -> None:
    for line in list_result_lines():
        words = shlex.split(line, comments=True)
        if words[0] == "spen":
            parse_spen(words[1:])
        elif words[0] == "spen-run":
            params = typer.main.get_command(run.app).make_context("spen-run", words[1:]).params
            path = find(Path(Path(params["config"]).stem))
            parse_experiment(evaluate(path, parse_arguments(params["arguments"])), path, Registry())
        else:
            assert words[0] in ("python", "make")
