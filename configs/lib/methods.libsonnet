// What a method is made of, whatever the task: the energy loss, the trainer, and the order in which players move.
//
// `h` holds the hyper-parameters: net_lr, energy_lr, weight_decay, energy_weight (λ1), cross_entropy_weight (λ2),
// samples, redraw, std, perceptron_weight, energy_steps, net_steps, rounds, warmup_epochs, sampling_dropout, epochs, batch_size,
// patience, net_clip, plateau.
local choose = import 'choose.libsonnet';

local optimizer(lr, h) = { type: h.optimizer, lr: lr, weight_decay: h.weight_decay };

local shared(h) = { epochs: h.epochs, batch_size: h.batch_size, patience: h.patience };

local cross_entropy(h) = {
  trainer: {
    type: 'cross_entropy',
    optimizer: optimizer(h.net_lr, h),
    per_variable: h.per_variable,
    steps: h.net_steps,
    rounds: h.rounds,
    clip: h.net_clip,
    plateau: h.plateau,
  } + shared(h),
};

local seal(energy_loss, first='energy') = function(h) {
  energy: h.energy,
  energy_loss: energy_loss(h),
  trainer: {
    type: 'seal.dynamic',
    energy_weight: h.energy_weight,
    cross_entropy_weight: h.cross_entropy_weight,
    per_variable: h.per_variable,
    energy_optimizer: optimizer(h.energy_lr, h),
    net_optimizer: optimizer(h.net_lr, h),
    energy_steps: h.energy_steps,
    net_steps: h.net_steps,
    rounds: h.rounds,
    first: first,
    net_clip: h.net_clip,
    net_plateau: h.plateau,
  } + choose.some(h, ['warmup_epochs', 'sampling_dropout', 'energy_dropout']) + shared(h),
};

// Arguments a config may have that not every method takes.
local of_seal = ['energy', 'global_hidden', 'energy_weight', 'cross_entropy_weight', 'energy_lr', 'energy_steps', 'warmup_epochs', 'sampling_dropout', 'energy_dropout'];
local of_losses = {
  nce: ['samples', 'redraw'],
  ranking: ['samples', 'redraw'],
  margin: [],
  margin_compound: [],
  regression: [],
  regression_s: ['samples', 'std'],
};
local takes(name) = if std.objectHas(of_losses, name) then of_seal + of_losses[name] else [];
local particular = std.set(of_seal + std.flattenArrays(std.objectValues(of_losses)));

local methods = {
  // The baselines.
  cross_entropy: cross_entropy,
  crf(h): cross_entropy(h) { inference_net: { type: 'crf' } },
  // SEAL-dynamic, by the loss that trains the energy.
  nce: seal(function(h) { type: 'seal.nce', samples: h.samples } + choose.some(h, ['redraw'])),
  ranking: seal(function(h) { type: 'seal.ranking', samples: h.samples } + choose.some(h, ['redraw'])),
  margin: seal(function(h) { type: 'seal.margin' }, 'net'),
  margin_compound: seal(function(h) { type: 'seal.margin_compound', perceptron_weight: h.perceptron_weight }, 'net'),
  regression: seal(function(h) { type: 'seal.regression' }),
  regression_s: seal(function(h) { type: 'seal.regression_s', samples: h.samples, std: h.std }),
};

{
  names:: std.objectFields(methods),

  // The part of an experiment a method decides. `without` names methods the task has no use for, `arguments` holds what
  // the user gave: one that the method has no use for is an error.
  method(name, h, arguments, without=[])::
    local known = { [key]: methods[key] for key in std.objectFields(methods) if !std.member(without, key) };
    local make = choose.from(known, name, 'method');
    local given = std.objectFields(choose.given(arguments));
    local useless = [key for key in given if std.member(particular, key) && !std.member(takes(name), key)];
    local of_use = [key for key in std.objectFields(arguments) if !std.member(particular, key) || std.member(takes(name), key)];
    if useless != [] then
      error 'method %s does not take %s; it takes %s' % [name, std.join(', ', useless), std.join(', ', of_use)]
    else make(h),

  // Steps of each player as released: `s` energy updates and `t` net updates a batch, the inner player first. SEAL's
  // code reads "12:5" as 5 rounds of 12 energy updates and 1 net update; margin losses turn the players round.
  released(name, s, t)::
    if std.member(['margin', 'margin_compound'], name) then { rounds: s, energy_steps: 1, net_steps: t }
    else { rounds: t, energy_steps: s, net_steps: 1 },

  // The same, cut to at most three steps of the inner player and one of the other.
  light(name, s, t)::
    local full = $.released(name, s, t);
    { rounds: 1, energy_steps: std.min(3, full.energy_steps), net_steps: std.min(3, full.net_steps) },

  schedule(kind, name, s, t):: choose.from({ light: $.light, released: $.released }, kind, 'schedule')(name, s, t),
}
