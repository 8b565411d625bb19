// Semantic role labelling with SEAL-dynamic (Lee et al. 2022): configs/roles.jsonnet with method=nce.
//
//     spen-run configs/srl_seal.jsonnet                                   # embedded corpus, small encoder, CPU
//     spen-run configs/srl_seal.jsonnet data=ewt encoder=bert-base-cased  # the real thing
local roles = import 'roles.jsonnet';

function(
  data='sample',  // sample, ewt, files, or a training file of your own
  validation=null,  // validation file; null: a part of the training file
  test=null,  // test file; without validation and test, data= is divided into all three parts
  split=null,  // JSON file with the rows of train, validation and test in data=, as written by spen data split
  encoding=null,  // encoding of the text files, if not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  encoder='bilstm',  // bilstm, minilm, mpnet, the name or folder of a Hugging Face model, or a table {type: …} of any other
  reading='predicate',  // predicate: the encoder reads a sentence once per predicate; sentence: once for all its predicates
  method='nce',  // as in configs/roles.jsonnet
  energy=null,  // self_attention, local, linear_chain, or a table {type: …} of any other
  schedule='light',  // light; released: the authors' schedule for pretrained encoders, light with K = 400 for nce
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  roles(data=data, validation=validation, test=test, split=split, encoding=encoding, encoder=encoder, reading=reading, method=method, energy=energy, schedule=schedule, precision=precision, seed=seed)
