// Labels of raw texts with SEAL-dynamic (Lee et al. 2022) and its cross-entropy baseline, over bags of n-grams or a pretrained encoder.
//
//     spen-run configs/texts.jsonnet                                      # embedded corpus, seconds on a CPU
//     spen-run configs/texts.jsonnet data=goemotions method=cross_entropy
//     spen-run configs/texts.jsonnet data=goemotions method=cross_entropy encoder=minilm
//     spen-run configs/texts.jsonnet features.words=1 features.buckets=0  # a plain bag of words
//     spen-run configs/texts.jsonnet data=mine.csv text=comment labels=tags
//     spen-run configs/texts.jsonnet data=train.tsv validation=dev.tsv test=test.tsv labels=names.txt
//
// Numbers by data set and method are in lib/texts.libsonnet.
local choose = import 'lib/choose.libsonnet';
local texts = import 'lib/texts.libsonnet';

function(
  data='sample',  // sample, goemotions, arxiv, reuters, files, or a training file of your own (TSV, CSV, JSONL, Parquet)
  validation=null,  // validation file; null: a part of the training file
  test=null,  // test file; without validation and test, data= is divided into all three parts
  split=null,  // JSON file with the rows of train, validation and test in data=, as written by spen data split
  text=null,  // column of the texts: its name, or its number from 1; null: `text`, or the only column besides the labels
  labels=null,  // column of the labels, by name or number; or 0/1 columns, "a,b" or "is_*"; or a file of label names, if the cells have numbers; null: `labels`, `label`, or the only column besides the text
  separator=null,  // separator of the labels in one cell; null: a comma
  drop=null,  // columns to ignore, "a,b"
  encoding=null,  // encoding of the text files, if not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  threshold=null,  // a number, or "validation" (the same as null): chosen on the validation part
  decode=null,  // threshold; expected_f1: label sets of highest expected F1, at a temperature chosen on the validation part; validation: whichever scores better on the validation part; null: validation for your own file without a threshold, else threshold
  method=null,  // null: nce for the sample, else cross_entropy, which scored better on every text corpus; cross_entropy, linear (one-vs-rest logistic regression on tf-idf), dependent labels: counts, hierarchy (task.hierarchy=FILE), star, mixture, gspen; label sequences: seq2seq, sgm, ocd; labels read as words with the text: seqtag, seqtag_crf, laco; nce_seq2seq (SEAL-NCE with that net's samples), nce, ranking, margin, margin_compound, regression, regression_s, partition; taught by finished runs, init.energy=RUNS: static_mean, distillation; end to end: unrolled; implicit training: implicit_cd, implicit_ssvm, implicit_dvn, alternating_cd; gradient steps from a net: alen, ialen; with a file of rules, task.rules=FILE: majority, votes, rules_energy, expectation, rules_cd, r_spen, sg_spen
  encoder=null,  // ngrams, bilstm, minilm, mpnet, the name or folder of a Hugging Face model, or a table {type: …} of any other; null: ngrams, or bilstm for a method that reads words
  class_weight=null,  // weights of labels in the cross entropy: balanced, or a table {"rare": 5}; null: none
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  { seed: seed, precision: precision, inference_net: { type: 'independent', bias: true } }
  + texts.task(data, validation, test, split, { text: text, labels: labels, separator: separator, drop: drop }, threshold, decode, class_weight)
  + choose.encoded(encoding)
  + texts.method(data, if method != null then method else if data == 'sample' then 'nce' else 'cross_entropy', encoder)
