// A config is a sum of patches: each is a table that changes or adds some keys of the experiment (`trainer+: { epochs: 9 }`).
// A hidden field (`descent:: …`) is a number or a table that a config says once and several of its tables use.
local choose = import 'choose.libsonnet';
// What people type for a method: a paper's name, a plugin's or an abbreviation.
local guesses = {
  bce: 'cross_entropy',
  ce: 'cross_entropy',
  e2e: 'unrolled',
  implicit: 'implicit_cd',
  infnet: 'compound',
  joint: 'compound',
  rules: 'rules_energy',
  seal: 'nce',
  seal_dynamic: 'nce',
  seal_static: 'static_nce',
};

{
  // A method's patch and what is tuned for it.
  //
  // `methods` holds patches by name; one without an energy says `has_energy:: false`, and `takes_energy:: true` if a fixed one may be
  // chosen; one that is complete `tuned:: false`; one that takes what is tuned for another one, too, `as:: [other]`. Each of `tables`
  // holds patches, too:
  // `every` for all methods, `with_energy` for those that have one, and under a method's name what it alone has. Later ones win.
  // `energy`: the user's choice among `energies`, or a table {type: …} of any other; null for that of the tables.
  method(methods, name, tables, energies={}, energy=null)::
    local meant = std.get(guesses, std.toString(name), '');
    local method = choose.from(methods, name, 'method', if std.objectHas(methods, meant) then ". Did you mean '%s'?" % meant else '');
    local has_energy = std.get(method, 'has_energy', true);
    local keys = ['every'] + (if has_energy then ['with_energy'] else []) + std.get(method, 'as', []) + [name];
    local tuned = if std.get(method, 'tuned', true) then [std.get(table, key, {}) for table in tables for key in keys] else [];
    local chosen =
      if energy == null then {}
      else if !std.get(method, 'takes_energy', has_energy) then error 'method=%s has no energy; omit energy=' % name
      else if std.isObject(energy) then { encoders:: [], energy: energy }
      else choose.from(energies, energy, 'energy');
    std.foldl(function(sum, patch) sum + patch, tuned, method) + chosen,
}
