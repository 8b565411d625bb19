// Semantic role labelling as arcs, with an energy that learns end to end (Belanger, Yang & McCallum 2017), and its baselines.
//
//     spen-run arcs                       # embedded corpus, all spans up to 6 words, CPU
//     spen-run arcs data=ewt              # candidates from Universal Dependencies
//     spen-run arcs data=a.conll validation=b.conll test=c.conll trees='[a.conllu, b.conllu, c.conllu]'
//
// Scores are span F1 after repair by task.repair, and f1_none, f1_heuristic and f1_ilp. Numbers are in arcs.libsonnet.
local arcs = import 'arcs.libsonnet';

function(
  data='sample',  // sample, ewt, files, or a training file of your own
  validation=null,  // the file to validate on that goes with a training file; null: a part of that one
  test=null,  // and the one to test on; of neither, data= is divided into all three
  split=null,  // or the rows of one file that are train, validation and test: JSON, as spen data split writes it
  trees=null,  // and files of dependency trees of their sentences, in CoNLL-U; null: all spans up to task.longest words
  encoder='bilstm',  // bilstm, minilm, the name or folder of a Hugging Face model, or a table {type: …} of any other
  method='spen',  // spen, icnn, spen_ssvm, local
  precision='no',  // no, bf16 or fp16
  seed=0  // of initial weights, row order and dropout
)
  { seed: seed, precision: precision }
  + arcs.task(data, validation, test, split, trees)
  + arcs.features(data, encoder)
  + arcs.method(data, encoder, method)
