"""The game's schedule, what it learns, fine-tuning, tag language models beforehand, and exact resume with two nets."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from pydantic import ValidationError

import spen_plugins as sp
from spen_infnet.cost_nets import Separated, Shared, Stacked
from spen_infnet.joint import FineTune, Joint, TagLmPretraining, name_tag_lm_parameters
from spen_infnet.objectives import Compound, Margin
from spen_infnet.tag_lm import TagLm
from spen_plugins.builtin.energies.basic import LinearChain, Sum
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.loop.recipe import assign
from spen_plugins.nn import entropy
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.spaces import LabelSet
from tests.e2e.toys import make, resumes_exactly
from tests.infnet.toys import loop_for, model_for, tagging_run
from tests.loaded import trained
from tests.seal.toys import toy

ADAM = {"type": "adam", "lr": 0.02, "weight_decay": 0.0}


def joint(**fields) -> Joint:
    """With Adam for those whose player isn't given."""
    common = {"epochs": 2, "batch_size": 4, "net": adam(), "energy": adam(), "gradient_norms_every": 1}
    return Joint(Joint.Config(**(common | fields)))


def adam(**fields) -> sp.Player:
    return sp.Player(**(ADAM | fields))


def compound(task, cost_net=Stacked):
    return Compound(Compound.Config(), task, cost_net=make(cost_net, task))


def energy_with_lm(task):
    terms = {"chain": make(LinearChain, task), "tags": make(TagLm, task, hidden=4, tag_dim=3)}
    return Sum(Sum.Config(), task, terms=terms)


def test_k_updates_of_the_nets_then_one_of_the_energy():
    task, _ = toy("tags")
    model = model_for(task, compound(task))
    [stage] = joint(net=adam(steps=5)).stages(model, task)
    assert [(p.name, p.trains[0], p.player.steps, p.every) for p in stage.phases] == [
        ("inference_net", "inference_net", 5, 1),
        ("energy", "energy.pairs", 1, 1),
    ]
    assert stage.phases[0].trains == ("inference_net", "energy_loss")
    assign(model, stage)
    [stage] = joint(first="energy").stages(model, task)
    assert [p.name for p in stage.phases] == ["energy", "inference_net"]


def test_the_k_updates_may_be_on_k_batches(tmp_path):
    task, _ = toy("tags")
    batches = -(-len(task.part("train")) // 4)
    for same, net, energy in ((True, 3 * batches * 2, batches * 2), (False, batches * 2, batches * 2 // 3)):
        model = model_for(task, compound(task))
        loop = loop_for(model, task, joint(net=adam(steps=3), same_batch=same), tmp_path / str(same))
        loop.run()
        assert loop.folder.history()[-1]["updates"] == {"inference_net": net, "energy": energy}


def test_the_cost_net_may_be_a_player_of_its_own():
    task, _ = toy("tags")
    model = model_for(task, compound(task))
    sgd = sp.Player(type="sgd", lr=0.05, momentum=0.9, steps=3, clip=1.0)
    with pytest.raises(ValidationError, match=r"requires cost_net\.steps=1; found 3"):
        joint(net=adam(steps=2), cost_net=sgd, same_batch=False)
    once = sgd.model_copy(update={"steps": 1})
    for same, cost_net, steps in ((True, sgd, [2, 3, 1]), (False, once, [1, 1, 1])):
        [stage] = joint(net=adam(steps=2), cost_net=cost_net, same_batch=same).stages(model, task)
        assert [(p.name, p.trains[0], p.player.type, p.player.clip) for p in stage.phases] == [
            ("inference_net", "inference_net", "adam", 10.0),
            ("cost_net", "energy_loss", "sgd", 1.0),
            ("energy", "energy.pairs", "adam", 10.0),
        ]
        assert [p.player.steps for p in stage.phases] == steps
        assign(model, stage)
    with pytest.raises(ConfigError, match="Margin has no cost-augmented net"):
        joint(cost_net=sgd).stages(model_for(task, make(Margin, task)), task)


def test_losses_measures_and_gradient_norms_are_logged(tmp_path):
    task, _ = toy("tags")
    model = model_for(task, compound(task))
    loop = loop_for(model, task, joint(), tmp_path / "run")
    loop.run()
    record = loop.folder.history()[0]
    assert set(record["measures"]) == {"energy.l1", "energy.l0"}
    assert record["measures"]["energy.l0"] >= 0
    terms = ["inference_net.cost_augmented", "inference_net.test_time", "inference_net.cross_entropy"]
    assert set(record["losses"]) == {*terms, "energy.margin", "energy.perceptron"}
    assert set(record["gradient_norms"]) == {*record["losses"], "inference_net", "energy"}
    # l0 is the margin the energy's phase minimises, on the same batches and weights.
    assert record["measures"]["energy.l0"] == pytest.approx(record["losses"]["energy.margin"], rel=1e-5)


@pytest.mark.parametrize("cost_net", [Stacked, Shared, Separated])
def test_parts_of_a_batch_make_the_same_updates(cost_net, tmp_path):
    task, _ = toy("tags")
    sgd = {"type": "sgd", "lr": 0.05, "weight_decay": 0.0}
    found = []
    for parts in (1, 2):
        torch.manual_seed(1)
        terms = {"chain": make(LinearChain, task), "tags": make(TagLm, task, hidden=4, tag_dim=3, dropout=0.0)}
        model = model_for(task, compound(task, cost_net), Sum(Sum.Config(), task, terms=terms)).double()
        players = {"net": sp.Player(**sgd, steps=2), "energy": sp.Player(**sgd)}
        fields = {**players, "entropy_weight": 0.1}
        loop = loop_for(model, task, joint(accumulate=parts, **fields), tmp_path / str(parts))
        loop.run()
        found.append(model.state_dict())
        assert loop.folder.history()[-1]["updates"] == {"inference_net": 12, "energy": 6}
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, msg=name)


def learnable(task, chained=True):
    """Each word has its own tag, and an A0 that follows an A0 goes on with it unless not `chained`: words alone don't
    say it all."""
    for part in ("train", "validation", "test"):
        for i, (words, marks, _) in enumerate(task.part(part)):
            tags = []
            for word in words:
                base = {"dogs": 1, "cats": 1, "chase": 3, "flee": 3}.get(word, 0)
                tags.append(2 if chained and base == 1 and tags and tags[-1] in (1, 2) else base)
            task.part(part)[i] = (words, marks, tags)


def run_epochs(loop, stage) -> None:
    """Run all epochs of a stage and keep the last one's weights."""
    for epoch in range(stage.epochs):
        loop.position.epoch, loop.position.batch, loop.position.sums = epoch, 0, {}
        loop.run_epoch(stage)


def mean_energy(model, task, part) -> float:
    batch = task.collate(task.part(part))
    model.eval()
    with torch.no_grad():
        return float(model.energy.at(batch.x)(model.propose(batch.x).mean).mean())


@pytest.mark.parametrize("on", ["train", "validation", "test"])
def test_fine_tuning_lowers_the_energy_on_held_out_inputs(on, tmp_path):
    task, _ = toy("tags")
    learnable(task)
    model = model_for(task, make(Margin, task))
    trainer = joint(epochs=6, finetune=FineTune(epochs=10, on=on, lr=0.02))
    loop = loop_for(model, task, trainer, tmp_path / on)
    game, tune = loop.stages
    loop.begin(game)
    run_epochs(loop, game)
    energy = {name: p.clone() for name, p in model.energy.named_parameters()}
    before = {part: mean_energy(model, task, part) for part in ("train", "validation", "test")}
    loop.position.stage = 1
    loop.begin(tune)
    run_epochs(loop, tune)
    after = {part: mean_energy(model, task, part) for part in before}
    assert all(torch.equal(p, energy[name]) for name, p in model.energy.named_parameters())
    assert all(after[part] < before[part] for part in before), (before, after)
    assert set(loop.folder.history()[-1]["losses"]) == {"inference_net.energy"}


@pytest.mark.parametrize(("on", "weight", "gold"), [("train", 0.0, False), ("train", 1.0, True), ("test", 0.0, False)])
def test_fine_tuning_sees_gold_only_for_cross_entropy(on, weight, gold):
    task, _ = toy("tags")
    model = model_for(task, make(Margin, task))
    stage = joint(finetune=FineTune(on=on, cross_entropy_weight=weight)).stages(model, task)[-1]
    assert stage.name == "finetune" and stage.gold is gold
    assert (stage.examples is None) if on == "train" else (stage.examples == task.part(on))


def test_the_loop_hides_gold_where_a_stage_says_so(tmp_path):
    task, _ = toy("tags")
    model = model_for(task, make(Margin, task))
    seen = []
    trainer = joint(epochs=1, finetune=FineTune(on="test", epochs=1))
    stages = trainer.stages(model, task)
    loop = loop_for(model, task, trainer, tmp_path / "run")
    for stage in stages:
        loop.begin(stage)
        seen.append(
            [
                (b.gold is None, bool(b.labelled.any()), len(loop.train))
                for b in loop._make_micro_batches(stage, range(2))
            ]
        )
    assert seen == [[(False, True, len(task.part("train")))], [(True, False, len(task.part("test")))]]


def test_transductive_training_is_declared():
    assert "inputs (not the outputs) of the test part" in joint(finetune=FineTune(on="test")).protocol()["transductive"]
    assert joint(finetune=FineTune(on="train")).protocol() == joint().protocol() == {}
    with pytest.raises(ValidationError, match="requires gold, which on='test' hides"):
        FineTune(on="test", cross_entropy_weight=1.0)


def test_tag_language_models_learn_first_and_are_frozen_then(tmp_path):
    task, _ = toy("tags")
    learnable(task)
    model = model_for(task, compound(task), energy_with_lm(task))
    trainer = joint(epochs=2, tag_lm=TagLmPretraining(epochs=8, lr=0.05))
    loop = loop_for(model, task, trainer, tmp_path / "run")
    names = name_tag_lm_parameters(model)
    assert names and all(name.startswith("energy.terms.tags.") for name in names)
    before = {name: p.clone() for name, p in model.named_parameters()}
    loop.run()
    now = dict(model.named_parameters())
    history = loop.folder.history()
    assert [r["stage"] for r in history] == ["tag_lm"] * 8 + ["joint"] * 2
    scores = [r["score"] for r in history if r["stage"] == "tag_lm"]
    assert max(scores) > scores[0] + 0.5  # mean ln p of a sentence's tags
    assert all(not torch.equal(now[name], before[name]) for name in names)
    learned = sp.Model(model.inference_net, model.energy, model.energy_loss)
    best = max(range(8), key=scores.__getitem__)
    assert history[best]["best"]
    # What the game held is what the language model's stage ended with: its likelihood is that of the best epoch.
    batch = task.collate(task.part("validation"))
    with torch.no_grad():
        lm = learned.eval().energy.terms["tags"]
        assert float(-lm.at(batch.x)(batch.gold).mean()) == pytest.approx(scores[best], rel=1e-5)


def test_a_tag_lm_stage_needs_a_tag_lm():
    task, _ = toy("tags")
    with pytest.raises(ConfigError, match="requires an energy with a tag language model"):
        joint(tag_lm=TagLmPretraining()).stages(model_for(task, compound(task)), task)


def test_a_language_is_learned_from_what_has_tags(tmp_path):
    task, _ = toy("tags")
    for i, (words, marks, _) in enumerate(task.part("train")[:-3]):
        task.part("train")[i] = (words, marks, None)
    model = model_for(task, compound(task), energy_with_lm(task))
    stage = joint(tag_lm=TagLmPretraining(), batch_size=2).stages(model, task)[0]
    assert stage.examples == task.part("train")[-3:]


@pytest.mark.parametrize("weight", [0.0, 1.0, 3.0])
def test_the_likelihood_of_a_language_model_knows_no_weight(weight):
    task, batch = toy("tags")
    learnable(task)
    model = model_for(task, compound(task), make(TagLm, task, hidden=4, tag_dim=3, weight=weight)).double().eval()
    batch = task.collate([*task.part("validation")[:2], (*task.part("validation")[2][:2], None)])
    batch = dataclasses.replace(batch, gold=batch.gold.double())
    terms = model.energy.terms(model.energy.encode(batch.x), batch.gold)["forward"][:2, 0].sum(-1)
    stage = joint(tag_lm=TagLmPretraining()).stages(model, task)[0]
    with torch.no_grad():
        likelihood = stage.select(model, [batch])
    assert likelihood == pytest.approx(terms.mean().item())
    here = sp.trainer.Context()
    here.model, here.batch = model, batch
    torch.testing.assert_close(stage.phases[0].loss(here)["nll_0"][:2], -terms)


@pytest.mark.parametrize(
    ("text", "reason"), [(None, "no such file"), ("the\nbooks\n", "no tags"), ("the DET\nbooks NOUN\n", None)]
)
def test_tagged_text_to_learn_a_language_from(text, reason, tmp_path):
    path = tmp_path / "text.txt"
    if text is not None:
        path.write_text(text)
    short = {"epochs": 1, "batch_size": 256, "tag_lm": {"text": str(path), "epochs": 1}}
    config = tagging_run(4, {"type": "infnet.tag_lm", "hidden": 4}, "infnet.compound", **short)
    if reason is not None:
        with pytest.raises(DataError, match=reason) as error:
            trained(config, tmp_path / "run")
        assert str(path) in str(error.value)
        return
    run = RunFolder(trained(config, tmp_path / "run"))
    first = run.history()[0]
    assert (first["stage"], first["updates"]) == ("tag_lm", {"tag_lm": 1})
    assert set(run.environment()["files_sha256"]) == {str(path)}


def test_entropy_against_its_definition():
    task, batch = toy("tags")
    logits = torch.randn(len(batch), 1, *batch.gold.shape[2:], dtype=torch.float64)
    proposal = task.space.independent(logits, batch.x.mask)
    expected = [
        -sum(float(p * torch.log(p)) for p in torch.softmax(logits[i, 0, :n], -1).flatten())
        for i, n in enumerate(batch.x.mask.sum(1).tolist())
    ]
    found = entropy(task.space, proposal.mean)[:, 0]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_padding_and_certainty_leave_the_gradient_of_entropy_finite():
    task, batch = toy("tags")
    logits = torch.randn(len(batch), 1, *batch.gold.shape[2:], dtype=torch.float64)
    logits[0, 0, 0, 1] += 1e4  # the other tags' probabilities are 0
    logits.requires_grad_()
    (gradient,) = torch.autograd.grad(entropy(task.space, task.space.relax(logits, batch.x.mask)).sum(), logits)
    assert not batch.x.mask.all() and not gradient[~batch.x.mask.unsqueeze(1)].any()
    assert torch.isfinite(gradient).all() and gradient.any()
    assert not gradient[0, 0, 0].any()
    labels = torch.tensor([[[0.3, 1e4, -1e4]]], dtype=torch.float64, requires_grad=True)
    space = LabelSet(["a", "b", "c"])
    value = entropy(space, space.relax(labels))[:, 0]
    p = torch.sigmoid(labels[0, 0, 0])
    torch.testing.assert_close(value[0], -p * torch.log(p) - (1 - p) * torch.log(1 - p))
    assert torch.isfinite(torch.autograd.grad(value, labels)[0]).all()


def test_the_pretrained_net_is_kept_unless_the_game_makes_a_better_one(tmp_path):
    task, _ = toy("tags")
    learnt = task.part("train")
    task.part = lambda name: learnt  # validates on what it learns by heart
    for kept in (True, False):
        model = model_for(task, compound(task))
        spoilt = {"entropy_weight": -1e4, "epochs": 3, "patience": 2}
        trainer = joint(net=adam(lr=0.1), pretrain_epochs=20, pretrain_patience=19, keep_pretrained=kept, **spoilt)
        before, game = trainer.stages(model, task)
        assert (before.patience, game.patience, game.goes_on) == (19, 2, kept)
        loop = loop_for(model, task, trainer, tmp_path / str(kept))
        loop.run()
        history = RunFolder(tmp_path / str(kept)).history()
        best = {stage: max(r["score"] for r in history if r["stage"] == stage) for stage in ("pretrain", "joint")}
        assert best["pretrain"] > best["joint"]
        assert loop.validate(game)[1] == best["pretrain" if kept else "joint"]


@pytest.mark.parametrize("cost_net", [Stacked, Separated])
def test_a_run_that_was_stopped_ends_where_it_would_have(cost_net, tmp_path):
    task, _ = toy("tags")
    sgd = sp.Player(type="sgd", lr=0.05, momentum=0.9)

    def loop_in(folder, **more):
        torch.manual_seed(1)
        model = model_for(task, compound(task, cost_net), energy_with_lm(task))
        trainer = joint(
            epochs=3,
            net=adam(steps=2),
            same_batch=False,
            cost_net=sgd,
            finetune=FineTune(epochs=2),
            energy_dropout=True,
        )
        return loop_for(model, task, trainer, folder, **more)

    resumes_exactly(loop_in, tmp_path, [*["joint"] * 3, *["finetune"] * 2], (2, 5, 11))


def test_the_compound_objective_learns(tmp_path):
    task, _ = toy("tags")
    learnable(task, chained=False)
    task.part("train").extend([*task.part("validation"), *task.part("test")])
    model = model_for(task, compound(task))
    players = {"net": adam(steps=2, lr=0.01), "energy": adam(lr=0.03)}
    trainer = joint(epochs=20, patience=None, cross_entropy_weight=0.0, gradient_norms_every=0, **players)
    loop = loop_for(model, task, trainer, tmp_path / "run")
    loop.run()
    scores = [r["score"] for r in loop.folder.history()]
    assert max(scores) > scores[0] + 0.2, scores
    assert isinstance(model.inference_net, Independent)


def test_what_stages_lack_is_said_before_a_folder_is_made(tmp_path):
    config = tagging_run(4, {"type": "linear_chain"}, "infnet.compound", tag_lm={"epochs": 1})
    with pytest.raises(ConfigError, match="requires an energy with a tag language model"):
        trained(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
