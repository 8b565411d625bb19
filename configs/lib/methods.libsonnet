// What a method is made of, whatever the task: the energy loss, the trainer, and the order in which players move.
//
// `h` holds the hyper-parameters: net_lr, energy_lr, weight_decay, energy_weight (λ1), cross_entropy_weight (λ2),
// samples, std, perceptron_weight, energy_steps, net_steps, rounds, epochs, batch_size, patience, net_clip, plateau.
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
  } + shared(h),
};

local methods = {
  // The baselines.
  cross_entropy: cross_entropy,
  crf(h): cross_entropy(h) { inference_net: { type: 'crf' } },
  // SEAL-dynamic, by the loss that trains the energy.
  nce: seal(function(h) { type: 'seal.nce', samples: h.samples }),
  ranking: seal(function(h) { type: 'seal.ranking', samples: h.samples }),
  margin: seal(function(h) { type: 'seal.margin' }, 'net'),
  margin_compound: seal(function(h) { type: 'seal.margin_compound', perceptron_weight: h.perceptron_weight }, 'net'),
  regression: seal(function(h) { type: 'seal.regression' }),
  regression_s: seal(function(h) { type: 'seal.regression_s', samples: h.samples, std: h.std }),
};

{
  names:: std.objectFields(methods),

  // The part of an experiment a method decides. `without` names methods the task has no use for.
  method(name, h, without=[])::
    choose.from({ [key]: methods[key] for key in std.objectFields(methods) if !std.member(without, key) }, name, 'method')(h),

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
