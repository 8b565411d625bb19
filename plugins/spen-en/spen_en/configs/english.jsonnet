// The five nets of the pipeline spen_en, for `make english`.
//
//     spen-run english part=pos
//
// Words are seen by vectors from a larger net, as tools/english/word_vectors.py makes them, and by hashes, affixes, shapes and letters.
local choose = import 'lib/choose.libsonnet';

local words = {
  word_dim: 0,
  hash_dim: 64,
  hash_rows: 3000,
  affix_dim: 32,
  case_dim: 8,
  char_dim: 16,
  char_filters: 32,
  char_widths: [3],
};
local training = {
  type: 'cross_entropy',
  net: { type: 'adam', lr: 2e-3, schedule: { type: 'linear', warmup: 0.03 } },
  batch_size: 32,
  patience: null,
};
// Names of no other words than those of a table: the nets' own, so that none is read from the training part.
local no_vocabulary = { min_count: 1000000 };
local ud(part) = 'data:pos/ewt/en_ewt-ud-%s.conllu' % part;
local propbank(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;

// All parts learn from gold and from what larger nets find in more text, as tools/english/distil.py writes it.
local parts(names, taught) = {
  local vectors = { file: names + '/vectors.safetensors', fold: 'lower' },
  local bilstm = { type: 'bilstm', layers: 1, word_dropout: 0.1, vectors: vectors } + words,
  local roles = { train: taught, validation: propbank('dev'), test: propbank('test') } + no_vocabulary,
  pos: {
    task: { type: 'tagging', train: names + '/pos.taught.conllu', validation: ud('dev'), test: ud('test'), tags: 'upos+xpos' } + no_vocabulary,
    features: bilstm { hidden: 100, dropout: 0.3, char_filters: 64 },
    inference_net: { type: 'independent' },
    trainer: training { epochs: 12 },
  },
  predicates: {
    task: { type: 'tagging', format: 'predicates', scheme: 'bio' } + roles,
    features: bilstm { hidden: 100, dropout: 0.3 },
    inference_net: { type: 'independent' },
    trainer: training { epochs: 12 },
  },
  srl: {
    task: { type: 'srl', decode: 'expected_f1', unique_roles: true } + roles,
    features: bilstm { hidden: 160, layers: 2, dropout: 0.3 },
    inference_net: { type: 'crf' },
    trainer: training { epochs: 8 },
  },
  // A sentence is read once for all its predicates, whose own state chooses. Small, so that the package stays below 15 MB.
  senses: {
    task: { type: 'propbank.senses' } + roles,
    features: {
      type: 'one_reading',
      reader: bilstm { hash_dim: 32, affix_dim: 16, hidden: 104, dropout: 0.4 },
      dim: 128,
      layers: 0,
      dropout: 0.3,
    },
    inference_net: { type: 'choice', dim: 40 },
    trainer: training { batch_size: 64, epochs: 8, net+: { lr: 3e-3, clip: 5 } },
  },
  // Gold is the names of four corpora, as tools/english/english_data.py joins them.
  ner: {
    task: {
      type: 'tagging',
      scheme: 'bio',
      encoding: 'bioes',
      train: names + '/ner.taught.conll',
      validation: names + '/ner.dev.conll',
      test: names + '/ner.test.conll',
    } + no_vocabulary,
    features: bilstm { hidden: 128, dropout: 0.5, char_widths: [2, 3, 4] },
    inference_net: { type: 'independent' },
    trainer: training {
      epochs: 5,
      net+: { weight_decay: 1e-4 },
    },
  },
};

function(
  part='pos',  // pos, predicates, srl, senses or ner
  names='runs/english/data',  // output folder of tools/english/english_data.py, distil.py and word_vectors.py
  taught='runs/english_md/taught.jsonl',  // output of tools/english/distil.py
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  { seed: seed, precision: 'bf16' } + choose.from(parts(names, taught), part, 'part')
