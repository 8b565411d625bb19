// Labels of texts: data sets, and what they start from. All numbers are our own: no paper has these rows.
local choose = import 'choose.libsonnet';
local own = import 'own.libsonnet';
local patches = import 'patches.libsonnet';
local rules = import 'methods/rules.libsonnet';
local alen = import 'methods/alen.libsonnet';
local baselines = import 'methods/baselines.libsonnet';
local decoders = import 'methods/decoders.libsonnet';
local e2e = import 'methods/e2e.libsonnet';
local exact = import 'methods/exact.libsonnet';
local gspen = import 'methods/gspen.libsonnet';
local implicit = import 'methods/implicit.libsonnet';
local linear = import 'methods/linear.libsonnet';
local seal = import 'methods/seal.libsonnet';
local teachers = import 'methods/teachers.libsonnet';

local methods = { cross_entropy: baselines.cross_entropy } + linear + alen + gspen + exact + decoders + decoders.of_texts + seal + e2e + implicit + teachers + rules.of_file(baselines.cross_entropy);

// λ1 is 1, beside a cross entropy that is a sum over labels.
local start = {
  // Short texts: n-grams of two words. Dropout is given for each layer: with one number a single layer would have none.
  every: {
    features+: { type: 'ngrams', words: 2, buckets: 16384, hidden: [100], dropout: [0.5] },
    // The net's rate is the same for all methods: its embeddings learn from cross entropy first.
    trainer+: { batch_size: 64, epochs: 20, patience: 4, net+: { lr: 1e-2, plateau: { factor: 0.5, patience: 1 } } },
  },
  with_energy: { energy: { type: 'seal.labels', hidden: 100 }, trainer+: { energy+: { lr: 5e-3 } } },
  nce: { trainer+: { energy+: { steps: 3 } } },
  ranking: { trainer+: { energy+: { steps: 3 } } },
  margin: { trainer+: { cross_entropy_weight: 4 } },
  margin_compound: self.margin { energy_loss+: { perceptron_weight: 0.002 } },
  unrolled: { init_epochs:: 5 },
  regression_s: { energy_loss+: { samples: 10, std: 0.5 } },
};

// A pretrained encoder reads texts as they are, and is fine-tuned gently.
local pretrained = {
  every: { trainer+: { batch_size: 16, epochs: 10, patience: 3, net+: { lr: 5e-5, clip: 1, plateau: null } } },
  with_energy: { trainer+: { energy+: { lr: 5e-5, clip: 1 } } },
};

// A BiLSTM reads the first words of a text one after the other. The reader of a table {type: …} is that table.
local bilstm = { type: 'bilstm', word_dim: 128, affix_dim: 0, hidden: 128, layers: 1, dropout: 0.3, word_dropout: 0.1 };
local recurrent = { every: { trainer+: { batch_size: 32, net+: { lr: 2e-3 } } } };
local reads_sentences(encoder) = std.member(['bilstm', 'encoder', 'transformer'], std.get(encoder, 'type'));
// What is new beside a pretrained encoder learns faster than it does.
local beside = { every: { trainer+: { net+: { lr: 1e-3, groups: { 'features.reader.encoder': 0.05, 'features.reader.reader': 0.05 } } } } };
local as_they_are = { task+: { words: 'blanks', lowercase: false, digits: false, punctuation: true } };

local folder = 'data:text/goemotions/';
local arxiv = 'data:text/arxiv/';
local data_sets = {
  sample: {
    task: { corpus: 'sample' },
    tuned: {
      every: {
        features+: { buckets: 2048, hidden: [64], dropout: [0.2] },
        trainer+: { batch_size: 32, epochs: 30, patience: 8 },
      },
      with_energy: { energy+: { hidden: 32 } },
    },
  },
  goemotions: {
    task: { train: folder + 'train.tsv', validation: folder + 'dev.tsv', test: folder + 'test.tsv', labels: folder + 'labels.txt', min_count: 2 },
    tuned: {},
  },
  // Most of the abstracts have up to 200 words.
  arxiv: {
    task: { train: arxiv + 'train.jsonl.gz', validation: arxiv + 'dev.jsonl.gz', test: arxiv + 'test.jsonl.gz', min_count: 3 },
    tuned: {},
  },
  reuters: { task: { reuters: 'data:text/reuters21578', min_count: 3 }, tuned: { every: { features+: { dropout: [0.3] } } } },
  // Your own files, named by task.train=… task.validation=… task.test=…
  files: { task: {}, tuned: own { every+: { trainer+: { batch_size: 32 } } } },
};

{
  task(data, validation, test, split, columns, threshold, decode, class_weight):: {
    task: { type: 'text' }
          + choose.decoding(data, threshold, decode, 'validation')
          + choose.files(data_sets, data, validation, test, columns, split)
          + choose.given({ class_weight: class_weight }),
  },

  // `ngrams`, `bilstm`, `minilm`, `mpnet`, the name or folder of a Hugging Face model, or a table {type: …} of any feature network; null: `ngrams`, or
  // `bilstm` for a method that reads words.
  method(data, name, given=null)::
    local reads = std.get(std.get(methods, name, {}), 'reads');
    local encoder = if given != null then given else if reads == null then 'ngrams' else 'bilstm';
    local is_pretrained = encoder != 'ngrams' && choose.is_pretrained(encoder);
    local network = if std.isObject(encoder) then encoder else if encoder == 'bilstm' then bilstm else if encoder == 'ngrams' then { type: encoder } else { type: 'transformer', model: encoder };
    local is_reader = reads_sentences(network);
    local in_words = is_reader && (reads != null || network.type != 'transformer');
    local marked = if network.type == 'bilstm' then { mark_state: false } else {};
    local features =
      if !in_words then (if network.type == 'transformer' then { pooling: 'mean' } else {}) + network
      else {
        type: if reads == 'labels' then 'decoders.labels_as_words' else 'decoders.words',
        longest: 128,
        reader: network + marked,
      } + (if reads == null then { pooling: 'max' } else {});
    local tables = [start, choose.data(data_sets, data).tuned]
                   + (if is_pretrained then [pretrained] + (if in_words then [beside] else []) else if in_words then [recurrent] else []);
    if encoder != 'ngrams' && name == 'linear' then
      error 'method=linear uses tf-idf of words and no encoder; omit encoder=%s' % std.toString(encoder)
    else if reads == 'labels' && !is_reader then
      error 'method=%s requires an encoder that reads words, which encoder=%s does not; use bilstm or a pretrained one' % [name, std.toString(encoder)]
    else
      patches.method(methods, name, tables)
      + (if encoder == 'ngrams' then {} else { features: features })
      + (if is_pretrained then as_they_are else {})
      // An energy has no use for the words' vectors.
      + (if in_words && reads == 'words' && std.get(methods[name], 'has_energy', true) then { energy+: { features: features { pooling: 'max' } } } else {}),
}
