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
  validation=null,  // the file to validate on that goes with a training file; null: a part of that one
  test=null,  // and the one to test on; of neither, data= is divided into all three
  split=null,  // or the rows of one file that are train, validation and test: JSON, as spen data split writes it
  encoding=null,  // of the files of text, if it is not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  encoder='bilstm',  // bilstm, minilm, the name or folder of a Hugging Face model, or a table {type: …} of any other
  reading='predicate',  // predicate: the encoder reads a sentence for each predicate; sentence: once for all of them
  method=null,  // null: crf, the best on the validation part of ewt, or nce if energy or schedule is given; cross_entropy, crf, segments (a score for each span), nce, ranking, margin, margin_compound, regression, regression_s, static_crf, static_segments (a CRF, or segments, teach), static_mean, distillation (runs teach, init.energy=RUNS), structured_tuning (a CRF learns that a core role comes once); by a file of rules, task.rules=FILE: majority, votes, rules_energy, expectation, rules_cd, r_spen, sg_spen
  energy=null,  // self_attention, local, linear_chain; constraints (of structured_tuning); or a table {type: …} of any other
  schedule='light',  // light; released: the authors' for pretrained encoders, which is light with K = 400 for nce
  precision='no',  // no, bf16 or fp16
  seed=0  // of initial weights, row order, dropout and sampling
)
  { seed: seed, precision: precision, inference_net: { type: 'independent' } }
  + srl.task(data, validation, test, split)
  + choose.encoded(encoding)
  + srl.features(data, encoder, reading)
  + srl.method(data, encoder, srl.default(method, energy, schedule), energy, schedule, reading)
