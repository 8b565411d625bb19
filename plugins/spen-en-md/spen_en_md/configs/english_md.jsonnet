// The five nets of the pipeline spen_en_md, over one pretrained encoder, for `make english-md`.
//
//     spen together runs/english_md/parts pos=english_md pos.part=pos ner=english_md ner.part=ner
//
// The encoder, MiniLM, reads words in lower case; what a word looks like is seen beside it. Before these five, a net of
// roles over MPNet is trained: the teacher, whose roles of more text this pipeline and spen_en learn.
local choose = import 'lib/choose.libsonnet';

local minilm = { type: 'transformer', model: 'minilm', frozen: 'embeddings' };
local seen = { word_dim: 0, affix_dim: 16, case_dim: 8, char_dim: 16, char_filters: 32, char_widths: [3] };
local bilstm = { type: 'bilstm', layers: 1, hidden: 96, dropout: 0.3, word_dropout: 0.1, reader: minilm } + seen;
// Names of no other words than those of a table: the nets' own, so that none is read from the training part.
local no_vocabulary = { min_count: 1000000 };
local ud(part) = 'data:pos/ewt/en_ewt-ud-%s.conllu' % part;
local propbank(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;
local roles = { train: propbank('train'), validation: propbank('dev'), test: propbank('test') } + no_vocabulary;

local srl = {
  task: { type: 'srl', unique_roles: true } + roles,
  features: { type: 'one_reading', reader: minilm, dim: 256, hidden: 160, dropout: 0.3 },
  inference_net: { type: 'crf' },
};

// An epoch is three fifths of a pass over the roles, gold and taught, and a quarter to a third of one over the rest.
local parts(names, taught) = {
  teacher: srl {
    features+: { reader+: { model: 'mpnet' } },
    trainer+: { epochs: 5, batch_size: 32, net+: { groups: { 'features.reader': 0.035 } } },
  },
  pos: {
    task: { type: 'tagging', train: ud('train'), validation: ud('dev'), test: ud('test'), tags: 'upos+xpos' } + no_vocabulary,
    trainer+: { epoch_updates_at_most: 300 },
    features: bilstm,
    inference_net: { type: 'independent' },
  },
  predicates: {
    task: { type: 'tagging', format: 'predicates', scheme: 'bio' } + roles,
    trainer+: { epoch_updates_at_most: 200 },
    features: bilstm,
    inference_net: { type: 'independent' },
  },
  // Gold roles, and those that the teacher finds in text without labels, as tools/english/distil.py writes them.
  srl: srl {
    task+: { decode: 'expected_f1', train: taught },
    trainer+: { batch_size: 32, epoch_updates_at_most: 4500 },
  },
  // The words are the encoder's, the predicate's state is what chooses: no LSTMs above.
  senses: {
    task: { type: 'propbank.senses' } + roles,
    features: { type: 'one_reading', reader: minilm, dim: 256, layers: 0, dropout: 0.3 },
    inference_net: { type: 'choice', dim: 96 },
    trainer+: { batch_size: 32, epoch_updates_at_most: 320 },
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
    trainer+: { epoch_updates_at_most: 300 },
    features: bilstm { hidden: 128, dropout: 0.4 },
    inference_net: { type: 'crf' },
  },
};

function(
  part='pos',  // pos, predicates, srl, senses, ner or teacher
  names='runs/english/data',  // output folder of tools/english/english_data.py
  taught='runs/english_md/taught.jsonl',  // output of tools/english/distil.py --teacher
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  {
    seed: seed,
    precision: 'bf16',  // faster on processors with AVX512-BF16 or AMX alone
    // What stands on the encoder starts from nothing, and learns faster than it.
    trainer: {
      type: 'cross_entropy',
      net: { lr: 2e-3, clip: 5, groups: { 'features.reader': 0.1 }, schedule: { type: 'linear', warmup: 0.1 } },
      batch_size: 16,
      epochs: 8,
      patience: null,
    },
  }
  + choose.from(parts(names, taught), part, 'part')
