"""A `reader` below a network of words, and `one_reading`: the results of reading per predicate, in fewer readings."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.features.one_reading import OneReading
from spen_plugins.config.evaluation import evaluate
from spen_plugins.loop.order import Epochs, batches_of_pass
from spen_plugins.testing import check_feature_network
from tests.builtin.features.test_encoders import save_model
from tests.loaded import built, trained

BILSTM = {"type": "bilstm", "word_dim": 8, "affix_dim": 6, "char_dim": 3, "hidden": 5, "layers": 1}
READERS = ("bilstm", "transformer")


def build_small(**tables: object) -> tuple[sp.Task, sp.Model]:
    """The sample's task and a small model in float64, with an energy."""
    config = {
        "task": {"type": "srl", "corpus": "sample"},
        "inference_net": {"type": "independent"},
        "energy": {"type": "linear_chain"},
        "trainer": {"type": "cross_entropy"},
    }
    experiment = built(config | tables)
    return experiment.task, experiment.model.double().eval()


def make_model(reader: str, folder: Path, net: str = "independent", **tables: object) -> tuple[sp.Task, sp.Model]:
    """A model whose sentences are read once."""
    if reader == "transformer":
        save_model(folder)
    table = {"type": "transformer", "model": str(folder)} if reader == "transformer" else BILSTM
    features = {"type": "one_reading", "dim": 7, "hidden": 4, "reader": table}
    return build_small(**{"features": features, "inference_net": {"type": net}} | tables)


def pick_examples(task: sp.Task) -> list:
    """Examples of which many share a sentence, without being neighbours."""
    train = task.part("train")
    groups = task.groups(train)
    shared = [row for row in np.argsort(groups, kind="stable") if (groups == groups[row]).sum() > 1][:9]
    assert len({groups[row] for row in shared}) < 6
    return [train[row] for row in [*shared[::2], 0, *shared[1::2], 11]]


def drop_sentences(task: sp.Task, x: sp.X) -> sp.X:
    """The same inputs without tensors of sentences, so that each row is read."""
    return replace(x, inputs={name: value for name, value in x.inputs.items() if not name.startswith("sentence")})


@pytest.mark.parametrize("net", ["independent", "crf"])
@pytest.mark.parametrize("reader", READERS)
def test_scores_and_gradients_equal_those_of_reading_each_row(reader: str, net: str, tmp_path: Path) -> None:
    task, model = make_model(reader, tmp_path, net)
    task.indexers.update(task.sentence_indexers())
    examples = pick_examples(task)
    batch = task.collate(examples)
    assert len(batch.x.inputs["sentence.words"]) < len(examples)
    gold = batch.gold.double()

    def compute(x: sp.X) -> tuple[torch.Tensor, list[torch.Tensor]]:
        values = torch.stack([model.propose(x).log_prob(gold), model.energy.at(x)(gold)])
        weights = torch.arange(1.0, values.numel() + 1).view_as(values)
        parameters = [p for p in model.parameters() if p.requires_grad]
        gradients = torch.autograd.grad((values * weights).sum(), parameters, allow_unused=True)
        return values, [torch.zeros(()) if g is None else g for g in gradients]

    once, by_row = compute(batch.x), compute(drop_sentences(task, batch.x))
    torch.testing.assert_close(once, by_row, rtol=1e-9, atol=1e-9)
    assert any(g.abs().sum() > 0 for g in once[1])
    for row, example in enumerate(examples):
        single = task.collate([example])
        score = model.propose(single.x).log_prob(single.gold.double())
        torch.testing.assert_close(score, once[0][0, row : row + 1], rtol=1e-9, atol=1e-9)


def test_senses_can_be_chosen_from_one_reading(tmp_path: Path) -> None:
    tables = {"task": {"type": "propbank.senses", "corpus": "sample"}, "energy": None}
    config = {"features": {"type": "one_reading", "dim": 7, "layers": 0, "reader": BILSTM}}
    task, model = make_model("bilstm", tmp_path, "choice", **(tables | config))
    task.indexers.update(task.sentence_indexers())
    examples = pick_examples(task)
    batch = task.collate(examples)
    assert len(batch.x.inputs["sentence.words"]) < len(examples)
    once, by_row = (model.propose(x).log_prob(batch.gold.double()) for x in (batch.x, drop_sentences(task, batch.x)))
    torch.testing.assert_close(once, by_row, rtol=1e-9, atol=1e-9)


def test_each_sentence_is_read_once(tmp_path: Path) -> None:
    task, model = make_model("bilstm", tmp_path)
    sizes: list[int] = []
    model.inference_net.features.reader.register_forward_hook(lambda module, args, out: sizes.append(len(out)))
    examples = pick_examples(task)
    model.propose(task.collate(examples).x)
    assert sizes == [len({example.entry.words for example in examples})]
    inputs = task.collate(examples[:1]).x.inputs
    assert not [name for name in inputs if name.startswith("words.")], "tensors that no network reads"


@pytest.mark.parametrize("reader", READERS)
def test_contract(reader: str, tmp_path: Path) -> None:
    task, model = make_model(reader, tmp_path)
    idle = ["reader.encoder.pooler"] if reader == "transformer" else []
    check_feature_network(model.inference_net.features, task, allow_idle=idle)


def test_the_predicate_is_seen_through_the_head(tmp_path: Path) -> None:
    task, model = make_model("bilstm", tmp_path)
    example = max(task.part("train"), key=task.length)
    rows = [replace(example, predicate=index) for index in range(3)]
    h = model.inference_net.features(task.collate(rows).x)
    assert (h[0] - h[1]).abs().max() > 1e-4 and (h[1] - h[2]).abs().max() > 1e-4


def test_an_epoch_has_the_predicates_of_a_sentence_together() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, 300)
    groups = np.repeat(np.arange(300), sizes)
    lengths = np.repeat(rng.integers(3, 40, 300), sizes)
    batches = batches_of_pass(Epochs(lengths, 16, 1, 1, 0, groups=groups), 3)
    assert sorted(np.concatenate(batches)) == list(range(len(groups)))
    assert len(batches) == -(-len(groups) // 16) and sorted(map(len, batches))[1:] == [16] * (len(batches) - 1)
    readings = sum(len(set(groups[rows])) for rows in batches)
    assert readings <= 300 + len(batches), "a sentence is read again only where a batch is full"
    assert np.mean([np.ptp(lengths[rows]) for rows in batches]) < 5
    epochs = Epochs(lengths, 16, 1, 1, 0, groups=groups)
    repeated = batches_of_pass(epochs, 3)
    assert all((a == b).all() for a, b in zip(batches, repeated, strict=True))
    assert (np.concatenate(batches_of_pass(epochs, 4)) != np.concatenate(batches)).any()
    assert all((a == b).all() for a, b in zip(batches, epochs.order(3), strict=True))


def test_only_this_network_changes_order_and_batches(task: sp.Task) -> None:
    assert task.groups(task.part("train")) is None and "sentence" not in task.collate(task.part("train")[:2]).x.inputs


def test_missing_requirements_are_config_errors(task: sp.Task, tmp_path: Path) -> None:
    with pytest.raises(sp.ConfigError, match="found no reader; expected one"):
        OneReading(OneReading.Config(), task)
    with pytest.raises(sp.ConfigError, match="have 0"):
        make_model("bilstm", tmp_path, task={"type": "tagging", "corpus": "ner"})


def make_short_arguments(folder: Path) -> dict[str, str]:
    """Arguments of a short run on a few sentences of two predicates."""
    lines = ["Anna\t-\t(ARG0*)\t(ARG0*)", "sent\tsend\t(V*)\t*", "and\t-\t*\t*", "read\tread\t*\t(V*)", ".\t-\t*\t*"]
    path = folder / "few.conll"
    path.write_text(("\n".join(lines) + "\n\n") * 6)
    files = dict.fromkeys(("data", "validation", "test"), str(path))
    return files | {"reading": "sentence", "trainer.epochs": "1", "trainer.epoch_updates": "2"}


def test_a_moved_run_predicts_the_same_singly_and_in_batches(tmp_path: Path) -> None:
    model = tmp_path / "bert"
    model.mkdir()
    save_model(model)
    arguments = make_short_arguments(tmp_path) | {
        "encoder": str(model),
        "energy": "linear_chain",
        "energy_loss.samples": "2",
    }
    config = evaluate("srl_seal", arguments)
    assert config["trainer"]["net"]["groups"] == {"*": 20, "features.reader": 1}
    run = trained(config, tmp_path / "run")
    shutil.rmtree(model)
    predictor = sp.load(run.rename(tmp_path / "moved"))
    words = ["Anna", "sent", "and", "read", "it", "."]
    items = [{"words": words[:end], "predicate": p} for end in (6, 5) for p in (1, 3)]
    batched = predictor.predict(items, energy=True)
    for item, answer in zip(items, batched, strict=True):
        [single] = predictor.predict([item], energy=True)
        assert single["tags"] == answer["tags"] and single["energy"] == pytest.approx(answer["energy"], abs=1e-4)
    predictor.save(tmp_path / "net", energy=False)
    assert [a["tags"] for a in sp.load(tmp_path / "net").predict(items)] == [a["tags"] for a in batched]


def test_spacy_reads_each_sentence_once(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    run = trained("srl_seal", tmp_path / "run", **make_short_arguments(tmp_path), method="cross_entropy")
    nlp = spacy.blank("en")
    component = nlp.add_pipe("spen_srl", config={"model": str(run), "predicates": "verbs"})
    reader = component.run().predictor.model.inference_net.features.reader
    sizes: list[int] = []
    reader.register_forward_hook(lambda module, args, out: sizes.append(len(out)))
    words = ["Ann", "sent", "and", "read", "it", "."]
    pos = ["PROPN", "VERB", "CCONJ", "VERB", "PRON", "PUNCT"]
    texts = [[*words[:n], f"word{n}"] for n in (6, 5, 4, 4)]

    def make_doc(text: list[str]) -> spacy.tokens.Doc:
        return spacy.tokens.Doc(nlp.vocab, text, pos=[*pos[: len(text) - 1], "NOUN"])

    def list_spans(doc: spacy.tokens.Doc) -> list[tuple[int, int, str]]:
        return [(span.start, span.end, span.label_) for span in doc.spans["spen_srl"]]

    batched = list(nlp.pipe([make_doc(text) for text in texts]))
    assert sizes == [3], "four docs, of which two are alike, with two verbs each"
    for text, doc in zip(texts, batched, strict=True):
        single = nlp(make_doc(text))
        assert list_spans(single) == list_spans(doc)


# Networks of words


NETWORKS = [
    {"type": "bilstm", "word_dim": 0, "affix_dim": 0, "case_dim": 3, "char_dim": 2, "hidden": 5, "layers": 1},
    {"type": "encoder", "encoder": "pass_through", "word_dim": 0, "char_dim": 0, "case_dim": 3},
]


def build_tagger(network: dict, reader: dict | None) -> tuple[sp.Task, sp.Model]:
    features = network | ({} if reader is None else {"reader": reader})
    return build_small(task={"type": "tagging", "corpus": "pos"}, features=features, energy=None)


@pytest.fixture
def reader(tmp_path: Path) -> dict:
    return {"type": "transformer", "model": str(save_model(tmp_path))}


@pytest.mark.parametrize("network", NETWORKS)
def test_the_contracts_hold_with_a_reader(network: dict, reader: dict) -> None:
    task, model = build_tagger(network, reader)
    check_feature_network(model.inference_net.features, task)


def test_a_words_vector_ends_with_that_of_the_reader(reader: dict) -> None:
    task, model = build_tagger(NETWORKS[1], reader)
    features = model.inference_net.features
    x = task.collate(task.part("train")[:4]).x
    vectors = features(x)
    assert vectors.shape[-1] == features.output_dim == 3 + features.reader.output_dim
    torch.testing.assert_close(vectors[..., 3:], features.reader(x))
    assert features.contextual and not build_tagger(NETWORKS[1], None)[1].inference_net.features.contextual


def test_a_reader_alone_is_enough_input(reader: dict) -> None:
    network = {"type": "bilstm", "word_dim": 0, "affix_dim": 0, "hidden": 5}
    assert build_tagger(network, reader)[1].inference_net.features.word_width == 16
    with pytest.raises(sp.ConfigError, match="reader are null"):
        build_tagger(network, None)


def test_sentences_of_similar_numbers_of_pieces_are_in_one_batch(reader: dict) -> None:
    """A word of many pieces among short sentences would make all of them long."""
    task, _ = build_tagger({"type": "transformer"} | reader, None)
    words = ["the"] * 6
    few_pieces, many_pieces = (task.parse({"words": sentence}) for sentence in (words, [*words[1:], "cats"]))
    [indexer] = task.indexers.values()
    pieces = [indexer.index(example.entry.words).ids.size for example in (few_pieces, many_pieces)]
    assert [task.length(example) for example in (few_pieces, many_pieces)] == pieces
    assert pieces[0] < pieces[1]
    plain, _ = build_tagger(NETWORKS[0], None)
    assert plain.length(plain.parse({"words": words})) == 6


def test_roles_of_one_reading_are_as_long_as_their_sentences_pieces(reader: dict) -> None:
    task, _ = build_small(features={"type": "one_reading", "reader": reader}, energy=None)
    examples = task.part("train")[:20]
    x = task.collate(examples).x
    [name] = [name for name in x.inputs if name.endswith(".owner")]
    pieces = (x.inputs[name] > -2).sum(1)[x.inputs["sentence"]]
    assert np.array_equal([task.length(example) for example in examples], pieces)
