function(
  data='words',  // folder of train.jsonl, validation.jsonl and test.jsonl
  hidden=16,  // width of the features
  seed=0,
) {
  seed: seed,
  local features = { type: 'bilstm', word_dim: 16, affix_dim: 0, hidden: hidden, layers: 1, dropout: 0.1 },
  task: { type: 'morphs.words' } + { [part]: '%s/%s.jsonl' % [data, part] for part in ['train', 'validation', 'test'] },
  features: features,
  inference_net: { type: 'morphs.windows', width: 5 },
  energy: { type: 'morphs.gaps', reach: 3 },
  energy_loss: { type: 'morphs.ranking', samples: 10 },
  trainer: {
    type: 'morphs.warm_up',
    net_epochs: 5,
    epochs: 5,
    batch_size: 16,
    net: { lr: 0.01 },
    energy: { lr: 0.01 },
  },
}
