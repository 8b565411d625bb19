// Constituency parsing with inference networks (Tu, Pang & Gimpel 2020, A.1), as one tag per word (Gómez-Rodríguez & Vilares 2018).
//
//     spen-run parsing                             # embedded trees, seconds on a CPU
//     spen-run parsing data=ewt method=compound energy=ge_b
//     spen-run parsing data=ewt encoder=minilm
//     spen-run parsing data=ewt method=tree_crf
//     spen-run parsing data=train.trees validation=dev.trees test=test.trees
local baselines = import 'lib/methods/baselines.libsonnet';
local choose = import 'lib/choose.libsonnet';
local infnet = import 'lib/methods/infnet.libsonnet';
local tagging = import 'lib/tags.libsonnet';

local ewt(part) = 'data:parsing/ewt/%s.trees' % part;
local larger = {
  words+: { features: 'affixes' },
  bilstm+: { layers: 2, hidden: 128, dropout: 0.4, word_dropout: 0.1 },
};
local data_sets = {
  sample: tagging.sample { task: { corpus: 'sample' } },
  ewt: tagging.plain + larger {
    bilstm+: { hidden: 256 },
    task: { train: ewt('train'), validation: ewt('dev'), test: ewt('test') },
    every+: { trainer+: { net+: { lr: 2e-3, clip: 5 } } },
  },
  // Your own files, named by task.train=… task.validation=… task.test=…
  files: tagging.own + larger,
};

function(
  data='sample',  // sample, ewt, files, or a training file of your own: one bracketed tree per line
  validation=null,  // validation file; null: a part of the training file
  test=null,  // test file; without validation and test, data= is divided into all three parts
  split=null,  // JSON file with the rows of train, validation and test in data=, as written by spen data split
  encoding=null,  // encoding of the text files, if not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  encoder='bilstm',  // bilstm, minilm, mpnet, the name or folder of a Hugging Face model, or a table {type: …} of any other
  features=null,  // words (only vectors), plus (tuned vectors, case), plusplus (adds characters), affixes (adds affixes), all (adds clusters)
  vectors=null,  // word vectors in GloVe's text format: a file, or glove_twitter; none: learned from scratch
  clusters=null,  // Brown clusters: a file, twitter, or none
  method='cross_entropy',  // cross_entropy (no energy), tree_crf (scores spans instead of tags); margin, perceptron, contrastive, slack (one net); compound (two nets); nce (SEAL-dynamic)
  energy=null,  // chain, ge_a, ge_b, ge_c, skip_chain, high_order, or a table {type: …} of any other
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  local larger_batches = if data == 'ewt' && choose.is_pretrained(encoder) then { trainer+: { batch_size: 32 } } else {};
  local tree_crf = baselines.cross_entropy { task+: { form: 'spans' }, inference_net: { type: 'infnet.tree_crf' } };
  // A CRF over so many tags is left out: it sums over hundreds of thousands of transitions per word.
  local methods = { cross_entropy: baselines.cross_entropy, tree_crf: tree_crf, nce: tagging.nce } + infnet;
  { seed: seed, precision: precision, inference_net: { type: 'independent' } }
  + { task: { type: 'infnet.parsing' } + choose.files(data_sets, data, validation, test, split=split) }
  + choose.encoded(encoding)
  + tagging.features(data_sets, data, encoder, features, vectors, clusters)
  + tagging.method(data_sets, data, encoder, method, energy, methods)
  + larger_batches
