// Multi-label classification: data sets, methods, and schedules.
local choose = import 'choose.libsonnet';
local own = import 'own.libsonnet';
local patches = import 'patches.libsonnet';
local alen = import 'methods/alen.libsonnet';
local baselines = import 'methods/baselines.libsonnet';
local decoders = import 'methods/decoders.libsonnet';
local e2e = import 'methods/e2e.libsonnet';
local exact = import 'methods/exact.libsonnet';
local gspen = import 'methods/gspen.libsonnet';
local implicit = import 'methods/implicit.libsonnet';
local label_sets = import 'methods/label_sets.libsonnet';
local linear = import 'methods/linear.libsonnet';
local seal = import 'methods/seal.libsonnet';
local teachers = import 'methods/teachers.libsonnet';

local methods = { cross_entropy: baselines.cross_entropy } + linear + alen + gspen + exact + decoders + seal + label_sets + e2e + implicit + teachers;

local folder = 'data:multilabel/';
local with_split(name) = { file: folder + '%s/%s.arff' % [name, name], split: folder + 'splits/%s.json' % name };
// Hierarchies of 499 classes; with their root, which every gene has, the 500 labels of the papers.
local genes(name, train) = {
  root: true,
  train: folder + '%s/%s.%s.arff' % [name, name, train],
  validation: folder + '%s/%s.valid.arff' % [name, name],
  test: folder + '%s/%s.test.arff' % [name, name],
};
local data_sets = {
  sample: { task: { corpus: 'sample' }, tuned: import 'tuned/sample.libsonnet' },
  bibtex: { task: with_split('bibtex'), tuned: import 'tuned/bibtex.libsonnet' },
  delicious: { task: with_split('delicious'), tuned: import 'tuned/delicious.libsonnet' },
  // The first attribute is the number of the row.
  genbase: { task: with_split('genbase') { drop: ['protein'] }, tuned: import 'tuned/genbase.libsonnet' },
  cal500: { task: with_split('cal500'), tuned: import 'tuned/cal500.libsonnet' },
  spo_fun: { task: genes('spo_FUN', 'train'), tuned: import 'tuned/spo_fun.libsonnet' },
  // The original training file is lost; this one was joined from its component sets.
  expr_fun: { task: genes('expr_FUN', 'train.RECONSTRUCTED'), tuned: import 'tuned/expr_fun.libsonnet' },
  // Your own files, named by task.train=… task.validation=… task.test=…
  files: { task: {}, tuned: (import 'tuned/files.libsonnet') + own { every+: { trainer+: { patience: 8 } } } },
};

local start(epochs) = {
  every: { trainer+: { epochs: epochs, net+: { plateau: { factor: 0.5, patience: 5 } } } },
  with_energy: { energy: { type: 'seal.labels' } },
  // Local terms that are pretrained forget fast what they know.
  unrolled: {
    inference_net+: { entropy: 0.1 },
    trainer+: { clamped_epochs: 20, energy+: { groups: { features: 0.1, ['local']: 0.1, net: 0.1 } } },
  },
};
// One round of at most three updates of each player on a batch.
local few_updates = {
  trainer+: { rounds: 1, energy+: { steps: std.min(3, super.steps) }, net+: { steps: std.min(3, super.steps) } },
};
// What adds up to each schedule: a data set's numbers are those of `released`; its `light` holds what else changes with fewer updates.
local schedules = {
  released(tuned): [start(300), tuned],
  light(tuned): [start(100), tuned, { [name]: few_updates for name in std.objectFields(seal) }, std.get(tuned, 'light', {})],
};

{
  // Logistic regression ranks labels better than it decides at 0.5, so that its threshold is chosen unless one is given.
  task(data, validation, test, split, columns, threshold, decode, method, class_weight)::
    if columns.text != null then
      error 'text=%s: the config labels reads columns of features; for a column of texts use: spen-run texts data=%s text=%s' % [columns.text, std.toString(data), columns.text]
    else {
      task: { type: 'multilabel' }
            + choose.decoding(data, threshold, decode, if method == 'linear' then 'validation' else 0.5)
            + choose.files(data_sets, data, validation, test, columns, if choose.is_path(data) then split)
            + (if choose.is_path(data) then {} else choose.given({ split: split }))
            + choose.given({ class_weight: class_weight }),
    },

  method(data, name, schedule)::
    patches.method(methods, name, choose.from(schedules, schedule, 'schedule')(choose.data(data_sets, data).tuned)),
}
