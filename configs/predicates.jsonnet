// Which words are predicates, learned from the files of semantic roles: what spaCy's spen_srl asks before it labels arguments.
//
//     spen-run configs/predicates.jsonnet                                  # embedded corpus, seconds on a CPU
//     spen-run configs/predicates.jsonnet data=ewt
//     spen-run configs/predicates.jsonnet data=a.conll validation=b.conll test=c.conll
//
// An argument left at null keeps what lib/tagging.libsonnet says for this data set and encoder.
local choose = import 'lib/choose.libsonnet';
local infnet = import 'lib/infnet.libsonnet';
local tagging = import 'lib/tagging.libsonnet';

function(
  data='sample',  // sample, ewt, files, or a training file of your own, as of configs/srl_seal.jsonnet
  validation=null,  // the files that go with a training file
  test=null,
  encoder='bilstm',  // bilstm, the name or folder of a Hugging Face model, or a table {type: …} of any other
  features=null,  // words (vectors alone), plus (tuned; case), plusplus (and characters), all (and affixes, clusters)
  vectors=null,  // word vectors in GloVe's text format: a file, glove_twitter, or none: learned from nothing
  clusters=null,  // Brown clusters: a file, twitter, or none
  method='cross_entropy',  // cross_entropy, crf
  hidden=null,  // width of the encoder, in each direction
  dropout=null,  // of the encoder
  net_lr=null,
  batch_size=null,
  epochs=null,
  patience=null,
  precision='no',  // no, bf16 or fp16
  seed=0
)
  local arguments = {
    hidden: hidden,
    dropout: dropout,
    net_lr: net_lr,
    batch_size: batch_size,
    epochs: epochs,
    patience: patience,
  };
  local of_features = { features: features, vectors: vectors, clusters: clusters };
  // No energy: a word is a predicate or none, whatever its neighbours are.
  local known = { [name]: name for name in ['cross_entropy', 'crf'] };
  local h = tagging.defaults('predicates', data, encoder, arguments);
  local network = tagging.network(encoder, h, arguments, tagging.words('predicates', data, of_features));

  {
    seed: seed,
    precision: precision,
    task: tagging.predicates(data, validation, test),
    features: network.features,
    inference_net: { type: 'independent' },
  } + infnet.method(choose.from(known, method, 'method'), h, arguments, null)
