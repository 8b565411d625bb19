// Labels of raw texts with SEAL-dynamic (Lee et al. 2022) and its cross-entropy baseline, over bags of n-grams.
//
//     spen-run configs/text_seal.jsonnet                                  # embedded corpus, seconds on a CPU
//     spen-run configs/text_seal.jsonnet data=goemotions method=cross_entropy
//     spen-run configs/text_seal.jsonnet data=train.tsv validation=dev.tsv test=test.tsv labels=names.txt
//
// An argument left at null keeps what lib/text.libsonnet says for this data set and method.
local choose = import 'lib/choose.libsonnet';
local methods = import 'lib/methods.libsonnet';
local text = import 'lib/text.libsonnet';

function(
  data='sample',  // sample, goemotions, reuters, files, or a TSV training file of your own
  validation=null,  // the files that go with a training file
  test=null,
  labels=null,  // file of label names, where the TSV files have numbers
  threshold='validation',  // chosen on the validation part, or a number
  min_count=null,  // words seen less often in training are unknown
  words=null,  // longest n-gram, in words; words=1 buckets=0 is a plain bag of words
  characters=null,  // shortest and longest n-gram of characters: [3,5]
  buckets=null,  // rows that hashed n-grams share
  counts=null,  // presence, log or count
  norm=null,  // of a text's bag: l2, l1 or none
  method='nce',  // cross_entropy, nce, ranking, margin, margin_compound, regression, regression_s
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
  hidden=null,  // widths: of the n-grams' embeddings, and of the layers on their sum
  dropout=null,  // after each of them: one number, or a list
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
  local arguments = {
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
    global_hidden: global_hidden,
    net_lr: net_lr,
    energy_lr: energy_lr,
    weight_decay: weight_decay,
    batch_size: batch_size,
    epochs: epochs,
    patience: patience,
  };
  local bag = { words: words, characters: characters, buckets: buckets, counts: counts, norm: norm };
  local h = text.defaults(data, method) + choose.given(arguments);

  {
    seed: seed,
    precision: precision,
    task: text.task(data, validation, test, labels, threshold) + choose.given({ min_count: min_count }),
    features: { type: 'ngrams', hidden: h.hidden, dropout: text.dropout(h) } + text.bag(data) + choose.given(bag),
    inference_net: { type: 'independent', bias: true },
  } + methods.method(method, h { energy: { type: 'seal.labels', hidden: h.global_hidden } }, arguments, without=['crf'])
