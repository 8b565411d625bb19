// Fields of citations from few labelled ones and rules (Shankar & Piratla 2022; Rooshenas et al. 2019): author, title, journal, …
//
//     spen-run citations                          # embedded citations, a minute on a CPU
//     spen-run citations data=cora labelled=10
//     spen-run citations data=cora method=crf
//     spen-run citations data=mine.txt validation=dev.txt test=test.txt labelled=null pool=more.txt
local citations = import 'citations.libsonnet';

function(
  data='sample',  // sample, cora, files, or a training file of your own: one citation a line, fields tagged inline
  validation=null,  // the file to validate on that goes with a training file; null: a part of that one
  test=null,  // and the one to test on; of neither, data= is divided into all three
  split=null,  // or the rows of one file that are train, validation and test: JSON, as spen data split writes it
  labelled=5,  // training citations, from the first, whose fields are used (5, 10, 50); null: all
  pool='none',  // more citations without fields: none, anystyle, or a file of one a line (not for the methods of labelled ones alone)
  method='implicit_cd',  // implicit_cd, implicit_ssvm, implicit_dvn, alternating_cd (a control); by the same rules: majority, votes, rules_energy, expectation, r_spen, sg_spen; dvn, cross_entropy (BiLSTM), crf: the labelled ones alone
  precision='no',  // no, bf16 or fp16
  seed=0  // of initial weights, row order, dropout and sampling
)
  { seed: seed, precision: precision, inference_net: { type: 'independent' } }
  + citations.task(data, validation, test, split, labelled, pool)
  + citations.features(data)
  + citations.method(data, method)
