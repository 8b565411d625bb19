// Labels of texts: data sets, and the hyper-parameters they start from. All are our own: no paper has these rows.
local choose = import 'choose.libsonnet';
local methods = import 'methods.libsonnet';

local go(name) = 'data:text/goemotions/' + name;

// Starting points by method; λ1 beside a cross entropy that is a sum over labels.
local rows = {
  cross_entropy: { steps: [1, 1] },
  nce: { energy_weight: 1, steps: [3, 1] },
  ranking: { energy_weight: 1, steps: [3, 1] },
  margin: { energy_weight: 1, cross_entropy_weight: 4, steps: [1, 1] },
  margin_compound: { energy_weight: 1, cross_entropy_weight: 4, perceptron_weight: 0.002, steps: [1, 1] },
  regression: { energy_weight: 1, steps: [1, 1] },
  regression_s: { energy_weight: 1, std: 0.5, samples: 10, steps: [1, 1] },
};

// What a data set changes. A rate is the same for all methods: the net's embeddings learn from cross entropy first.
local small = { hidden: [64], dropout: 0.2, global_hidden: 32, net_lr: 1e-2, energy_lr: 5e-3, batch_size: 32, epochs: 30, patience: 8 };
local large = { hidden: [100], dropout: 0.5, global_hidden: 100, net_lr: 1e-2, energy_lr: 5e-3, batch_size: 64, epochs: 20, patience: 4 };
local sizes = {
  sample: small,
  goemotions: large,
  reuters: large { dropout: 0.3 },
  files: large { batch_size: 32 },
};
local known(data) = if choose.is_path(data) then 'files' else data;

{
  data:: {
    sample: { corpus: 'sample' },
    goemotions: { train: go('train.tsv'), validation: go('dev.tsv'), test: go('test.tsv'), labels: go('labels.txt'), min_count: 2 },
    reuters: { reuters: 'data:text/reuters21578', min_count: 3 },
    // Your own files, named by task.train=… task.validation=… task.test=…
    files: {},
  },

  // How texts become bags: short ones with pairs of words; a story has words enough.
  bag(data):: choose.data({
    sample: { words: 2, buckets: 2048 },
    goemotions: { words: 2, buckets: 16384 },
    reuters: { words: 2, buckets: 16384 },
    files: { words: 2, buckets: 16384 },
  }, known(data)),

  // The task of a data set's name, or of a training file of the user's own.
  task(data, validation, test, labels, threshold)::
    local rest = choose.given({ validation: validation, test: test, labels: labels });
    { type: 'text', threshold: threshold } + (
      if choose.is_path(data) then
        if validation == null then
          error 'data=%s is the training file; name the others too: data=%s validation=FILE test=FILE' % [data, data]
        else { train: data } + rest
      else if rest != {} then
        error 'validation=, test= and labels= go with a training file, data=FILE; data=%s names no file' % std.toString(data)
      else choose.data($.data, data)
    ),

  // One number of dropout is for every layer: with one layer there would be none.
  dropout(h):: if std.isNumber(h.dropout) then [h.dropout for _ in h.hidden] else h.dropout,

  // Hyper-parameters of a data set and method.
  defaults(data, method)::
    local row = choose.from(rows, method, 'method');
    {
      optimizer: 'adamw',
      weight_decay: 1e-5,
      cross_entropy_weight: 1,
      samples: 20,
      per_variable: false,
      net_clip: 10,
      plateau: { factor: 0.5, patience: 1 },
    }
    + choose.data(sizes, known(data))
    + row
    + methods.schedule('light', method, row.steps[0], row.steps[1]),
}
