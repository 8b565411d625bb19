// Which words are predicates, learned from the files of semantic roles: what spaCy's spen_srl asks before it labels arguments.
//
//     spen-run configs/predicates.jsonnet                                  # embedded corpus, seconds on a CPU
//     spen-run configs/predicates.jsonnet data=ewt
//     spen-run configs/predicates.jsonnet data=a.conll validation=b.conll test=c.conll
local choose = import 'lib/choose.libsonnet';
local baselines = import 'lib/methods/baselines.libsonnet';
local tagging = import 'lib/tags.libsonnet';

local propbank(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;
local roles = tagging.plain {
  task: { scheme: 'bio', format: 'predicates' },
  bilstm+: { dropout: 0.4, word_dropout: 0.1 },
  every+: { trainer+: { epochs: 12, patience: 4, net+: { lr: 2e-3, plateau: { factor: 0.5, patience: 0 } } } },
};
local data_sets = {
  sample: tagging.sample { task: { scheme: 'bio', corpus: 'predicates' }, every+: { trainer+: { epochs: 6 } } },
  ewt: roles { task+: { train: propbank('train'), validation: propbank('dev'), test: propbank('test'), min_count: 2 } },
  // Your own files, named by task.train=… task.validation=… task.test=…
  files: roles + import 'lib/own.libsonnet',
};

function(
  data='sample',  // sample, ewt, files, or a training file of your own, as in configs/roles.jsonnet
  validation=null,  // validation file; null: a part of the training file
  test=null,  // test file; without validation and test, data= is divided into all three parts
  split=null,  // JSON file with the rows of train, validation and test in data=, as written by spen data split
  encoding=null,  // encoding of the text files, if not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  encoder='bilstm',  // bilstm, minilm, mpnet, the name or folder of a Hugging Face model, or a table {type: …} of any other
  features=null,  // words (only vectors), plus (tuned vectors, case), plusplus (adds characters), affixes (adds affixes), all (adds clusters)
  vectors=null,  // word vectors in GloVe's text format: a file, or glove_twitter; none: learned from scratch
  clusters=null,  // Brown clusters: a file, twitter, or none
  method='cross_entropy',  // cross_entropy or crf; there is no energy, because whether a word is a predicate does not depend on its neighbours
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  { seed: seed, precision: precision, inference_net: { type: 'independent' } }
  + tagging.task(data_sets, data, validation, test, split=split)
  + choose.encoded(encoding)
  + tagging.features(data_sets, data, encoder, features, vectors, clusters)
  + tagging.method(data_sets, data, encoder, method, methods=baselines)
