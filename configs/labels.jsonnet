// Multi-label classification with SEAL-dynamic (Lee et al. 2022), its cross-entropy baseline, and energies alone.
//
//     spen-run configs/labels.jsonnet                                  # embedded corpus, seconds on a CPU
//     spen-run configs/labels.jsonnet data=bibtex method=nce seed=1
//     spen-run configs/labels.jsonnet data=bibtex trainer.energy_weight=0 energy_loss.samples=40 features.hidden=[400,400]
//     spen-run configs/labels.jsonnet data=mine.arff label_count=5
//     spen-run configs/labels.jsonnet data=mine.csv split=mine.split.json labels=tag_*
//     spen-run configs/labels.jsonnet data=train.svm test=test.svm
//     spen-run configs/labels.jsonnet task.train=a.arff task.validation=b.arff task.test=c.arff
//
// Numbers by data set and method are in lib/tuned/.
local choose = import 'lib/choose.libsonnet';
local multilabel = import 'lib/labels.libsonnet';

function(
  data='sample',  // sample, bibtex, delicious, genbase, cal500, spo_fun, expr_fun, files, or a file of your own: ARFF, CSV, Parquet or libsvm
  split=null,  // JSON file with the row numbers of train, validation and test, as written by spen data split
  validation=null,  // validation file, instead of split; null: a part of the training file
  test=null,  // test file; without split, validation and test, data= is divided 6 : 2 : 2
  labels=null,  // label columns of your own file, "a,b" or "tag_*"; or a file of their names
  label_count=null,  // number of label columns at the end of each row, instead of labels
  text=null,  // not supported here: use the config texts for a column of texts
  separator=null,  // separator of the labels in one cell; null: a comma
  drop=null,  // columns to ignore, "a,b"
  encoding=null,  // encoding of the text files, if not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  threshold=null,  // a number, or "validation": chosen on the validation part; null: 0.5, but "validation" for method=linear and for your own file
  decode=null,  // threshold; expected_f1: label sets of highest expected F1, at a temperature chosen on the validation part; validation: whichever scores better on the validation part; null: validation for your own file without a threshold, else threshold
  method='nce',  // SEAL-dynamic: nce, ranking, margin, margin_compound, regression, regression_s, partition (also learns ln Z); SEAL-static: static_nce, static_margin, static_regression; energies alone: spen, dvn, nce_alone; taught by finished runs, init.energy=RUNS: static_mean, distillation; end to end: unrolled; implicit training: implicit_cd, implicit_ssvm, implicit_dvn, alternating_cd; gradient steps from a net: alen, ialen; no energy: cross_entropy, linear (one-vs-rest logistic regression), ranking_direct; dependent labels: counts, hierarchy (task.hierarchy=FILE), star, mixture, gspen; label sequences: seq2seq, sgm, ocd
  schedule='light',  // light: at most 3 energy updates per net update; released: as in the authors' code
  class_weight=null,  // weights of labels in the cross entropy: balanced, or a table {"rare": 5}; null: none
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  { seed: seed, precision: precision, features: { type: 'mlp' }, inference_net: { type: 'independent' } }
  + multilabel.task(data, validation, test, split, { labels: labels, label_count: label_count, text: text, separator: separator, drop: drop }, threshold, decode, method, class_weight)
  + choose.encoded(encoding)
  + multilabel.method(data, method, schedule)
