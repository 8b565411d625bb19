// Semantic role labelling with SEAL-dynamic (Lee et al. 2022): configs/roles.jsonnet with method=nce.
//
//     spen-run configs/srl_seal.jsonnet                                   # embedded corpus, small encoder, CPU
//     spen-run configs/srl_seal.jsonnet data=ewt encoder=bert-base-cased  # the real thing
local roles = import 'roles.jsonnet';

function(
  data='sample',  // sample, ewt, files, or a training file of your own
  validation=null,  // the file to validate on that goes with a training file; null: a part of that one
  test=null,  // and the one to test on; of neither, data= is divided into all three
  split=null,  // or the rows of one file that are train, validation and test: JSON, as spen data split writes it
  encoding=null,  // of the files of text, if it is not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  encoder='bilstm',  // bilstm, minilm, the name or folder of a Hugging Face model, or a table {type: …} of any other
  reading='predicate',  // predicate: the encoder reads a sentence for each predicate; sentence: once for all of them
  method='nce',  // as of configs/roles.jsonnet
  energy=null,  // self_attention, local, linear_chain, or a table {type: …} of any other
  schedule='light',  // light; released: the authors' for pretrained encoders, which is light with K = 400 for nce
  precision='no',  // no, bf16 or fp16
  seed=0  // of initial weights, row order, dropout and sampling
)
  roles(data=data, validation=validation, test=test, split=split, encoding=encoding, encoder=encoder, reading=reading, method=method, energy=energy, schedule=schedule, precision=precision, seed=seed)
