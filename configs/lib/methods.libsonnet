// What a method is made of, whatever the task: the energy loss, the trainer, and the order in which players move.
//
// `h` holds the hyper-parameters: net_lr, energy_lr, weight_decay, energy_weight (λ1), cross_entropy_weight (λ2),
// samples, redraw, sample, std, perceptron_weight, energy_steps, net_steps, rounds, warmup_epochs, sampling_dropout, epochs,
// batch_size, patience, net_clip, plateau; and where gradient-based inference takes part gbi_lr, gbi_steps, gbi_optimizer, net_epochs, energy_epochs.
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

// How energies alone are trained and looked into: SPEN by loss-augmented inference from the net's output, DVN by inference
// from zeros, NCE by the samples of a net that learned first. All three are released so.
local descent(h) = { steps: h.gbi_steps, lr: h.gbi_lr, optimizer: std.get(h, 'gbi_optimizer', 'adam') };
local alone = {
  spen: { loss(h):: { type: 'ssvm', cost: 'score', starts: ['net'], descent: descent(h) }, gbi: { starts: ['net'] }, net: true },
  dvn: { loss(h):: { type: 'dvn', descent: descent(h), adversary: descent(h) { steps: 1, pick: 'last' } }, gbi: { starts: ['zeros'] }, net: false },
  nce: { loss(h):: { type: 'seal.nce', samples: h.samples }, gbi: { starts: ['random'], random: 3 }, net: true },
};

local energy_alone(kind) = function(h) {
  energy: h.energy,
  energy_loss: kind.loss(h),
  inference_net: { type: 'gbi' } + descent(h) + kind.gbi + (if kind.net then { net: { type: 'independent' } } else {}),
  trainer: {
    type: 'energy',
    optimizer: optimizer(h.energy_lr, h),
    plateau: std.get(h, 'energy_plateau'),
    steps: h.energy_steps,
    net_epochs: if kind.net then h.net_epochs else 0,
    net_optimizer: optimizer(h.net_lr, h),
    net_plateau: h.plateau,
    net_clip: h.net_clip,
  } + shared(h),
};

local static(kind, select='gbi') = function(h) {
  energy: h.energy,
  energy_loss: kind.loss(h),
  trainer: {
    type: 'seal.static',
    energy_weight: h.energy_weight,
    cross_entropy_weight: h.cross_entropy_weight,
    per_variable: h.per_variable,
    net_epochs: if kind.net then h.net_epochs else 0,
    energy_epochs: h.energy_epochs,
    energy_optimizer: optimizer(h.energy_lr, h),
    energy_steps: h.energy_steps,
    energy_clip: 10,
    net_optimizer: optimizer(h.net_lr, h),
    net_steps: h.net_steps,
    net_clip: h.net_clip,
    net_plateau: h.plateau,
    select: select,
    gbi: descent(h) + kind.gbi,
  } + choose.some(h, ['energy_dropout']) + shared(h),
};

local direct(h) = {
  trainer: {
    type: 'seal.direct',
    samples: h.samples,
    ranking_weight: h.energy_weight,
    cross_entropy_weight: h.cross_entropy_weight,
    optimizer: optimizer(h.net_lr, h),
    clip: h.net_clip,
    plateau: h.plateau,
  } + shared(h),
};

// Arguments a config may have that not every method takes, and which do.
local of_energy = ['energy', 'global_hidden', 'energy_lr', 'energy_steps'];
local of_net = ['energy_weight', 'cross_entropy_weight'];
local of_turns = ['net_steps', 'rounds'];
local of_dynamic = of_energy + of_net + of_turns + ['warmup_epochs', 'sampling_dropout', 'energy_dropout'];
local of_gbi = of_energy + ['gbi_lr', 'gbi_steps', 'gbi_optimizer'];
local of_static = of_gbi + of_net + ['net_steps', 'energy_epochs', 'energy_dropout'];
local arguments_of = {
  cross_entropy: of_turns,
  crf: of_turns,
  nce: of_dynamic + ['samples', 'redraw'],
  ranking: of_dynamic + ['samples', 'redraw'],
  margin: of_dynamic,
  margin_compound: of_dynamic,
  regression: of_dynamic,
  regression_s: of_dynamic + ['samples', 'sample', 'std'],
  static_margin: of_static + ['net_epochs'],
  static_regression: of_static,
  static_nce: of_static + ['net_epochs', 'samples'],
  spen: of_gbi + ['net_epochs'],
  dvn: of_gbi,
  nce_alone: of_gbi + ['net_epochs', 'samples'],
  ranking_direct: of_net + ['samples'],
};

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
  regression_s: seal(function(h) { type: 'seal.regression_s', samples: h.samples, std: h.std } + choose.some(h, ['sample'])),
  // SEAL-static.
  static_margin: static(alone.spen),
  static_regression: static(alone.dvn),
  static_nce: static(alone.nce, 'loss'),
  // Energies alone, predicted by gradient-based inference.
  spen: energy_alone(alone.spen),
  dvn: energy_alone(alone.dvn),
  nce_alone: energy_alone(alone.nce),
  // The ranking loss on the net itself, without an energy.
  ranking_direct: direct,
};

{
  names:: std.objectFields(methods),

  // Those in which gradient-based inference takes part, and the direct ranking loss: released for label sets alone.
  of_gbi:: ['static_margin', 'static_regression', 'static_nce', 'spen', 'dvn', 'nce_alone', 'ranking_direct'],

  // The part of an experiment a method decides. `without` names methods the task has no use for, `arguments` holds what
  // the user gave: one that the method has no use for is an error.
  method(name, h, arguments, without=[])::
    local known = { [key]: methods[key] for key in std.objectFields(methods) if !std.member(without, key) };
    choose.method(known, arguments_of, name, arguments)(h),

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
