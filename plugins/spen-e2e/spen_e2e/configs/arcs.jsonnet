// Semantic role labelling as arcs, with an energy that learns end to end (Belanger, Yang & McCallum 2017), and its baselines.
//
//     spen-run arcs           # embedded corpus, all spans up to 6 words, CPU
//     spen-run arcs data=ewt  # candidates from Universal Dependencies
//     spen-run arcs data=a.conll validation=b.conll test=c.conll trees='[a.conllu, b.conllu, c.conllu]'
//
// Scores are span F1 after repair by task.repair, and f1_none, f1_heuristic and f1_ilp. Numbers are in arcs.libsonnet.
local arcs = import 'arcs.libsonnet';

function(
  data='sample',  // sample, ewt, files, or a training file of your own
  validation=null,  // validation file; null: a part of the training file
  test=null,  // test file; without validation and test, data= is divided into all three parts
  split=null,  // JSON file with the rows of train, validation and test in data=, as written by spen data split
  trees=null,  // files of the sentences' dependency trees, in CoNLL-U; null: candidates are all spans of at most task.longest words
  encoder='bilstm',  // bilstm, minilm, mpnet, the name or folder of a Hugging Face model, or a table {type: …} of any other
  method='spen',  // spen, icnn, spen_ssvm, local
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order and dropout
)
  { seed: seed, precision: precision }
  + arcs.task(data, validation, test, split, trees)
  + arcs.features(data, encoder)
  + arcs.method(data, encoder, method)
