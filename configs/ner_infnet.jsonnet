// Names in texts with inference networks (Tu, Pang & Gimpel 2020), and the baselines: a BiLSTM and a CRF.
//
//     spen-run configs/ner_infnet.jsonnet                                  # embedded corpus, seconds on a CPU
//     spen-run configs/ner_infnet.jsonnet data=btc energy=ge_c             # or data=wnut17
//     spen-run configs/ner_infnet.jsonnet data=btc features=plus columns_from=btc-with-pos
//     spen-run configs/ner_infnet.jsonnet data=train.conll validation=dev.conll test=test.conll
//
// An argument left at null keeps what lib/tagging.libsonnet says for this data set, encoder and method.
local infnet = import 'lib/infnet.libsonnet';
local tagging = import 'lib/tagging.libsonnet';

function(
  data='sample',  // sample, wnut17, btc, files, or a training file of your own, in columns
  validation=null,  // the files that go with a training file
  test=null,
  tags=null,  // column of the tags: a number from 0, negative from the end, which is where they are by default
  columns=null,  // extra columns as features, from "plus" on: {"pos": 1, "chunk": 2}
  columns_from=null,  // folder of train.conll, dev.conll and test.conll with a POS column, as spen data tag-columns writes them
  encoder='bilstm',  // bilstm, the name or folder of a Hugging Face model, or a table {type: …} of any other
  features=null,  // the paper's NER, NER+ and NER++: words (vectors alone), plus (tuned; case, columns), plusplus (and characters); all (and affixes, clusters)
  vectors=null,  // word vectors in GloVe's text format: a file, glove_twitter, or none: learned from nothing
  clusters=null,  // Brown clusters: a file, twitter, or none
  method='compound',  // cross_entropy (BiLSTM), crf; margin, perceptron, contrastive, slack (one net); compound (two nets)
  energy=null,  // chain, ge_a, ge_b, ge_c, skip_chain, high_order, or a table {type: …} of any other
  tag_lm_weight=null,  // weight of the tag language models in ge_a, ge_b and ge_c
  gamma=null,  // γ, weight of the models with words beside those without, in ge_c
  cost_net=null,  // of compound: separated, shared, stacked, stacked_bilstm, or a table {type: …} of any other
  cost_net_cross_entropy=null,  // weight of cross entropy for that net
  perceptron_weight=null,  // of compound: λ
  truncate=null,  // whether the nets' objective is truncated at zero, too
  cross_entropy_weight=null,  // of the net that predicts
  net_steps=null,  // k, updates of the nets for one of the energy
  same_batch=null,  // whether those k are on one batch, or each is on another
  net_optimizer=null,  // adam, adamw, or sgd (with momentum 0.9)
  net_lr=null,
  energy_lr=null,
  weight_decay=null,
  pretrain_epochs=null,  // epochs before the others in which the net learns from cross entropy alone
  finetune_epochs=null,  // epochs after the others in which the net learns to minimise the energy
  finetune_on=null,  // on whose inputs: train, validation or test
  hidden=null,  // width of the encoder, in each direction
  dropout=null,  // of the encoder
  batch_size=null,
  epochs=null,
  patience=null,
  precision='no',  // no, bf16 or fp16
  seed=0
)
  local of_features = { features: features, vectors: vectors, clusters: clusters };
  local arguments = {
    energy: energy,
    tag_lm_weight: tag_lm_weight,
    gamma: gamma,
    cost_net: cost_net,
    cost_net_cross_entropy: cost_net_cross_entropy,
    perceptron_weight: perceptron_weight,
    truncate: truncate,
    cross_entropy_weight: cross_entropy_weight,
    net_steps: net_steps,
    same_batch: same_batch,
    net_optimizer: net_optimizer,
    net_lr: net_lr,
    energy_lr: energy_lr,
    weight_decay: weight_decay,
    pretrain_epochs: pretrain_epochs,
    finetune_epochs: finetune_epochs,
    finetune_on: finetune_on,
    hidden: hidden,
    dropout: dropout,
    batch_size: batch_size,
    epochs: epochs,
    patience: patience,
  };
  local h = tagging.defaults('ner', data, encoder, arguments);
  local network = tagging.network(encoder, h, arguments, tagging.words('ner', data, of_features));

  {
    seed: seed,
    precision: precision,
    task: tagging.ner(data, validation, test, tags, columns_from, tagging.columns('ner', data, columns, encoder, features, columns_from)),
    features: network.features,
    inference_net: { type: 'independent' },
  } + infnet.method(method, h, arguments, network.token)
