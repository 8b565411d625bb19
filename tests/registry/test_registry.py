"""The registry, with small packages installed as real entry points."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import spen_plugins as sp
from spen_plugins import hookspecs
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.registry import Registry
from spen_plugins.registry.kinds import KINDS

ACME = """
    import spen_plugins as sp

    class Quadratic(sp.Energy):
        class Config(sp.Config):
            strength: float = 1.0
            hidden: tuple[int, ...] = (8,)

        def forward(self, features, y):
            return self.config.strength * (y - 0.5).square().sum(-1)

    @sp.hookimpl
    def spen_energy():
        return {"quadratic": Quadratic}
"""


HOOK = "import spen_plugins as sp\n@sp.hookimpl\ndef spen_energy(): "


@pytest.fixture
def acme(site):
    site.install("acme", ACME)
    return site


def make_registry(site) -> Registry:
    return Registry([str(site.path)])


def find_plugin(registry: Registry, name: str):
    return next(p for p in registry.plugins() if p.name == name)


def test_a_plugin_is_imported_only_when_it_is_named(acme):
    registry = make_registry(acme)
    assert find_plugin(registry, "acme").status == "found"
    assert find_plugin(registry, "acme").version == "1.0"
    registry.parse("trainer", {"type": "cross_entropy"}, "trainer", "x.json")
    assert "spen_acme" not in sys.modules
    registry.resolve("energy", "acme.quadratic")
    assert "spen_acme" in sys.modules
    assert find_plugin(registry, "acme").status == "loaded"


def test_a_class_named_by_a_string_is_imported_late(site):
    site.module("late_classes", "import spen_plugins as sp\nclass E(sp.Energy): pass\n")
    site.install(
        "lazy",
        """
        from spen_plugins import hookimpl

        @hookimpl
        def spen_energy():
            return {"e": "late_classes:E", "other": "no_such_module:E", "gone": "late_classes:F"}
        """,
    )
    registry = make_registry(site)
    assert "lazy.e" in registry.names("energy")
    assert "late_classes" not in sys.modules
    assert registry.resolve("energy", "lazy.e").__name__ == "E"
    with pytest.raises(PluginError, match=r"plugin 'lazy' \(spen-lazy 1.0\): energy 'other' .*no_such_module"):
        registry.resolve("energy", "lazy.other")
    with pytest.raises(PluginError, match="'gone' could not be imported from 'late_classes:F'"):
        registry.resolve("energy", "lazy.gone")


def test_the_first_of_two_folders_wins_as_in_imports(acme, tmp_path):
    other = type(acme)(tmp_path / "other")
    other.install("acme", ACME, version="0.5")
    registry = Registry([str(acme.path), str(other.path)])
    assert (find_plugin(registry, "acme").status, find_plugin(registry, "acme").version) == ("found", "1.0")


# Broken plugins affect no others


@pytest.mark.parametrize("broken", ["METADATA", "entry_points.txt", None])
def test_a_distribution_without_readable_metadata_affects_no_other(acme, broken):
    acme.install("bad", "x = 1")
    info = acme.path / "spen_bad-1.0.dist-info"
    if broken is None:
        (info / "METADATA").unlink()
    else:
        (info / broken).write_bytes(b"Name: \xff\n[spen_plugins]\nbad = \xff\n")
    registry = make_registry(acme)
    assert [plugin.name for plugin in registry.plugins()] == ["core", "acme"]
    assert registry.resolve("energy", "acme.quadratic")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("import no_such_package", "No module named 'no_such_package'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "registers nothing"),
        ("\nraise RuntimeError('boom')", "spen_bad.py, line 2): RuntimeError: boom"),
        (
            HOOK.replace("energy", "enrgy") + "return {}",
            "unknown hook 'spen_enrgy'. Did you mean 'spen_energy'? Hooks: ",
        ),
        ("def spen_energy(): return {}", "spen_energy lacks its marker `@spen_plugins.hookimpl`"),
        (HOOK + "return {'x': 'm:C'}\ndef spen_task(): pass", "spen_task lacks its marker"),
        (HOOK.replace("()", "(pm)") + "return {}", "pm"),
        (HOOK + "return ['x']", "expected a table of names"),
        (HOOK + "return {'a.b': 'm:C'}", "expected a table of names"),
        (HOOK + "return {'a': 'm:C', 'b-c': 'm:D'}", "spen_energy returned 'b-c': 'm:D'; expected a table"),
        (HOOK + "return {'a': 3}", "each with a class or 'module:Class'"),
        (HOOK + "return {'a': 'nocolon'}", "'module:Class'"),
        (HOOK + "raise ValueError('sad')", "ValueError: sad"),
    ],
)
def test_a_broken_plugin_is_reported_and_affects_no_other(acme, source, message):
    acme.install("bad", source)
    registry = make_registry(acme)
    for _ in range(2):  # at the second call as at the first
        with pytest.raises(PluginError, match=re.escape(message)) as error:
            registry.resolve("energy", "bad.x")
        assert "spen-bad 1.0" in str(error.value)
    assert registry.names("energy")[-1] == "acme.quadratic"
    assert registry.resolve("energy", "acme.quadratic")
    plugins = {p.name: p for p in registry.check()}
    assert plugins["bad"].status == "broken"
    assert message in plugins["bad"].error
    assert plugins["acme"].status == "loaded"


CONSTRUCTOR = "classes.py, line 3): too many positional arguments; expected the arguments config, task, features"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("class E: pass", "expected a subclass of spen_plugins.Energy"),
        ("class E(sp.InferenceNet): pass", "expected a subclass of spen_plugins.Energy"),
        ("def E(): pass", "expected a subclass of spen_plugins.Energy"),
        ("class E(sp.Energy): __abstractmethods__ = {'m'}", "E does not implement m"),
        ("class E(sp.Energy):\n    def __init__(self, c, t): pass", CONSTRUCTOR),
        ("class E(sp.Energy):\n    class Config: pass", "E.Config must be a subclass of spen_plugins.Config"),
    ],
)
def test_a_class_of_the_wrong_kind_is_rejected(site, source, message):
    site.module("classes", f"import spen_plugins as sp\n{source}\n")
    site.install("odd", HOOK + "return {'e': 'classes:E'}")
    registry = make_registry(site)
    with pytest.raises(PluginError, match=re.escape(message)):
        registry.resolve("energy", "odd.e")
    assert next(p for p in registry.check() if p.name == "odd").status == "broken"


def test_a_module_that_cannot_be_imported_is_reported_once(site):
    site.module("classes", "x = 1\nraise RuntimeError('boom')\n")
    site.install("odd", HOOK + "return {'a': 'classes:A', 'b': 'classes:B', 'c': 'no_such_module:C'}")
    error = next(plugin.error for plugin in make_registry(site).check() if plugin.name == "odd")
    assert error.count("boom") == 1 and "classes.py, line 2): RuntimeError: boom" in error and "no_such_module" in error


# Names


def test_two_distributions_with_one_name_are_both_rejected(acme):
    acme.install("twin", ACME, distribution="spen-one", version="1.1")
    acme.install("twin", ACME, distribution="spen-two", version="2.2")
    registry = make_registry(acme)
    with pytest.raises(PluginError) as error:
        registry.resolve("energy", "twin.quadratic")
    assert "spen-one 1.1" in str(error.value)
    assert "spen-two 2.2" in str(error.value)
    assert not {"spen_one", "spen_two"} & set(sys.modules)
    assert find_plugin(registry, "twin").status == "refused"
    assert registry.resolve("energy", "acme.quadratic")
    assert registry.resolve("trainer", "cross_entropy")


def test_a_foreign_plugin_called_core_is_rejected_and_the_core_stays(acme):
    acme.install("core", ACME, distribution="usurper")
    registry = make_registry(acme)
    rejected = [p for p in registry.plugins() if p.status == "refused"]
    assert [p.distribution for p in rejected] == ["usurper 1.0"]
    assert "the plugin name 'core' is claimed by usurper 1.0" in rejected[0].error
    assert registry.resolve("trainer", "core.cross_entropy") is registry.resolve("trainer", "cross_entropy")
    assert "usurper" not in sys.modules


def test_an_invalid_plugin_name_is_rejected(acme):
    acme.install("a.b", ACME, distribution="dotted")
    plugin = find_plugin(make_registry(acme), "a.b")
    assert plugin.status == "refused"
    assert plugin.error.startswith("found the plugin name 'a.b' in dotted 1.0; expected letters, digits and '_'")


@pytest.mark.parametrize(
    ("kind", "name", "error", "message"),
    [
        ("energy", "acme.quadratc", ConfigError, "unknown energy 'acme.quadratc'. Did you mean 'acme.quadratic'?"),
        ("energy", "acme.quadratc", ConfigError, "linear_chain"),
        ("energy", "quadratic", ConfigError, "Did you mean 'acme.quadratic'"),
        ("energy", "acmee.quadratic", PluginError, "Install the package that provides 'acmee'"),
        ("energy", "acmee.quadratic", PluginError, "Did you mean 'acme'?"),
        ("energy_loss", "acme.quadratic", ConfigError, "'acme.quadratic' is of kind energy, not energy_loss"),
        ("enrgy", "local", ConfigError, "unknown kind 'enrgy'. Did you mean 'energy'?"),
    ],
)
def test_the_error_for_an_unknown_name_lists_similar_and_valid_names(acme, kind, name, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make_registry(acme).resolve(kind, name)


# Functions: commands and models

MODELS = """
    from spen_plugins import hookimpl

    def names():
        return "folder"

    @hookimpl
    def spen_model():
        return {"spen_ner": names}
"""


def test_functions_are_found_by_name_and_plugin(site):
    site.install("acme", MODELS)
    registry = make_registry(site)
    assert registry.providers("model") == {"spen_ner": ["acme"]}
    assert registry.names("model") == ["acme.spen_ner"]
    assert registry.resolve("model", "acme.spen_ner")() == "folder"
    site.install("other", MODELS)
    assert make_registry(site).providers("model") == {"spen_ner": ["acme", "other"]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("3", "expected a table of names (letters, digits and '_'), each with a function or 'module:function'"),
        ("'os:sep'", "model 'spen_ner' is '/'; expected a function"),
        ("'pathlib:Path'", "expected a function"),
    ],
)
def test_values_that_are_no_functions_are_rejected(site, value, message):
    site.install("acme", MODELS.replace('"spen_ner": names', f'"spen_ner": {value}'))
    with pytest.raises(PluginError, match=re.escape(message)):
        make_registry(site).resolve("model", "acme.spen_ner")


@pytest.mark.parametrize(("kind", "name"), [("command", "plot"), ("figure", "training")])
def test_a_core_name_stays_the_cores(site, kind, name):
    source = MODELS.replace("def spen_model", f"def spen_{kind}").replace("spen_ner", name)
    site.install("acme", source + "\n    @hookimpl\n    def spen_model(): return {'spen_ner': names}\n")
    registry = make_registry(site)
    assert registry.providers(kind)[name] == ["core"]
    error = f"plugin 'acme' (spen-acme 1.0): rejected {kind} '{name}', which spen already provides"
    assert find_plugin(registry, "acme").error == error
    assert registry.resolve("model", "acme.spen_ner")() == "folder"


# Typed configs


def parse(acme, **values):
    return make_registry(acme).parse("energy", {"type": "acme.quadratic", **values}, "energy", "my.jsonnet")[1]


def test_the_error_for_an_unknown_key_names_path_suggestion_keys_and_file(acme):
    with pytest.raises(ConfigError) as error:
        parse(acme, hiden=3)
    assert str(error.value) == (
        "my.jsonnet: unknown key 'energy.hiden'. Did you mean 'hidden'? "
        "Known keys of energy: strength: float = 1.0; hidden: list of int = [8]."
    )


def test_the_error_for_a_key_of_another_type_names_that_type(site):
    """`trainer.energy_weight` with a method that trains no energy."""
    spec = {"type": "cross_entropy", "net_epochs": 3, "lr": 1}
    with pytest.raises(ConfigError) as error:
        Registry([]).parse("trainer", spec, "trainer", "x.json")
    message = str(error.value)
    assert "'net_epochs' is a key of energy, but trainer.type is 'cross_entropy'" in message
    assert "'lr' is a key of" not in message
    assert message.endswith(
        """ If you set trainer.type, 'trainer={"type": "cross_entropy"}' replaces the whole table, """
        "without its other settings."
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"strength": "3"}, "'energy.strength': found \"3\"; expected float"),
        ({"strength": True}, "'energy.strength': found true; expected float"),
        ({"hidden": [1, "x"]}, "'energy.hidden.1': found \"x\""),
        ({"hidden": 3}, "'energy.hidden': found 3; expected list of int"),
    ],
)
def test_a_value_of_the_wrong_type(acme, values, message):
    with pytest.raises(ConfigError, match=rf"^my\.jsonnet: .*{re.escape(message)}"):
        parse(acme, **values)


def test_integers_are_floats_and_lists_are_tuples(acme):
    config = parse(acme, strength=2, hidden=[3, 4])
    assert (config.strength, config.hidden) == (2.0, (3, 4))
    assert isinstance(config.strength, float)


def test_a_components_own_features_are_left_to_the_caller(acme):
    assert parse(acme, features={"type": "mlp"}).strength == 1.0


def test_paths_go_through_unions_and_nested_tables():
    spec = {"type": "cross_entropy", "net": {"lrr": 1}, "epochs": 0, "patience": "x"}
    with pytest.raises(ConfigError) as error:
        Registry([]).parse("trainer", spec, "trainer", "x.json")
    message = str(error.value)
    assert "unknown key 'trainer.net.lrr'. Did you mean 'lr'? Known keys of trainer.net: type:" in message
    assert "'trainer.epochs': found 0; expected int, >= 1" in message
    assert "'trainer.patience': found \"x\"; expected int | null" in message


def test_a_required_key_that_is_missing(site):
    site.install(
        "req",
        """
        import spen_plugins as sp

        class E(sp.Energy):
            class Config(sp.Config):
                size: int

        @sp.hookimpl
        def spen_energy():
            return {"e": E}
        """,
    )
    with pytest.raises(ConfigError, match=r"x: 'energy\.size' is missing; expected size: int"):
        make_registry(site).parse("energy", {"type": "req.e"}, "energy", "x")


@pytest.mark.parametrize(
    ("message", "specs"),
    [
        (r"x: energy\.type: expected the name of a type", [{}, {"type": 3}, {"type": None}]),
        ("energy: expected a table with a 'type'", ["local", ["local"], None]),
    ],
)
def test_a_table_without_a_type(message, specs):
    for spec in specs:
        with pytest.raises(ConfigError, match=message):
            Registry([]).parse("energy", spec, "energy", "x")


# The house's own


def test_every_hook_is_a_kind_and_every_kind_a_hook():
    assert {kind.hook for kind in KINDS.values()} == {name for name in vars(hookspecs) if name.startswith("spen_")}


def test_registries_share_nothing(acme):
    one, two = make_registry(acme), Registry([])
    [core] = two.check()
    assert (core.name, core.status, core.error) == ("core", "loaded", None)
    assert "acme.quadratic" in one.names("energy")
    assert "acme.quadratic" not in two.names("energy")


def test_listing_plugins_does_not_import_torch(acme):
    code = "import sys; from spen_plugins.registry import Registry; Registry().plugins(); print('torch' in sys.modules)"
    root = Path(sp.__file__).parent.parent
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert result.stdout.strip() == "False"
