// What a method of inference networks is made of, whatever the task: energy, energy loss and trainer.
//
// `h` holds the hyper-parameters: energy, tag_lm_weight, gamma, tag_lm_hidden, cost_net, truncate, cross_entropy_weight, net_steps, net_optimizer,
// net_lr, energy_lr, weight_decay, pretrain_epochs, epochs, batch_size, patience, net_clip, plateau, and what the user gave of the rest.
local choose = import 'choose.libsonnet';

local player(type, lr, h) = { type: type, lr: lr, weight_decay: h.weight_decay } + (if type == 'sgd' then { momentum: 0.9 } else {});

local shared(h) = { epochs: h.epochs, batch_size: h.batch_size, patience: h.patience };

local cross_entropy(h) = {
  trainer: {
    type: 'cross_entropy',
    optimizer: player(h.net_optimizer, h.net_lr, h),
    clip: h.net_clip,
    plateau: h.plateau,
  } + (if std.objectHas(h, 'net_steps') then { steps: h.net_steps } else {}) + shared(h),
};

// Energies by name, made of the terms of Eq. 7 to 9. `token` is a feature network that sees a token alone.
local chain = { type: 'linear_chain' };
local sum(terms, weights={}) = { type: 'sum', terms: { chain: chain } + terms } + (if weights == {} then {} else { weights: weights });
local tag_lm(h, directions) = { type: 'infnet.tag_lm', directions: directions, hidden: h.tag_lm_hidden };
local both = ['forward', 'backward'];
local energies = {
  chain(h, token): chain,
  ge_a(h, token): sum({ tags: tag_lm(h, ['forward']) }, { tags: h.tag_lm_weight }),
  ge_b(h, token): sum({ tags: tag_lm(h, both) }, { tags: h.tag_lm_weight }),
  ge_c(h, token): sum(
    { tags: tag_lm(h, both), words: { type: 'infnet.word_tag_lm', directions: both, hidden: h.tag_lm_hidden, features: token } },
    { tags: h.tag_lm_weight, words: h.gamma * h.tag_lm_weight }
  ),
  skip_chain(h, token): sum({ skips: { type: 'infnet.skip_chain' } }),
  high_order(h, token): sum({ windows: { type: 'infnet.high_order' } }),
};
local energy_of(h, token) = if std.isObject(h.energy) then h.energy else choose.from(energies, h.energy, 'energy')(h, token);

local cost_nets = { [name]: { type: 'infnet.' + name } for name in ['separated', 'shared', 'stacked', 'stacked_bilstm'] };
local cost_net_of(h) = if std.isObject(h.cost_net) then h.cost_net else choose.from(cost_nets, h.cost_net, 'cost_net');

local finetune(h) =
  local wanted = std.get(h, 'finetune_epochs', 0);
  if wanted == 0 && std.objectHas(h, 'finetune_on') then error 'finetune_on= does nothing without finetune_epochs='
  else if wanted == 0 then {}
  else { finetune: { epochs: wanted } + (if std.objectHas(h, 'finetune_on') then { on: h.finetune_on } else {}) };

local joint(loss) = function(h, token) {
  energy: energy_of(h, token),
  energy_loss: { type: 'infnet.' + loss, truncate_nets: h.truncate } + (
    if loss == 'compound' then { cost_net: cost_net_of(h) } + choose.some(h, ['perceptron_weight', 'cost_net_cross_entropy']) else {}
  ),
  trainer: {
    type: 'infnet.joint',
    cross_entropy_weight: h.cross_entropy_weight,
    net_optimizer: player(h.net_optimizer, h.net_lr, h),
    energy_optimizer: player('adam', h.energy_lr, h),
    // With one step each, one pass of the net serves both players where the energy begins.
    first: if std.get(h, 'net_steps', 1) == 1 then 'energy' else 'net',
    net_clip: h.net_clip,
    net_plateau: h.plateau,
  } + choose.some(h, ['net_steps', 'same_batch', 'pretrain_epochs']) + finetune(h) + shared(h),
};

local of_energy = ['energy', 'tag_lm_weight', 'gamma', 'energy_lr'];
local of_game = of_energy + ['truncate', 'cross_entropy_weight', 'net_steps', 'same_batch', 'pretrain_epochs', 'finetune_epochs', 'finetune_on'];
local arguments_of = {
  cross_entropy: ['net_steps'],
  crf: ['net_steps'],
  margin: of_game,
  perceptron: of_game,
  contrastive: of_game,
  slack: of_game,
  compound: of_game + ['cost_net', 'cost_net_cross_entropy', 'perceptron_weight'],
};

local methods = {
  cross_entropy(h, token): cross_entropy(h),
  crf(h, token): cross_entropy(h) { inference_net: { type: 'crf' } },
  margin: joint('margin'),
  perceptron: joint('perceptron'),
  contrastive: joint('contrastive'),
  slack: joint('slack'),
  compound: joint('compound'),
};

// Arguments of an energy that has no use for them.
local idle(h) =
  local language = { ge_a: ['tag_lm_weight'], ge_b: ['tag_lm_weight'], ge_c: ['tag_lm_weight', 'gamma'] };
  std.setDiff(['gamma', 'tag_lm_weight'], std.set(if std.isString(h.energy) then std.get(language, h.energy, []) else []));

{
  // The part of an experiment a method decides. `arguments` holds what the user gave: one that the method or the energy
  // has no use for is an error.
  method(name, h, arguments, token)::
    local make = choose.method(methods, arguments_of, name, arguments);
    local useless = std.setInter(idle(h), std.set(std.objectFields(choose.given(arguments))));
    if useless != [] then error 'energy %s does not take %s' % [std.manifestJsonEx(h.energy, '', ''), std.join(', ', useless)]
    else make(h, token),
}
