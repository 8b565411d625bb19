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
  validation=null,  // the file to validate on that goes with a training file; null: a part of that one
  test=null,  // and the one to test on; of neither, data= is divided into all three
  split=null,  // or the rows of one file that are train, validation and test: JSON, as spen data split writes it
  text=null,  // column of the texts: its name, or its number from 1; null: `text`, or the only one beside the labels
  labels=null,  // column of the labels, by name or number; or columns of 0 and 1, "a,b" or "is_*"; or a file of label names, where the cells have numbers; null: `labels`, `label`, or the only one beside the text
  separator=null,  // what separates the labels in one cell; null: a comma
  drop=null,  // columns that are not used, "a,b"
  encoding=null,  // of the files of text, if it is not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  threshold=null,  // a number, or "validation", which null is too: chosen on the validation part
  decode=null,  // threshold; expected_f1: label sets of highest expected F1, at a temperature chosen on the validation part; validation: the better of both; null: validation of a file of your own without a threshold, else threshold
  method=null,  // null: nce of the sample, else cross_entropy, which was better on every corpus of texts; cross_entropy, linear (one-vs-rest logistic regression on tf-idf), labels that depend on each other: counts, hierarchy (task.hierarchy=FILE), star, mixture, gspen; written one after the other: seq2seq, sgm, ocd; read as words beside the text: seqtag, seqtag_crf, laco; nce_seq2seq (SEAL-NCE with that net's samples), nce, ranking, margin, margin_compound, regression, regression_s, partition; runs that teach, init.energy=RUNS: static_mean, distillation; end to end: unrolled; implicit: implicit_cd, implicit_ssvm, implicit_dvn, alternating_cd; gradient steps from a net: alen, ialen; by a file of rules, task.rules=FILE: majority, votes, rules_energy, expectation, rules_cd, r_spen, sg_spen
  encoder=null,  // ngrams, bilstm, minilm, the name or folder of a Hugging Face model, or a table {type: …} of any other; null: ngrams, or bilstm for a method that reads words
  class_weight=null,  // weights of labels in the cross entropy: balanced, or a table {"rare": 5}; null: none
  precision='no',  // no, bf16 or fp16
  seed=0  // of initial weights, row order, dropout and sampling
)
  { seed: seed, precision: precision, inference_net: { type: 'independent', bias: true } }
  + texts.task(data, validation, test, split, { text: text, labels: labels, separator: separator, drop: drop }, threshold, decode, class_weight)
  + choose.encoded(encoding)
  + texts.method(data, if method != null then method else if data == 'sample' then 'nce' else 'cross_entropy', encoder)
