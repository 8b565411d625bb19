// Names in texts with inference networks (Tu, Pang & Gimpel 2020), and the baselines: a BiLSTM and a CRF.
//
//     spen-run configs/names.jsonnet                       # embedded corpus, seconds on a CPU
//     spen-run configs/names.jsonnet data=btc energy=ge_c  # or data=wnut17
//     spen-run configs/names.jsonnet data=btc features=plus columns_from=btc-with-pos
//     spen-run configs/names.jsonnet data=train.conll validation=dev.conll test=test.conll
local choose = import 'lib/choose.libsonnet';
local tagging = import 'lib/tags.libsonnet';

local wnut(name) = 'data:ner/wnut17/' + name;
local btc(part) = 'data:ner/btc/btc.' + part;
local gum(part) = 'data:ner/gum/%s.conll' % part;
local wikigold(part) = 'data:ner/wikigold/%s.conll' % part;
local names = { task+: { scheme: 'bio', encoding: 'bioes' } };
local larger = names {
  bilstm+: { hidden: 128, dropout: 0.5, word_dropout: 0.1 },
  every+: { trainer+: { epochs: 20, net+: { lr: 5e-4 } } },
  with_energy+: { trainer+: { energy+: { lr: 3e-4 } } },
};
// Few sentences need the larger steps of `tagging.own`. Scores on the few that validate swing: patience is longer.
local few = larger { every+: { pretrain+:: { pretrain_patience: 10 }, trainer+: { patience: 10, net+: { lr: 2e-3 } } } };
// Names in tweets are learned by heart where each word has parameters of its own.
local tweets = tagging.tweets + larger { words+: { by_heart: false } };
local data_sets = {
  sample: tagging.sample + names { task+: { corpus: 'ner' }, words+: { columns: { pos: 1, chunk: 2 } } },
  wnut17: tweets { task+: { train: wnut('wnut17train.conll'), validation: wnut('emerging.dev.conll'), test: wnut('emerging.test.annotated') } },
  btc: tweets { task+: { train: btc('train'), validation: btc('dev'), test: btc('test') } },
  gum: tagging.plain + few { words+: { features: 'affixes' }, task+: { train: gum('train'), validation: gum('dev'), test: gum('test') } },
  wikigold: tagging.plain + few {
    words+: { features: 'affixes' },
    task+: { scheme: 'iob1', train: wikigold('train'), validation: wikigold('dev'), test: wikigold('test') },
  },
  // Your own files, named by task.train=… task.validation=… task.test=…
  files: tagging.own + few,
};

function(
  data='sample',  // sample, wnut17, btc, gum, wikigold, files, or a training file of your own, in columns
  validation=null,  // validation file; null: a part of the training file
  test=null,  // test file; without validation and test, data= is divided into all three parts
  split=null,  // JSON file with the rows of train, validation and test in data=, as written by spen data split
  encoding=null,  // encoding of the text files, if not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  tags=null,  // column of the tags: a number from 0, negative from the end; null: the last column
  columns=null,  // extra columns as features, with features=plus and above: {"pos": 1, "chunk": 2}
  columns_from=null,  // folder of train.conll, dev.conll and test.conll with a POS column, as written by spen data tag-columns
  encoder='bilstm',  // bilstm, minilm, mpnet, the name or folder of a Hugging Face model, or a table {type: …} of any other
  features=null,  // the paper's NER, NER+ and NER++: words (only vectors), plus (tuned vectors, case, columns), plusplus (adds characters); affixes (adds affixes), all (adds clusters)
  vectors=null,  // word vectors in GloVe's text format: a file, or glove_twitter; none: learned from scratch
  clusters=null,  // Brown clusters: a file, twitter, or none
  method='compound',  // cross_entropy (BiLSTM), crf, segments (scores each span); margin, perceptron, contrastive, slack (one net); compound (two nets); nce (SEAL-dynamic); static_crf, static_segments (taught by a CRF or segments), static_mean, distillation (taught by finished runs, init.energy=RUNS); unrolled (end to end); implicit_cd, implicit_ssvm, implicit_dvn, alternating_cd (implicit training); with a file of rules, task.rules=FILE: majority, votes, rules_energy, expectation, rules_cd, r_spen, sg_spen
  energy=null,  // chain, ge_a, ge_b, ge_c, skip_chain, high_order, or a table {type: …} of any other
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  local part(name) = '%s/%s.conll' % [columns_from, name];
  local tagged =
    if columns_from == null then {}
    else if choose.is_path(data) || data == 'sample' then
      error 'columns_from= requires a data set known by name; for your own files, name their columns: data=FILE validation=FILE test=FILE columns={"pos": 1}'
    else { train: part('train'), validation: part('dev'), test: part('test') };
  local extra = if columns == null && columns_from != null then { pos: 1 } else columns;
  { seed: seed, precision: precision, inference_net: { type: 'independent' } }
  + tagging.task(data_sets, data, validation, test, tags, split)
  + choose.encoded(encoding)
  + { task+: tagged }
  + tagging.features(data_sets, data, encoder, features, vectors, clusters, extra)
  + tagging.method(data_sets, data, encoder, method, energy)
