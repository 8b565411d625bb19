"""Data files: locating them, downloading them (from a server on this machine) and splitting them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import http.server
import json
import os
import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from spen_plugins.data import download
from spen_plugins.data.catalogue import CATALOGUE, DataSet, File, locate
from spen_plugins.data.download import get
from spen_plugins.data.parts.split import split_file
from spen_plugins.data.parts.stratification import stratify
from spen_plugins.errors import ConfigError, DataError, RunError
from tests.loaded import ROOT, parsed

SPEN_DATA = os.environ.get("SPEN_DATA")
real_data = pytest.mark.skipif(not SPEN_DATA, reason="$SPEN_DATA is not set")


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPEN_DATA", raising=False)
    return tmp_path / "cache" / "spen_plugins"


@pytest.fixture
def server(tmp_path):
    """A mirror: its folder and its address."""
    root = tmp_path / "mirror"
    root.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=root)) as http_server:
        threading.Thread(target=http_server.serve_forever, args=(0.01,), daemon=True).start()
        yield root, f"http://127.0.0.1:{http_server.server_port}"
        http_server.shutdown()


def make_arff(rows: int = 60) -> str:
    rng = np.random.default_rng(3)
    head = ["@relation toy", "@attribute n numeric", *(f"@attribute {n} {{0,1}}" for n in "wabc"), "@data"]
    cells = enumerate((rng.random((rows, 4)) < 0.4).astype(int))
    return "\n".join([*head, *(",".join(map(str, (n, *row))) for n, row in cells)]) + "\n"


@pytest.fixture
def toy(server, monkeypatch) -> DataSet:
    """A data set on the mirror, in the catalogue."""
    root, _ = server
    contents = {
        "toy.arff": make_arff(),
        "toy.xml": "<labels>" + "".join(f'<label name="{n}"/>' for n in "abc") + "</labels>",
    }
    files = []
    for name, text in contents.items():
        (root / "them").mkdir(exist_ok=True)
        (root / "them" / name).write_text(text)
        files.append(File(f"multilabel/toy/{name}", f"them/{name}", hashlib.sha256(text.encode()).hexdigest()))
    split = split_file(root / "them" / "toy.arff", root / "toy.json")
    checksum = hashlib.sha256(split.read_bytes()).hexdigest()
    entry = DataSet("toy", "a toy", "none", tuple(files), (("multilabel/splits/toy.json", checksum),))
    monkeypatch.setitem(CATALOGUE, "toy", entry)
    return entry


def serve(patch: pytest.MonkeyPatch, root: Path, name: str, files: Sequence[File], text: str = "", **changes) -> None:
    """Put files on the mirror, each with this text or its own path, and their checksums into the catalogue."""
    checked = []
    for file in files:
        content = text or file.path
        (root / file.origin).parent.mkdir(parents=True, exist_ok=True)
        (root / file.origin).write_text(content)
        checked.append(dataclasses.replace(file, sha256=hashlib.sha256(content.encode()).hexdigest()))
    patch.setitem(CATALOGUE, name, dataclasses.replace(CATALOGUE[name], files=tuple(checked), **changes))


def test_plain_paths_pass_through(cache):
    assert locate("some/where.arff") == Path("some/where.arff")


def test_an_empty_path_is_no_folder():
    with pytest.raises(DataError, match="found an empty path"):
        locate("")
    with pytest.raises(ConfigError, match=r"'task.validation': found \"\".*the path is empty"):
        parsed("task", "text", train="x.csv", validation="")


def test_a_tilde_is_the_home_folder(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locate("~/x.arff") == tmp_path / "x.arff"
    assert locate("~nobody-at-all/x.arff") == Path("~nobody-at-all/x.arff")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("x")
    monkeypatch.setenv("SPEN_DATA", "~/mine")
    assert locate("data:x") == tmp_path / "mine" / "x"


def test_data_paths_are_looked_up_in_order(cache, tmp_path, monkeypatch):
    for root in (cache, tmp_path / "mine"):
        (root / "pos").mkdir(parents=True)
        (root / "pos" / "x").write_text("x")
    assert locate("data:pos/x") == cache / "pos" / "x"
    monkeypatch.setenv("SPEN_DATA", str(tmp_path / "mine"))
    assert locate("data:pos/x") == tmp_path / "mine" / "pos" / "x"


def test_the_error_for_missing_data_says_how_to_get_them(cache, monkeypatch):
    with pytest.raises(DataError, match=r"spen data get bibtex") as caught:
        locate("data:multilabel/splits/bibtex.json")
    assert str(cache) in str(caught.value) and "$SPEN_DATA" in str(caught.value)
    monkeypatch.setenv("SPEN_DATA", "/nowhere/at/all")
    with pytest.raises(DataError, match=r"/nowhere/at/all nor .*bibtex, delicious"):
        locate("data:multilabel/no-such-set/x.arff")


def test_the_error_for_data_without_a_download_names_no_command(tmp_path, monkeypatch):
    monkeypatch.setenv("SPEN_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"glove_twitter can't be downloaded: .*vectors=FILE") as error:
        locate("data:vectors/glove.twitter.27B.25d.top12k.txt")
    assert "spen data get" not in str(error.value)


def test_get_downloads_checks_and_splits(cache, server, toy):
    questions: list[str] = []
    assert (
        get("toy", ask=lambda question: bool(questions.append(question)) or True, base_url=server[1])
        == cache / toy.folder
    )
    assert len(questions) == 1 and "none" in questions[0]  # names the licence
    assert locate("data:multilabel/toy/toy.arff").read_text() == make_arff()
    split = json.loads(locate("data:multilabel/splits/toy.json").read_text())
    assert sorted(row for rows in split.values() for row in rows) == list(range(60))
    assert not list(cache.rglob("*.partial"))
    # a second call needs neither a server nor an answer
    assert get("toy", base_url="http://127.0.0.1:9") == cache / toy.folder


def get_six_times_at_once(name: str, url: str, say) -> None:
    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(get, name, yes=True, base_url=url, say=say) for _ in range(6)]
    assert len({job.result() for job in jobs}) == 1


def test_six_simultaneous_calls_download_once(cache, server, toy, monkeypatch):
    all_waiting, messages, urls, receive = threading.Event(), [], [], download._receive

    def say(sentence: str) -> None:
        messages.append(sentence)
        if len(messages) == 5:
            all_waiting.set()

    def receive_slowly(url: str):
        urls.append(url)
        assert all_waiting.wait(60)
        yield from receive(url)

    monkeypatch.setattr(download, "_receive", receive_slowly)
    get_six_times_at_once("toy", server[1], say)
    assert len(urls) == len(set(urls)) == 2 and len(messages) == 5
    assert all("multilabel/toy is in use by " in sentence for sentence in messages)
    holders = (f"process {os.getpid()} on ", "another process")  # whose number is not written yet
    assert all(any(holder in sentence for holder in holders) for sentence in messages)
    assert [path.name for path in sorted((cache / "multilabel/toy").iterdir())] == ["toy.arff", "toy.xml"]


def test_six_simultaneous_calls_without_locks_succeed(cache, server, toy, monkeypatch):
    monkeypatch.setattr(download, "locked", lambda *_: nullcontext())
    get_six_times_at_once("toy", server[1], pytest.fail)
    assert locate("data:multilabel/toy/toy.arff").read_text() == make_arff() and not list(cache.rglob("*.partial"))


def test_a_link_in_the_cache_is_not_written_through(cache, server, toy, tmp_path):
    victim, folder = tmp_path / "victim", cache / "multilabel/toy"
    folder.mkdir(parents=True)
    victim.write_text("mine")
    (folder / "toy.arff").symlink_to(victim)
    get("toy", yes=True, base_url=server[1])
    assert victim.read_text() == "mine" and not (folder / "toy.arff").is_symlink()


def test_a_full_disk_is_not_taken_for_the_network(cache, server, toy, monkeypatch):
    def fail(path: Path, *_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spen_plugins.files.unfinished.sync", fail)
    with pytest.raises(RunError, match=r"can't be written: No space left") as error:
        download.download(f"{server[1]}/them/toy.arff", target := cache / "toy.arff", None)
    assert "network" not in str(error.value) and not target.exists()


def test_get_downloads_damaged_files_again(cache, server, toy):
    get("toy", yes=True, base_url=server[1])
    (cache / "multilabel/toy/toy.xml").write_text("damaged")
    get("toy", yes=True, base_url=server[1])
    assert (cache / "multilabel/toy/toy.xml").read_text().startswith("<labels>")


def test_nothing_is_downloaded_unless_the_licence_is_accepted(cache, server, toy):
    for ask in (None, lambda question: False):
        with pytest.raises(ConfigError, match="licence"):
            get("toy", ask=ask, base_url=server[1])
    assert not cache.exists()


def test_a_wrong_checksum_leaves_nothing_behind(cache, server, toy):
    (server[0] / "them" / "toy.arff").write_text(make_arff(61))
    with pytest.raises(RunError, match="sha256"):
        get("toy", yes=True, base_url=server[1])
    assert not [p for p in cache.rglob("*") if p.is_file()]


def test_a_split_with_another_checksum_is_rejected(cache, server, toy, monkeypatch):
    monkeypatch.setitem(CATALOGUE, "toy", dataclasses.replace(toy, made=(("multilabel/splits/toy.json", "0" * 64),)))
    with pytest.raises(RunError, match="NumPy"):
        get("toy", yes=True, base_url=server[1])
    assert not (cache / "multilabel/splits/toy.json").exists()


@pytest.mark.parametrize("base", ["http://127.0.0.1:9", "SERVER/gone"])
def test_no_network_or_no_file_is_a_clear_error(cache, server, toy, base):
    with pytest.raises(RunError, match="could not download"):
        get("toy", yes=True, base_url=base.replace("SERVER", server[1]))
    assert not [p for p in cache.rglob("*") if p.is_file()]


@pytest.mark.parametrize(("name", "licence", "files"), [("cora", "LGPL", 1), ("anystyle", "BSD", 3)])
def test_citations_name_their_licence(cache, server, name, licence, files):
    entry = CATALOGUE[name]
    assert licence in entry.licence and entry.folder == f"citations/{name}" and len(entry.files) == files
    with pytest.raises(ConfigError, match=rf"{name}: licence: .*{licence}"):
        get(name, base_url=server[1])


def test_unknown_and_unavailable_names(cache):
    with pytest.raises(ConfigError, match=r"Did you mean 'bibtex'\?"):
        get("bibtx")
    with pytest.raises(ConfigError, match=r"reconstruction.*\$SPEN_DATA"):
        get("expr_fun", yes=True)
    for name, argument in (
        ("glove_twitter", "vectors=FILE"),
        ("clusters", "clusters=FILE"),
        ("horses", r"may run code.*data=FILE\.npz"),
    ):
        with pytest.raises(ConfigError, match=rf"{argument}.*\$SPEN_DATA"):
            get(name, yes=True)


def test_folders_of_several_levels(cache, server, monkeypatch):
    """A set of tagged sentences, with a folder inside its folder, is put where configs look for it."""
    root, url = server
    serve(monkeypatch, root, "twitter_pos", CATALOGUE["twitter_pos"].files)
    assert get("twitter_pos", yes=True, base_url=url) == cache / "pos" / "twitter_pos"
    path = "pos/twitter_pos/oct27.splits/oct27.dev"
    assert locate(f"data:{path}").read_text() == path


def test_a_folder_of_images_is_found_when_it_is_complete(cache, server, monkeypatch):
    """`data:images/bsd/Set12` names a folder; an incomplete download is not taken for the data set."""
    root, url = server
    entry = CATALOGUE["bsd"]
    assert "research only" in entry.licence and entry.folder == "images/bsd"
    counts = [len(entry.below(f"images/bsd/{name}")) for name in ("Train400", "BSD68", "Set12")]
    assert counts == [400, 68, 12] and len(entry.files) == 480
    with pytest.raises(DataError, match=r"no images/bsd/Train400 below .*`spen data get bsd` downloads it"):
        locate("data:images/bsd/Train400")
    files = [file for file in entry.files if "Set12" in file.path]
    serve(monkeypatch, root, "bsd", files)
    get("bsd", yes=True, base_url=url)
    assert locate("data:images/bsd/Set12/") == cache / "images" / "bsd" / "Set12"
    (cache / files[3].path).unlink()
    with pytest.raises(DataError, match=r"only a part of images/bsd/Set12 below .*spen data get bsd"):
        locate("data:images/bsd/Set12")


def test_the_catalogue_is_complete():
    assert [entry.name for entry in CATALOGUE.values()] == list(CATALOGUE)
    assert download.ORIGIN.startswith("https://")
    for entry in CATALOGUE.values():
        assert entry.about and entry.licence and entry.paths and bool(entry.files) != bool(entry.why_not)
        for file in entry.files:
            assert (
                len(file.sha256) == 64 and file.origin.split("/")[2].isalnum() and len(file.origin.split("/")[2]) == 40
            )


CONLLU = """# newdoc id = reviews-01
# sent_id = reviews-01-0001
# text = They don't.
1\tThey\tthey\tPRON\tPRP\t_\t0\troot\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t0\troot\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t0\troot\t_\t_

# sent_id = reviews-01-0002
1\tOther\tother\tADJ\tJJ\t_\t0\troot\t_\t_
2\ttags\ttag\tNOUN\tNNS\t_\t0\troot\t_\t_

# sent_id = reviews-01-0003
1\tLonger\tlong\tADJ\tJJR\t_\t0\troot\t_\t_

# sent_id = reviews-02-0001
1\tGone\tgo\tVERB\tVBN\t_\t0\troot\t_\t_
"""
SKELETON = """g/01.xml    0   0   [WORD]   PRP    (TOP(S(NP*)     -      -  (ARG0*)
g/01.xml    0   1   [WORD]   VBP          (VP*     do  do.01     (V*)
g/01.xml    0   2   [WORD]    XX             *      -      -  (ARGM-NEG*)
g/01.xml    0   3   [WORD]     .           *))      -      -       *

g/01.xml    1   0   [WORD]    NN    (TOP*     - -
g/01.xml    1   1   [WORD]   NNS        *)    - -

g/01.xml    2   0   [WORD]   JJR    (TOP*     - -
g/01.xml    2   1   [WORD]   JJR       *)     - -

"""
MERGED = """# sent_id = reviews-01-0001
0\tThey\tPRP\t*\t-\t-\t(ARG0*)
1\tdo\tVBP\t*\tdo\tdo.01\t(V*)
2\tn't\tXX\t*\t-\t-\t(ARGM-NEG*)
3\t.\t.\t*\t-\t-\t*

"""


def test_ewt_is_merged_from_its_two_sources(cache, server, monkeypatch):
    """The tree's own tags are kept. Left out: too few equal tags, another length, a document that PropBank lacks."""
    root, url = server
    entry = CATALOGUE["ewt"]
    skeleton = root / download.RELEASE / "reviews" / "00" / "01.xml.gold_skel"
    skeleton.parent.mkdir(parents=True)
    skeleton.write_text(SKELETON)
    derived = tuple((path, hashlib.sha256(MERGED.encode()).hexdigest()) for path, _ in entry.made)
    serve(monkeypatch, root, "ewt", entry.files, CONLLU, made=derived)
    assert get("ewt", yes=True, base_url=url) == cache / "srl" / "ewt_propbank"
    assert locate("data:srl/ewt_propbank/ewt-propbank-dev.gold_conll").read_text() == MERGED
    assert sorted(p.name for p in (cache / "srl/ewt_propbank").iterdir()) == sorted(Path(p).name for p, _ in derived)
    get("ewt", base_url="http://127.0.0.1:9")  # all files exist


@real_data
def test_the_catalogue_has_the_checksums_of_the_real_files():
    for entry in CATALOGUE.values():
        for file in entry.files:
            assert hashlib.sha256((Path(SPEN_DATA) / file.path).read_bytes()).hexdigest() == file.sha256, file.path
        for path in entry.paths:
            assert locate(f"data:{path}").exists()


@real_data
@pytest.mark.parametrize("name", ["genbase", "cal500", "bibtex"])
def test_the_published_splits_are_reproduced(name, tmp_path):
    split_path = split_file(f"data:multilabel/{name}/{name}.arff", tmp_path / "split.json", together=False)
    assert hashlib.sha256(split_path.read_bytes()).hexdigest() == CATALOGUE[name].made[0][1]


def test_stratify_keeps_label_shares():
    rng = np.random.default_rng(0)
    labels = rng.random((1000, 12)) < np.linspace(0.02, 0.5, 12)
    fold = stratify(labels, 10, seed=1)
    assert np.bincount(fold).tolist() == pytest.approx([100] * 10, abs=4)

    def measure_deviation(fold):
        return np.abs(np.stack([labels[fold == i].sum(0) for i in range(10)]) - labels.sum(0) / 10).mean()

    assert measure_deviation(fold) < 0.2 * measure_deviation(rng.permutation(1000) % 10)
    assert (stratify(labels, 10, seed=1) == fold).all()
    assert (stratify(labels, 10, seed=2) != fold).any()


def test_a_users_own_file_is_split(tmp_path):
    path = tmp_path / "mine.arff"
    path.write_text(make_arff(50))
    with pytest.raises(ConfigError, match="label_count"):
        split_file(path)
    split_path = split_file(path, label_count=3, seed=5)
    assert split_path == tmp_path / "mine.split.json"
    split = json.loads(split_path.read_text())
    assert {name: len(rows) for name, rows in split.items()} == {"train": 30, "valid": 10, "test": 10}
    path.write_text(make_arff(50) + "50,0,?,?,?\n")
    with pytest.raises(DataError, match="rows without labels"):
        split_file(path, label_count=3)


def test_features_of_any_type_may_be_split(tmp_path):
    path = tmp_path / "mine.arff"
    path.write_text(make_arff(50))
    expected = json.loads(split_file(path, label_count=3).read_text())
    head, _, rows = make_arff(50).partition("@data\n")
    rows = "\n".join(f"2001-01-01,p{i},{row}" for i, row in enumerate(rows.splitlines()))
    path.write_text("@relation r\n@attribute day date\n@attribute id string\n" + head + "@data\n" + rows + "\n")
    assert json.loads(split_file(path, label_count=3).read_text()) == expected
    with pytest.raises(ConfigError, match="labels= and label_count="):
        split_file(path, label_count=3, labels=tmp_path / "x.xml")


def test_the_catalogue_has_every_data_set_of_docs_and_configs():
    globs = ("README.md", "docs/*.md", "docs/results/*.md", "plugins/*/README.md", "configs/*.jsonnet")
    pages = [page for pattern in globs for page in ROOT.glob(pattern)]
    names = {name for page in pages for name in re.findall(r"\bdata=([a-z_0-9]+)(?![\w./-])", page.read_text())}
    assert {"bibtex", "ewt", "horses"} < names
    assert names - {"files", "data"} <= CATALOGUE.keys()  # data={data}
    libraries = [*ROOT.glob("configs/**/*.libsonnet"), *pages]
    paths = {path for page in libraries for path in re.findall(r"\bdata:([\w./%-]*\w)", page.read_text())}
    assert len(paths) > 20
    for path in paths:
        parts = [path.replace("%s", part) for part in ("train", "dev", "test")] if "%s" in path else [path]
        files = [file for entry in CATALOGUE.values() for file in entry.paths]
        assert all(any(file.startswith(part) for file in files) for part in parts), path
