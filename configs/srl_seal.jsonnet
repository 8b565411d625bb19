// Semantic role labelling with SEAL-dynamic (Lee et al. 2022) and its baselines, cross entropy and a CRF.
//
//     spen-run configs/srl_seal.jsonnet                                   # embedded corpus, small encoder, CPU
//     spen-run configs/srl_seal.jsonnet data=ewt encoder=bert-base-cased  # the real thing
//     spen-run configs/srl_seal.jsonnet data=a.conll validation=b.conll test=c.conll
//     spen-run configs/srl_seal.jsonnet task.train=a.conll task.validation=b.conll task.test=c.conll
//
// An argument left at null keeps what lib/srl.libsonnet says for this encoder and method.
local choose = import 'lib/choose.libsonnet';
local methods = import 'lib/methods.libsonnet';
local srl = import 'lib/srl.libsonnet';

function(
  data='sample',  // sample, ewt, files, or a training file of your own
  validation=null,  // the files that go with a training file
  test=null,
  encoder='bilstm',  // bilstm, the name or folder of a Hugging Face model, or a table {type: …} of any other
  method='nce',  // cross_entropy, crf, nce, ranking, margin, margin_compound, regression, regression_s
  energy=null,  // self_attention, local, linear_chain, or a table {type: …} of any other
  schedule='light',  // light; released: the authors' for pretrained encoders, which is light with K = 400 for nce
  samples=null,  // K of nce, ranking and regression_s
  redraw=null,  // nce, ranking: new samples at each "step" of the energy, or once a "round"
  std=null,  // deviation of regression_s's noise
  energy_weight=null,  // λ1; 0 is the control without energy
  cross_entropy_weight=null,  // λ2
  energy_steps=null,  // updates of each player in a row, and how often they take turns on one batch
  net_steps=null,
  rounds=null,
  sampling_dropout=null,  // whether the net drops out while it makes outputs for the energy to learn from
  warmup_epochs=null,  // epochs before the others in which the net learns from cross entropy alone
  energy_dropout=null,  // whether the energy drops out while it teaches the net
  hidden=null,  // width of the encoder, in each direction
  dropout=null,  // of the encoder
  net_lr=null,
  energy_lr=null,
  weight_decay=null,
  batch_size=null,
  epochs=null,
  patience=null,
  precision='no',  // no, bf16 or fp16
  seed=0
)
  local task = srl.task(data, validation, test);
  local arguments = {
    energy: energy,
    samples: samples,
    redraw: redraw,
    std: std,
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
    net_lr: net_lr,
    energy_lr: energy_lr,
    weight_decay: weight_decay,
    batch_size: batch_size,
    epochs: epochs,
    patience: patience,
  };
  local h = { energy: 'self_attention' } + srl.defaults(data, encoder, method, schedule) + choose.given(arguments);

  {
    seed: seed,
    precision: precision,
    task: task,
    features: srl.features(encoder, data == 'sample') + choose.given({ hidden: hidden, dropout: dropout }),
    inference_net: { type: 'independent' },
  } + methods.method(method, h { energy: srl.energy(h.energy) }, arguments, without=methods.of_gbi)
