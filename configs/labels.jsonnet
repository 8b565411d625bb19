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
  split=null,  // JSON file with the row numbers of train, validation and test, as spen data split writes it
  validation=null,  // in place of split: the file to validate on that goes with a training file; null: a part of that one
  test=null,  // and the one to test on; of all three none, data= is divided 6 : 2 : 2
  labels=null,  // of a file of your own: its label columns, "a,b" or "tag_*"; or a file of their names
  label_count=null,  // or how many of the last columns are labels
  text=null,  // an error here: the config texts learns from a column of texts
  separator=null,  // what separates the labels in one cell; null: a comma
  drop=null,  // columns that are not used, "a,b"
  encoding=null,  // of the files of text, if it is not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  threshold=null,  // a number, or "validation": chosen on the validation part; null: 0.5, of method=linear and of a file of your own "validation"
  decode=null,  // threshold; expected_f1: label sets of highest expected F1, at a temperature chosen on the validation part; validation: the better of both; null: validation of a file of your own without a threshold, else threshold
  method='nce',  // SEAL-dynamic: nce, ranking, margin, margin_compound, regression, regression_s, partition (the energy learns ln Z, too); SEAL-static: static_nce, static_margin, static_regression; energies alone: spen, dvn, nce_alone; runs that teach, init.energy=RUNS: static_mean, distillation; end to end: unrolled; implicit: implicit_cd, implicit_ssvm, implicit_dvn, alternating_cd; gradient steps from a net: alen, ialen; no energy: cross_entropy, linear (one-vs-rest logistic regression), ranking_direct; labels that depend on each other: counts, hierarchy (task.hierarchy=FILE), star, mixture, gspen; written one after the other: seq2seq, sgm, ocd
  schedule='light',  // light: at most 3 energy updates a net update; released: as the authors' code
  class_weight=null,  // weights of labels in the cross entropy: balanced, or a table {"rare": 5}; null: none
  precision='no',  // no, bf16 or fp16
  seed=0  // of initial weights, row order, dropout and sampling
)
  { seed: seed, precision: precision, features: { type: 'mlp' }, inference_net: { type: 'independent' } }
  + multilabel.task(data, validation, test, split, { labels: labels, label_count: label_count, text: text, separator: separator, drop: drop }, threshold, decode, method, class_weight)
  + choose.encoded(encoding)
  + multilabel.method(data, method, schedule)
