// Fields of citations from few labelled ones and rules (Shankar & Piratla 2022; Rooshenas et al. 2019): author, title, journal, …
//
//     spen-run citations                          # embedded citations, a minute on a CPU
//     spen-run citations data=cora labelled=10
//     spen-run citations data=cora method=crf
//     spen-run citations data=mine.txt validation=dev.txt test=test.txt labelled=null pool=more.txt
local citations = import 'citations.libsonnet';

function(
  data='sample',  // sample, cora, files, or a training file of your own: one citation per line, fields tagged inline
  validation=null,  // validation file; null: a part of the training file
  test=null,  // test file; without validation and test, data= is divided into all three parts
  split=null,  // JSON file with the rows of train, validation and test in data=, as written by spen data split
  labelled=5,  // number of training citations, from the first, whose fields are used (5, 10, 50); null: all
  pool='none',  // more citations without fields: none, anystyle, or a file with one per line (not for methods that use only labelled citations)
  method='implicit_cd',  // implicit_cd, implicit_ssvm, implicit_dvn, alternating_cd (a control); from the same rules: majority, votes, rules_energy, expectation, rules_cd, r_spen, sg_spen; from labelled citations only: dvn, cross_entropy (BiLSTM), crf
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  { seed: seed, precision: precision, inference_net: { type: 'independent' } }
  + citations.task(data, validation, test, split, labelled, pool)
  + citations.features(data)
  + citations.method(data, method)
