// Parts of speech with inference networks (Tu, Pang & Gimpel 2020), and the baselines: a BiLSTM and a CRF.
//
//     spen-run configs/tags.jsonnet                   # embedded corpus, seconds on a CPU
//     spen-run configs/tags.jsonnet data=twitter_pos  # the paper's task, every feature there is
//     spen-run configs/tags.jsonnet data=twitter_pos features=paper split=reference
//     spen-run configs/tags.jsonnet energy_loss.cost_net.type=infnet.shared trainer.net.lr=0.003
//     spen-run configs/tags.jsonnet data=ewt tags=xpos encoder=bert-base-cased
//     spen-run configs/tags.jsonnet data=train.conllu validation=dev.conllu test=test.conllu
local choose = import 'lib/choose.libsonnet';
local tagging = import 'lib/tags.libsonnet';

local ewt(part) = 'data:pos/ewt/en_ewt-ud-%s.conllu' % part;
local tweets(train, validation) = {
  train: 'data:pos/twitter_pos/oct27.splits/' + train,
  validation: 'data:pos/twitter_pos/oct27.splits/' + validation,
  test: 'data:pos/twitter_pos/daily547.conll',
};
local splits = { standard: tweets('oct27.train', 'oct27.dev'), reference: tweets('oct27.traindev', 'oct27.test') };
local data_sets = {
  sample: tagging.sample { task: { corpus: 'pos' } },
  twitter_pos: tagging.tweets {
    task: splits.standard,
    bilstm+: { dropout: 0.5, word_dropout: 0.2 },
    every+: {
      pretrain_epochs:: 5,
      trainer+: { batch_size: 16, epochs: 60, patience: 15, net+: { plateau: { factor: 0.5, patience: 5 } } },
    },
  },
  ewt: tagging.plain { task: { train: ewt('train'), validation: ewt('dev'), test: ewt('test') } },
  // Your own files, named by task.train=… task.validation=… task.test=…, or by task.file=… and perhaps task.split=…
  // Endings say much where words are few.
  files: tagging.own { words+: { features: 'affixes' } },
};

function(
  data='sample',  // sample, twitter_pos, ewt, files, or a training file of your own: columns or CoNLL-U
  split=null,  // for twitter_pos: standard (train, dev), or reference (traindev, test, as in the paper's code), both tested on daily547; for your own file: JSON with the rows of train, validation and test, as written by spen data split
  validation=null,  // validation file; null: a part of the training file
  test=null,  // test file; without validation and test, data= is divided into all three parts
  encoding=null,  // encoding of the text files, if not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  tags=null,  // column of the tags: upos or xpos in CoNLL-U files, or a number from 0, negative from the end
  columns=null,  // extra columns as features, with features=plus and above: {"lemma": 1}
  encoder='bilstm',  // bilstm, minilm, mpnet, the name or folder of a Hugging Face model, or a table {type: …} of any other
  features=null,  // words (only vectors), plus (tuned vectors, case, columns), plusplus (adds characters), affixes (adds affixes), all (adds clusters), or paper: words
  vectors=null,  // word vectors in GloVe's text format: a file, or glove_twitter; none: learned from scratch
  clusters=null,  // Brown clusters: a file, twitter, or none
  method='compound',  // cross_entropy (BiLSTM), crf, segments (scores each span, for tags of spans); margin, perceptron, contrastive, slack (one net); compound (two nets); nce (SEAL-dynamic); static_crf, static_segments (taught by a CRF or segments), static_mean, distillation (taught by finished runs, init.energy=RUNS); unrolled (end to end); implicit_cd, implicit_ssvm, implicit_dvn, alternating_cd (implicit training); with a file of rules, task.rules=FILE: majority, votes, rules_energy, expectation, rules_cd, r_spen, sg_spen
  energy=null,  // chain, ge_a, ge_b, ge_c, skip_chain, high_order, or a table {type: …} of any other
  precision='no',  // no, bf16 or fp16
  seed=0  // seed of initial weights, row order, dropout and sampling
)
  local chosen =
    if split == null || choose.is_path(data) then {}
    else if data == 'twitter_pos' then choose.from(splits, split, 'split')
    else if data == 'files' then error 'split= requires data=twitter_pos or data=FILE; with data=files, give task.file=FILE and task.split=FILE'
    else error 'split= requires data=twitter_pos or your own file; data=%s has a fixed split, so omit it' % std.toString(data);
  local rows = if choose.is_path(data) then split else null;
  { seed: seed, precision: precision, inference_net: { type: 'independent' } }
  + tagging.task(data_sets, data, validation, test, tags, rows)
  + choose.encoded(encoding)
  + { task+: chosen }
  + tagging.features(data_sets, data, encoder, features, vectors, clusters, columns)
  + tagging.method(data_sets, data, encoder, method, energy)
