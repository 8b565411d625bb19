// The five nets of the pipeline spen_en_md, over one pretrained encoder, for `make english-md`.
//
//     spen together runs/english_md/parts pos=english_md pos.part=pos ner=english_md ner.part=ner
//     spen-run english_md part=ner encoder=mpnet
//
// The encoder, MiniLM, reads words in lower case; what a word looks like is seen beside it. Before these five, teachers are
// trained over a larger encoder, MPNet: of roles, tags and names. This pipeline and spen_en learn from what they find in more text.
local choose = import 'lib/choose.libsonnet';

local seen = { word_dim: 0, affix_dim: 16, case_dim: 8, char_dim: 16, char_filters: 32, char_widths: [3] };
// Names of no other words than those of a table: the nets' own, so that none is read from the training part.
local no_vocabulary = { min_count: 1000000 };
local ud(part) = 'data:pos/ewt/en_ewt-ud-%s.conllu' % part;
local propbank(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;
local roles = { train: propbank('train'), validation: propbank('dev'), test: propbank('test') } + no_vocabulary;

// Nets and gold data of each part.
local gold(names, encoder) = {
  local reader = { type: 'transformer', model: encoder, frozen: 'embeddings' },
  local bilstm = { type: 'bilstm', layers: 1, hidden: 96, dropout: 0.3, word_dropout: 0.1, reader: reader } + seen,
  pos: {
    task: { type: 'tagging', train: ud('train'), validation: ud('dev'), test: ud('test'), tags: 'upos+xpos' } + no_vocabulary,
    features: bilstm,
    inference_net: { type: 'independent' },
  },
  predicates: {
    task: { type: 'tagging', format: 'predicates', scheme: 'bio' } + roles,
    features: bilstm,
    inference_net: { type: 'independent' },
  },
  srl: {
    task: { type: 'srl', unique_roles: true } + roles,
    features: { type: 'one_reading', reader: reader, dim: 256, hidden: 160, dropout: 0.3 },
    inference_net: { type: 'crf' },
  },
  // The words are the encoder's, the predicate's state is what chooses: no LSTMs above.
  senses: {
    task: { type: 'propbank.senses' } + roles,
    features: { type: 'one_reading', reader: reader, dim: 256, layers: 0, dropout: 0.3 },
    inference_net: { type: 'choice', dim: 96 },
  },
  // Names of four corpora, as tools/english/english_data.py joins them.
  ner: {
    task: {
      type: 'tagging',
      scheme: 'bio',
      encoding: 'bioes',
      train: names + '/ner.train.conll',
      validation: names + '/ner.dev.conll',
      test: names + '/ner.test.conll',
    } + no_vocabulary,
    features: bilstm { hidden: 128, dropout: 0.4 },
    inference_net: { type: 'crf' },
  },
};

// What the pipeline's own nets learn in addition, as tools/english/distil.py writes it after gold. An epoch is three fifths of a pass
// over roles, a quarter of one over names and tags, a quarter to a third over the rest.
local learning(names, taught) = {
  pos: { task+: { train: names + '/pos.taught.conllu' }, trainer+: { batch_size: 32, epoch_updates_at_most: 700 } },
  predicates: { trainer+: { epoch_updates_at_most: 200 } },
  srl: { task+: { decode: 'expected_f1', train: taught }, trainer+: { batch_size: 32, epoch_updates_at_most: 4500 } },
  senses: { trainer+: { batch_size: 32, epoch_updates_at_most: 320 } },
  ner: { task+: { train: names + '/ner.taught.conll' }, trainer+: { batch_size: 32, epoch_updates_at_most: 700 } },
};
local teaching(epochs) = { trainer+: { epochs: epochs, batch_size: 32, net+: { groups: { 'features.reader': 0.035 } } } };

function(
  part='pos',  // pos, predicates, srl, senses or ner
  encoder='minilm',  // minilm; mpnet: a teacher, of gold alone
  names='runs/english/data',  // output folder of tools/english/english_data.py and of distil.py
  taught='runs/english_md/taught.jsonl',  // output of tools/english/distil.py
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  {
    seed: seed,
    precision: 'bf16',  // faster on processors with AVX512-BF16 or AMX alone
    // What stands on the encoder starts from nothing, and learns faster than it.
    trainer: {
      type: 'cross_entropy',
      net: { lr: 2e-3, clip: 5, groups: { 'features.reader': 0.1 }, schedule: { type: 'linear', warmup: 0.1 } },
      epochs: 8,
      batch_size: 16,
      patience: null,
    },
  }
  + choose.from(gold(names, encoder), part, 'part')
  + choose.from({
    minilm: learning(names, taught)[part],
    mpnet: teaching(if part == 'srl' then 5 else 4),
  }, encoder, 'encoder')
