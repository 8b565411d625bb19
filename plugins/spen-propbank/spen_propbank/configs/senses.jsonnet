// Which sense a predicate has: one of PropBank's rolesets of its lemma, learned from the files of semantic roles.
//
//     spen-run senses                                  # made-up sentences, seconds on a CPU
//     spen-run senses data=ewt
//     spen-run senses data=a.conll validation=b.conll test=c.conll
local choose = import 'lib/choose.libsonnet';
local own = import 'lib/own.libsonnet';
local patches = import 'lib/patches.libsonnet';

local ewt(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;
local data_sets = {
  sample: { task: { corpus: 'sample' } },
  ewt: { task: { train: ewt('train'), validation: ewt('dev'), test: ewt('test'), min_count: 2 } },
  // Your own files, named by task.train=… task.validation=… task.test=…
  files: { task: {} },
};
local methods = { cross_entropy: { has_energy:: false, trainer+: { type: 'cross_entropy' } } };
local pretrained = { every: { trainer+: { batch_size: 16, epochs: 6, patience: 3, net+: { lr: 5e-5, clip: 1 } } } };
// A sense shows near its predicate: a few words are read in less time than whole sentences.
local bilstm = {
  features:: { type: 'bilstm', word_dim: 100, hidden: 160, layers: 1, dropout: 0.4, word_dropout: 0.1 },
  every: { task+: { window: 12 }, trainer+: { batch_size: 64, epochs: 9, patience: 3, net+: { lr: 3e-3, clip: 5, plateau: { factor: 0.5, patience: 0 } } } },
};
local small = bilstm {
  features:: { type: 'bilstm', word_dim: 32, hidden: 32, layers: 1, dropout: 0.1 },
  every+: { trainer+: { batch_size: 16, epochs: 8, net+: { lr: 5e-3 } } },
};
local tuned(data, encoder) = if choose.is_pretrained(encoder) then pretrained else if data == 'sample' then small else bilstm;
local size(data) = if choose.is_path(data) || data == 'files' then own else {};

function(
  data='sample',  // sample, ewt, files, or a training file of your own with rolesets
  validation=null,  // validation file; null: a part of the training file
  test=null,  // test file; without validation and test, data= is divided into all three parts
  split=null,  // JSON file with the rows of train, validation and test in data=, as written by spen data split
  encoding=null,  // encoding of the text files, if not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  encoder='bilstm',  // bilstm, the name or folder of a Hugging Face model, or a table {type: …} of any other
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  {
    seed: seed,
    precision: precision,
    inference_net: { type: 'choice' },
    task: { type: 'propbank.senses' } + choose.files(data_sets, data, validation, test, split=split),
    features:
      if std.isObject(encoder) then encoder
      else if encoder == 'bilstm' then tuned(data, encoder).features
      else { type: 'transformer', model: encoder },
  }
  + choose.encoded(encoding)
  + patches.method(methods, 'cross_entropy', [tuned(data, encoder), size(data)])
