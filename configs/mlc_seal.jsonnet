// Multi-label classification with SEAL-dynamic (Lee et al. 2022) and its cross-entropy baseline.
//
//     spen-run configs/mlc_seal.jsonnet                                  # embedded corpus, seconds on a CPU
//     spen-run configs/mlc_seal.jsonnet data=bibtex method=nce seed=1
//     spen-run configs/mlc_seal.jsonnet data=mine.arff split=mine.json
//     spen-run configs/mlc_seal.jsonnet task.train=a.arff task.validation=b.arff task.test=c.arff
//
// An argument left at null keeps what lib/multilabel_table.libsonnet says for this data set and method.
local choose = import 'lib/choose.libsonnet';
local methods = import 'lib/methods.libsonnet';
local multilabel = import 'lib/multilabel.libsonnet';

function(
  data='sample',  // sample, bibtex, delicious, genbase, cal500, spo_fun, expr_fun, files, or an ARFF file of your own
  split=null,  // JSON file with the row numbers of train, validation and test
  threshold=0.5,  // a number, or "validation": chosen on the validation part
  method='nce',  // SEAL-dynamic: nce, ranking, margin, margin_compound, regression, regression_s; SEAL-static: static_nce, static_margin, static_regression; energies alone: spen, dvn, nce_alone; no energy: cross_entropy, ranking_direct
  schedule='light',  // light: at most 3 energy updates a net update; released: as the authors' code
  samples=null,  // K of nce, ranking, regression_s and their kin
  redraw=null,  // nce, ranking: new samples at each "step" of the energy, or once a "round"
  sample=null,  // regression_s: "continuous" samples, or "discrete" ones
  std=null,  // deviation of regression_s's noise
  energy_weight=null,  // λ1; 0 is the control without energy
  cross_entropy_weight=null,  // λ2
  energy_steps=null,  // updates of each player in a row, and how often they take turns on one batch
  net_steps=null,
  rounds=null,
  sampling_dropout=null,  // whether the net drops out while it makes outputs for the energy to learn from
  warmup_epochs=null,  // epochs before the others in which the net learns from cross entropy alone
  energy_dropout=null,  // whether the energy drops out while it teaches the net
  gbi_lr=null,  // gradient-based inference: step size, steps, and adam or gradient (plain steps)
  gbi_steps=null,
  gbi_optimizer=null,
  net_epochs=null,  // epochs at most in which the net that an energy alone or a static one builds on learns first
  energy_epochs=null,  // epochs at most in which a static energy learns
  hidden=null,  // layers of the feature network, [400, 400]
  dropout=null,  // after each layer but the last
  global_hidden=null,  // width of the energy's global part
  net_lr=null,
  energy_lr=null,
  weight_decay=null,
  batch_size=null,
  epochs=null,
  patience=null,
  precision='no',  // no, bf16 or fp16
  seed=0
)
  local task = multilabel.task(data, split, threshold);
  local arguments = {
    samples: samples,
    redraw: redraw,
    sample: sample,
    std: std,
    gbi_lr: gbi_lr,
    gbi_steps: gbi_steps,
    gbi_optimizer: gbi_optimizer,
    net_epochs: net_epochs,
    energy_epochs: energy_epochs,
    energy_weight: energy_weight,
    cross_entropy_weight: cross_entropy_weight,
    energy_steps: energy_steps,
    net_steps: net_steps,
    rounds: rounds,
    sampling_dropout: sampling_dropout,
    energy_dropout: energy_dropout,
    warmup_epochs: warmup_epochs,
    hidden: hidden,
    dropout: dropout,
    global_hidden: global_hidden,
    net_lr: net_lr,
    energy_lr: energy_lr,
    weight_decay: weight_decay,
    batch_size: batch_size,
    epochs: epochs,
    patience: patience,
  };
  local h = multilabel.defaults(data, method, schedule) + choose.given(arguments);

  {
    seed: seed,
    precision: precision,
    task: task,
    features: { type: 'mlp', hidden: h.hidden, dropout: h.dropout },
    inference_net: { type: 'independent' },
  } + methods.method(method, h { energy: { type: 'seal.labels', hidden: h.global_hidden } }, arguments, without=['crf'])
