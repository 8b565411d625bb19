"""Features of words: vectors and clusters from files, and the inputs that both word networks share."""

from __future__ import annotations

import dataclasses
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import spen_plugins as sp
from spen_plugins.builtin.features.bilstm import BiLstm, Encoder
from spen_plugins.builtin.features.word_tables import AFFIXES, SPELLING, WordIndexer
from spen_plugins.data.words import WordVectors, read_clusters, read_vectors
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.runs.train import runner
from spen_plugins.testing import ToyTags, check_feature_network
from tests.builtin.features.test_encoders import build_network, check_second
from tests.loaded import parsed, trained, written

pytestmark = pytest.mark.usefixtures("whole_samples")

GLOVE = "the 0.5 1 -2\nDogs 1 1 1\ndogs 2 2 2\n0000 3 0 0\n. . 4 0 0\nthe 9 9 9\n"
PATHS = "00\tthe\t9\n0100\tdogs\t5\n0111\tchase\t4\n10\t<@MENTION>\t3\n110\t<URL-bit.ly>\t2\n111\t<URL->\t1\n"


@pytest.fixture
def files(tmp_path):
    """`vectors` and `clusters` of a config."""
    vectors, clusters = written(tmp_path / "glove.txt", GLOVE), written(tmp_path / "paths", PATHS)
    return {"vectors": {"file": vectors}, "clusters": {"file": clusters, "prefixes": [1, 2, 3], "dim": 2}}


def get_row(vectors, *arguments) -> list[float]:
    return vectors.matrix[vectors.row(*arguments)].tolist()


@pytest.mark.parametrize("text", [GLOVE, "6 3\n" + GLOVE, GLOVE.replace("\n", " \n")])
def test_vectors_are_read_and_stored(tmp_path, text):
    vectors = read_vectors(written(tmp_path / "v.txt", text))
    (tmp_path / "v.safetensors").write_bytes(vectors.to_bytes())
    for table in (vectors, read_vectors(tmp_path / "v.safetensors")):
        assert table.words == ["the", "Dogs", "dogs", "0000", ". ."]
        assert get_row(table, "the") == [0.5, 1, -2]  # the first of two entries
        assert get_row(table, ". .") == [4, 0, 0] and get_row(table, "cats") == [0, 0, 0]


@pytest.mark.parametrize(("number", "bytes_each"), [(-0.0625, 1), (127 / 16, 1), (8.0, 4), (0.1, 4)])
def test_vectors_are_stored_in_8_bits_if_these_suffice(tmp_path, number, bytes_each):
    vectors = WordVectors(["a"], torch.tensor([[0.0, 0.0], [number, 1.0]]))
    path = tmp_path / "v.safetensors"
    path.write_bytes(vectors.to_bytes())
    assert load_file(path)["vectors"].element_size() == bytes_each
    assert torch.equal(read_vectors(path).matrix, vectors.matrix)


@pytest.mark.parametrize(
    ("word", "fold", "digits", "first"),
    [
        ("Dogs", "none", "keep", 1),
        ("Dogs", "lower", "keep", 2),
        ("Dogs", "fallback", "keep", 1),
        ("DOGS", "fallback", "keep", 2),
        ("DOGS", "none", "keep", 0),
        ("1987", "fallback", "keep", 0),
        ("1987", "fallback", "zero", 3),
    ],
)
def test_vectors_are_looked_up(tmp_path, word, fold, digits, first):
    assert get_row(read_vectors(written(tmp_path / "v.txt", GLOVE)), word, fold, digits)[0] == first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 1\n", r"v\.txt:2: found 2 cells, 'b 1'; expected a word and 2 numbers, as in line 1; was the file"),
        ("a 1 2\nb 1 2 3 x\nc 1 2\n", r"v\.txt:2: found 5 cells"),
        ("a 1 2\nb 1 two\nc 1 2\n", r"v\.txt:2: found 3 cells, 'b 1 two'"),
        ("a 1 2\nb 1 nan\n", r"v\.txt:2: found nan for 'b'; expected finite numbers"),
        ("3 2\na 1 2\nb 1 2\n", r"v\.txt:1: found 3 words; expected 2"),
        ("a\nb\n", r"v\.txt:1: found 'a'; expected a word and its numbers"),
        ("a 1 2\n\nb 1 2\n", r"v\.txt:2: found 0 cells"),
    ],
)
def test_bad_vectors_are_data_errors(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_vectors(written(tmp_path / "v.txt", text))


def test_a_broken_asset_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_vectors(tmp_path / "v.safetensors")
    data = read_vectors(written(tmp_path / "v.txt", GLOVE)).to_bytes()
    for broken in (b"", data[:-5], b"x" * 40):
        (tmp_path / "v.safetensors").write_bytes(broken)
        with pytest.raises(DataError, match="found an unreadable file; expected word vectors of a run folder"):
            read_vectors(tmp_path / "v.safetensors")


def test_clusters_are_looked_up_as_their_file_names_words(tmp_path):
    clusters = read_clusters(written(tmp_path / "paths", PATHS))
    copy = tmp_path / "again"
    copy.write_bytes(clusters.to_bytes())
    assert read_clusters(copy).paths == clusters.paths
    words = {
        "the": "00",
        "Dogs": "0100",
        "@somebody": "10",
        "http://bit.ly/aB3": "110",
        "https://www.bit.ly": "110",
        "www.example.org/x": "111",
        "example.org/x": "111",
        "http:/": "111",
        "cats": None,
        "@": None,
        "and/or": None,
        "example.org": None,
    }
    assert {word: clusters.path(word) for word in words} == words
    assert clusters.prefixes(2) == ["00", "01", "10", "11"]
    assert clusters.prefixes(3) == ["00", "010", "011", "10", "110", "111"]


@pytest.mark.parametrize("line", ["0102\tx\t1", "01\tx", "01\t\t1", "\tx\t1", "01\tx\tmany", "01 x 1", ""])
def test_bad_clusters_are_data_errors(tmp_path, line):
    with pytest.raises(DataError, match=r"paths:2: found .*; expected a path of 0 and 1, a word and its count"):
        read_clusters(written(tmp_path / "paths", f"01\ta\t1\n{line}\n10\tb\t1\n"))


class Tagged(ToyTags):
    """Toy tags with a further column."""

    def set_up(self) -> None:
        super().set_up()
        self.inputs = sp.WordInputs(self.WORDS, {"predicate": 2}, {"pos": 5})

    def collate(self, examples, rows=None):
        batch = super().collate(examples, rows)
        column = (batch.x.inputs["words"] % 4 + 1) * batch.x.mask
        return dataclasses.replace(batch, x=dataclasses.replace(batch.x, inputs=batch.x.inputs | {"pos": column}))


ALL = {"word_dim": 3, "mark_dim": 2, "affix_dim": 2, "char_dim": 2, "char_filters": 2, "column_dim": 2, "case_dim": 2}
NONE = dict.fromkeys([*ALL, "column_dim"], 0) | {"char_filters": 1}


def collate_sentences(task, sentences, network):
    task.indexers.clear()
    task.indexers.update([network.indexer()])
    return task.collate([(words, [0] * len(words), None) for words in sentences]).x


@pytest.mark.parametrize("tune", [False, True])
@pytest.mark.parametrize("network", [BiLstm, Encoder])
def test_all_features_fulfil_the_contracts(network, tune, files):
    task = Tagged()
    net = build_network(task, network, hidden=2, **ALL, **files | {"vectors": files["vectors"] | {"tune": tune}})
    assert net.word_width == 3 + 2 + 2 + 2 + 2 + 2 + 3 + 3 * 2
    check_feature_network(net, task)


@pytest.mark.parametrize("network", [BiLstm, Encoder])
def test_all_features_can_be_differentiated_twice(network, files):
    task = Tagged()
    net = build_network(task, network, hidden=2, **ALL, **files).double().eval()
    x = task.collate(task.part("train")[:3]).x
    # PyTorch's sum of affixes can't be differentiated twice in its own weights.
    weights = [p for n, p in net.named_parameters() if n != "affixes.weight"]
    check_second(lambda: net(x).pow(2).sum(), weights)


def test_each_part_is_in_its_place(files):
    """Single words, through a network that passes on its input."""
    task = Tagged()
    options = {"encoder": "pass_through", **NONE, "case_dim": 2, **files}
    network = build_network(task, Encoder, **options).eval()
    x = collate_sentences(task, [["the", "Dogs", "9lives", "@you", "…"]], network)
    network.columns = torch.nn.ModuleList()
    with torch.no_grad():
        (out,) = network(x)
    assert out.shape == (5, 2 + 3 + 6)
    assert torch.equal(out[:, :2], network.case.weight[[1, 2, 3, 0, 0]])
    mean = [2.1, 0.8, 0.2]  # of the five vectors, until the shared one is trained
    expected = torch.tensor([[0.5, 1, -2], [1, 1, 1], mean, mean, mean])
    assert torch.allclose(out[:, 2:5], expected)
    # One bit: 0 1; two: 00 01 10 11; three: 00 010 011 10 110 111; each table's row 0 is that of unknown words.
    rows = torch.tensor([[1, 1, 1], [1, 2, 2], [0, 0, 0], [2, 3, 4], [0, 0, 0]]) + torch.tensor([0, 3, 8])
    assert len(network.clusters.embedding.weight) == 3 + 5 + 7
    assert torch.equal(out[:, 5:], network.clusters.embedding.weight[rows].flatten(1))


def test_fixed_vectors_are_shared_and_not_weights(files):
    task = Tagged()
    first, second = (build_network(task, BiLstm, **files) for _ in range(2))
    assert first.vectors.table is second.vectors.table and not first.vectors.table.requires_grad
    assert "vectors.table" not in first.state_dict() and "vectors.unknown" in dict(first.named_parameters())
    net = build_network(task, BiLstm, vectors=files["vectors"] | {"tune": True})
    with torch.no_grad():
        net.vectors.table += 1
    assert "vectors.table" in dict(net.named_parameters()) and get_row(first._contents["vectors"], "dogs") == [2, 2, 2]


def test_equal_networks_share_an_indexer_and_others_do_not(tmp_path, files):
    task = Tagged()
    other_vectors = {"file": written(tmp_path / "other.txt", GLOVE)}
    configs = [
        {},
        {"char_dim": 2},
        files,
        {"vectors": files["vectors"] | {"fold": "lower"}},
        {"vectors": other_vectors},
        {"clusters": files["clusters"] | {"prefixes": [2]}},
    ]
    indexers = [build_network(task, BiLstm, **config).indexer() for config in configs]
    names = [name for name, _ in indexers]
    assert len(set(names)) == len(names) and names[0] == "words.affixes"
    assert names == [build_network(task, BiLstm, hidden=3, **config).indexer()[0] for config in configs]
    assert build_network(task, BiLstm, affix_dim=0).indexer() is None
    inputs = {part.name for _, indexer in indexers for part in indexer.parts}
    # Three ways of looking up vectors, two of clusters: none of them may take another's place in a batch.
    assert len(inputs) == 2 + 3 + 2


@pytest.mark.parametrize("network", [BiLstm, Encoder])
def test_a_batch_does_not_depend_on_words_seen_before(network, files):
    """Otherwise a resumed run, which has seen fewer words, would sum gradients in another order."""
    task = Tagged()
    sentences = [["the", "the", "9lives"], ["Dogs", "the"], ["new"]]

    def collate_after(previous):
        _, indexer = build_network(task, network, hidden=2, **ALL, **files).indexer()
        for words in previous:
            indexer.collate([indexer.index(words)])
        return indexer.collate([indexer.index(words) for words in sentences])

    fresh, used = collate_after([]), collate_after([["new", "Dogs"], ["else", "9lives", "a" * 50], ["the"]])
    assert fresh.keys() == used.keys() and all(torch.equal(fresh[name], used[name]) for name in fresh)
    assert torch.equal(fresh["words.characters.index"], torch.tensor([[1, 1, 2], [3, 1, 0], [4, 0, 0]]))
    assert fresh["words.characters"][1].tolist()[:5] == [1, *(3 + ord(c) for c in "the"), 2]


def test_threads_share_an_indexer():
    words = [f"w{i}" for i in range(3000)]
    shared, separate = (WordIndexer([AFFIXES, SPELLING]) for _ in range(2))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: [shared.collate([words[j : j + 5]]) for j in range(i, 3000, 40)], range(0, 40, 5)))
    finally:
        sys.setswitchinterval(interval)
    tensors, expected = shared.collate([words]), separate.collate([words])
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)


@pytest.mark.parametrize("network", [BiLstm, Encoder])
def test_training_replaces_some_of_all_inputs_by_unknown(network, files):
    """This trains the rows for unknown words, columns, vectors and clusters."""
    task = Tagged()
    net = build_network(task, network, hidden=2, word_dropout=0.9, **ALL, **files).train()
    examples = [(["the", "dogs"], [0, 1], None)] * 40
    net(task.collate(examples).x).sum().backward()
    assert net.words.weight.grad[1].any() and net.columns[0].weight.grad[1].any()
    assert net.vectors.unknown.grad.any() and net.clusters.embedding.weight.grad[0].any()


def test_a_network_without_inputs_is_a_config_error():
    with pytest.raises(ConfigError, match=r"features 'bilstm' has no input: word_dim, .*; set one of them"):
        build_network(Tagged(), BiLstm, **NONE)
    with pytest.raises(ConfigError, match=r"features\.clusters\.prefixes': found \[2, 2\]"):
        parsed("features", "bilstm", clusters={"file": "x", "prefixes": [2, 2]})
    with pytest.raises(DataError, match="no such file"):
        build_network(Tagged(), BiLstm, vectors={"file": "nowhere.txt"})


@pytest.mark.parametrize("name", ["pass_through", "lstm"])
def test_an_encoder_reports_whether_it_sees_other_tokens(name):
    task = Tagged()
    network = build_network(task, Encoder, encoder=name, **ALL).eval()
    single, pair = collate_sentences(task, [["dogs"]], network), collate_sentences(task, [["dogs", "flee"]], network)
    for x in (single, pair):
        x.inputs["pos"] = torch.ones_like(x.inputs["words"])
    is_same = torch.allclose(network(single)[0, 0], network(pair)[0, 0], atol=1e-6)
    assert network.contextual is not is_same


# Results of both networks for a seed before they shared these inputs: the sum of the weights' sizes as initialised,
# of the output's in training, and the next random number after it. Last bits differ from processor to processor.
STREAMS = [
    (BiLstm, {}, 104434.15868, 403.13597, 0.68701315),
    (BiLstm, {"affix_dim": 0, "mark_state": False, "layers": 1}, 28467.646160, 533.57402, 0.78038430),
    (Encoder, {}, 69403.625518, 731.70691, 0.87679601),
    (Encoder, {"char_dim": 0, "encoder": "gru"}, 41221.764084, 1023.5246, 0.58167166),
    (Encoder, {"encoder": "pass_through"}, 14655.205595, 1631.2882, 0.16998672),
]


@pytest.mark.parametrize(("network", "config", "weights", "output", "following"), STREAMS)
def test_a_seed_has_the_same_results_as_before(task, network, config, weights, output, following):
    torch.manual_seed(7)
    net = network(network.Config(**config), task)
    size = sum(p.detach().double().abs().sum().item() for p in net.parameters())
    assert size == pytest.approx(weights, rel=1e-6)
    if indexer := net.indexer():
        task.indexers.update([indexer])
    x = task.collate(task.part("train")[:5]).x
    torch.manual_seed(8)
    assert net.train()(x).double().abs().sum().item() == pytest.approx(output, rel=1e-5)
    assert torch.rand(()).item() == pytest.approx(following, abs=1e-7)


SEEN = ["the dogs chase the cats", "dogs flee", "the cats flee", "cats chase dogs"]


@pytest.mark.parametrize("tune", [False, True])
def test_a_run_needs_none_of_its_files(tmp_path, files, tune):
    """Two networks of one run, with vectors and clusters of words that are not in training."""
    corpus = "\n\n".join("\n".join(f"{word} {len(word) % 3}" for word in line.split()) for line in SEEN) + "\n"
    path = written(tmp_path / "train.conll", corpus)
    features = {"type": "encoder", "encoder": "pass_through", **NONE, **files}
    features["vectors"] = files["vectors"] | {"tune": tune}
    config = {
        "task": {"type": "tagging", "train": path, "validation": path, "scheme": "none"},
        "inference_net": {"type": "independent", "features": features},
        "energy": {"type": "linear_chain", "features": features | {"case_dim": 2}},
        "energy_loss": {"type": "ssvm"},
        "trainer": {"type": "seal.dynamic", "epochs": 1, "batch_size": 2},
    }
    run = trained(config, tmp_path / "run")
    predictor = sp.load(run)
    logits = compute_logits(predictor)
    for options in files.values():
        Path(options["file"]).unlink()
    moved_run = run.rename(tmp_path / "elsewhere")
    predictor = sp.load(moved_run)
    assert torch.equal(compute_logits(predictor), logits)
    assert predictor.predict([{"words": ["Dogs", "chase", "@you"]}])[0]["words"] == ["Dogs", "chase", "@you"]
    names = sorted(path.name for path in (moved_run / "assets").iterdir())
    assert len(names) == 2 and names[0].startswith("clusters-paths-") and names[1].startswith("vectors-glove-txt-")


def test_a_run_identifies_its_files_by_checksum(tmp_path, files):
    """Vectors and clusters are compared when a run is resumed; they are not among the data of its scores."""
    path = written(tmp_path / "train.conll", "the 1\ndogs 2\n")
    config = {
        "task": {"type": "tagging", "train": path, "validation": path},
        "features": {"type": "bilstm", "hidden": 2, "layers": 1, **files},
        "inference_net": {"type": "independent"},
        "trainer": {"type": "cross_entropy", "epochs": 1},
    }
    run = trained(config, tmp_path / "run")
    environment = json.loads((run / "environment.json").read_text())
    paths = [options["file"] for options in files.values()]
    assert environment["data_sha256"] == {path: sp.sha256(path)}
    assert environment["files_sha256"] == {name: sp.sha256(name) for name in paths}
    (run / "metrics.json").unlink()
    changed = written(tmp_path / "glove.txt", GLOVE.replace("1", "7"))
    with pytest.raises(ConfigError, match=f"can't be resumed: files it reads changed since it began: {changed}$"):
        runner.resume(run, runner.RunOptions(quiet=True))
    written(tmp_path / "glove.txt", GLOVE)
    assert (runner.resume(run, runner.RunOptions(quiet=True)) / "metrics.json").exists()


def compute_logits(predictor) -> torch.Tensor:
    """Logits of words that are in the files but not in the training part, all different."""
    task = predictor.task
    words = ["Dogs", "@you", "http://bit.ly/x", "0000", "nowhere"]
    with torch.no_grad():
        (logits,) = predictor.model.inference_net(task.collate([task.parse({"words": words})]).x).logits[:, 0]
    assert len(logits.unique(dim=0)) == len(words)
    return logits
