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
  // Your own files, named by task.train=… task.validation=… task.test=…
  // Endings say much where words are few.
  files: tagging.own { words+: { features: 'affixes' } },
};

function(
  data='sample',  // sample, twitter_pos, ewt, files, or a training file of your own: columns or CoNLL-U
  split=null,  // of twitter_pos: standard (train, dev), or reference (traindev, test, as the paper's code), both end in daily547; of a file of your own: JSON with the rows of train, validation and test, as spen data split writes it
  validation=null,  // the file to validate on that goes with a training file; null: a part of that one
  test=null,  // and the one to test on; of neither, data= is divided into all three
  encoding=null,  // of the files of text, if it is not UTF-8: cp1252, latin-1, utf-16, gb18030, shift_jis, …
  tags=null,  // column of the tags: upos or xpos of CoNLL-U files, or a number from 0, negative from the end
  columns=null,  // extra columns as features, from "plus" on: {"lemma": 1}
  encoder='bilstm',  // bilstm, minilm, the name or folder of a Hugging Face model, or a table {type: …} of any other
  features=null,  // words (vectors alone), plus (tuned; case, columns), plusplus (and characters), affixes (and those), all (and clusters), or paper: words
  vectors=null,  // word vectors in GloVe's text format: a file, glove_twitter, or none: learned from nothing
  clusters=null,  // Brown clusters: a file, twitter, or none
  method='compound',  // cross_entropy (BiLSTM), crf, segments (of spans in tags: a score for each span); margin, perceptron, contrastive, slack (one net); compound (two nets); static_crf, static_segments (a CRF, or segments, teach), static_mean, distillation (runs teach, init.energy=RUNS); unrolled (end to end); implicit_cd, implicit_ssvm, implicit_dvn, alternating_cd (implicit); by a file of rules, task.rules=FILE: majority, votes, rules_energy, expectation, rules_cd, r_spen, sg_spen
  energy=null,  // chain, ge_a, ge_b, ge_c, skip_chain, high_order, or a table {type: …} of any other
  precision='no',  // no, bf16 or fp16
  seed=0  // of initial weights, row order, dropout and sampling
)
  local chosen =
    if split == null || choose.is_path(data) then {}
    else if data == 'twitter_pos' then choose.from(splits, split, 'split')
    else error 'split= is one of twitter_pos, or of a file of your own; data=%s has its own' % std.toString(data);
  local rows = if choose.is_path(data) then split else null;
  { seed: seed, precision: precision, inference_net: { type: 'independent' } }
  + tagging.task(data_sets, data, validation, test, tags, rows)
  + choose.encoded(encoding)
  + { task+: chosen }
  + tagging.features(data_sets, data, encoder, features, vectors, clusters, columns)
  + tagging.method(data_sets, data, encoder, method, energy)
