// The five nets of the pipeline spen_en, for `make english`.
//
//     spen-run english part=pos
//
// Words are seen by hashes, affixes, shapes and letters: the pipeline brings neither vectors nor vocabularies.
local choose = import 'lib/choose.libsonnet';

local words = {
  word_dim: 0,
  hash_dim: 64,
  hash_rows: 8000,
  affix_dim: 32,
  case_dim: 8,
  char_dim: 16,
  char_filters: 32,
  char_widths: [3],
};
local bilstm = { type: 'bilstm', layers: 1, word_dropout: 0.1 } + words;
local training = {
  type: 'cross_entropy',
  net: { type: 'adam', lr: 2e-3, plateau: { factor: 0.5, patience: 0 } },
  batch_size: 32,
  patience: 4,
};
// Names of no other words than those of a table: the nets' own, so that none is read from the training part.
local no_vocabulary = { min_count: 1000000 };
local ud(part) = 'data:pos/ewt/en_ewt-ud-%s.conllu' % part;
local propbank(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;
local roles = { train: propbank('train'), validation: propbank('dev'), test: propbank('test') } + no_vocabulary;

local parts(names, taught) = {
  pos: {
    task: { type: 'tagging', train: ud('train'), validation: ud('dev'), test: ud('test'), tags: 'upos+xpos' } + no_vocabulary,
    features: bilstm { hidden: 100, dropout: 0.4, char_filters: 64 },
    inference_net: { type: 'independent' },
    trainer: training { epochs: 16 },
  },
  predicates: {
    task: { type: 'tagging', format: 'predicates', scheme: 'bio' } + roles,
    features: bilstm { hidden: 100, dropout: 0.4 },
    inference_net: { type: 'independent' },
    trainer: training { epochs: 12 },
  },
  // Gold roles, and those that english_md's teacher finds in text without labels, as tools/english/distil.py writes them.
  srl: {
    precision: 'bf16',
    task: { type: 'srl', decode: 'expected_f1', unique_roles: true } + roles { train: taught },
    features: bilstm { hidden: 160, layers: 2, dropout: 0.3 },
    inference_net: { type: 'crf' },
    trainer: training { epochs: 8, net: { type: 'adam', lr: 2e-3, schedule: { type: 'linear', warmup: 0.03 } } },
  },
  // A sentence is read once for all its predicates, whose own state chooses. Small, so that the package stays below 15 MB.
  senses: {
    task: { type: 'propbank.senses' } + roles,
    features: {
      type: 'one_reading',
      reader: bilstm { hash_dim: 32, hash_rows: 3000, affix_dim: 16, hidden: 104, dropout: 0.4 },
      dim: 128,
      layers: 0,
      dropout: 0.3,
    },
    inference_net: { type: 'choice', dim: 40 },
    trainer: training { batch_size: 64, epochs: 9, net+: { lr: 3e-3, clip: 5 } },
  },
  // Names of four corpora, as tools/english/english_data.py joins them, and those that spen_en_md finds in EWT's training
  // part, as tools/english/distil.py adds them.
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
      epochs: 6,
      patience: null,
      net: { type: 'adam', lr: 2e-3, weight_decay: 1e-4, schedule: { type: 'linear', warmup: 0.03 } },
    },
  },
};

function(
  part='pos',  // pos, predicates, srl, senses or ner
  names='runs/english/data',  // output folder of tools/english/english_data.py and, for spen_en's names, of distil.py
  taught='runs/english_md/taught.jsonl',  // output of tools/english/distil.py --teacher
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  { seed: seed } + choose.from(parts(names, taught), part, 'part')
