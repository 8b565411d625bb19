// Semantic role labelling: a CRF, cross entropy, and SEAL (Lee et al. 2022).
//
//     spen-run configs/roles.jsonnet                                                    # embedded corpus, small encoder, CPU
//     spen-run configs/roles.jsonnet data=ewt encoder=bert-base-cased                   # the real thing
//     spen-run configs/roles.jsonnet data=ewt encoder=bert-base-cased reading=sentence  # the same encoder, in less time
//     spen-run configs/roles.jsonnet data=a.conll validation=b.conll test=c.conll
//     spen-run configs/roles.jsonnet task.train=a.conll task.validation=b.conll task.test=c.conll
//
// Numbers by encoder and method are in lib/roles.libsonnet.
local choose = import 'lib/choose.libsonnet';
local srl = import 'lib/roles.libsonnet';

function(
  data='sample',  // sample, ewt, files, or a training file of your own
  validation=null,  // validation file; null: a part of the training file
  test=null,  // test file; without validation and test, data= is divided into all three parts
  split=null,  // JSON file with the rows of train, validation and test in data=, as written by spen data split
  encoding=null,  // encoding of the text files, if not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  encoder='bilstm',  // bilstm, minilm, mpnet, the name or folder of a Hugging Face model, or a table {type: …} of any other
  reading='predicate',  // predicate: the encoder reads a sentence once per predicate; sentence: once for all its predicates
  method=null,  // null: crf, the best on the validation part of ewt, or nce if energy or schedule is given; cross_entropy, crf, segments (scores each span), nce, ranking, margin, margin_compound, regression, regression_s, static_crf, static_segments (taught by a CRF or segments), static_mean, distillation (taught by finished runs, init.energy=RUNS), structured_tuning (a CRF tuned so that core roles occur at most once); with a file of rules, task.rules=FILE: majority, votes, rules_energy, expectation, rules_cd, r_spen, sg_spen
  energy=null,  // self_attention, local, linear_chain; constraints (for structured_tuning); or a table {type: …} of any other
  schedule='light',  // light; released: the authors' schedule for pretrained encoders, light with K = 400 for nce
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  { seed: seed, precision: precision, inference_net: { type: 'independent' } }
  + srl.task(data, validation, test, split)
  + choose.encoded(encoding)
  + srl.features(data, encoder, reading)
  + srl.method(data, encoder, srl.default(method, energy, schedule), energy, schedule, reading)
