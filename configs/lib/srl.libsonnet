// Semantic role labelling: data sets, encoders, energies, and the hyper-parameters they start from.
local choose = import 'choose.libsonnet';
local methods = import 'methods.libsonnet';

local ewt(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;

// Starting points by method. The authors' λ1 of nce is 0.5, for BERT and a cross entropy that is a mean over tokens while the
// energy is a sum; a BiLSTM that starts from nothing is led astray by so much energy.
local rows(pretrained) =
  local energy_weight = if pretrained then 0.5 else 0.05;
  {
    cross_entropy: { steps: [1, 1] },
    crf: { steps: [1, 1] },
    nce: { energy_weight: energy_weight, steps: [1, 1] },
    ranking: { energy_weight: energy_weight, steps: [1, 1] },
    margin: { energy_weight: energy_weight, steps: [1, 1] },
    margin_compound: { energy_weight: energy_weight, perceptron_weight: 0.1, steps: [1, 1] },
    // These ask for −σ(−E), at most 1.
    regression: { energy_weight: 1, steps: [1, 1] },
    regression_s: { energy_weight: 1, std: 0.5, steps: [1, 1] },
  };

local energies = {
  'local': { type: 'local' },
  linear_chain: { type: 'linear_chain' },
  self_attention: { type: 'seal.self_attention' },
};

{
  data:: {
    sample: { corpus: 'sample' },
    ewt: { train: ewt('train'), validation: ewt('dev'), test: ewt('test'), min_count: 2 },
    // Your own files, named by task.train=… task.validation=… task.test=…
    files: {},
  },

  // The task of a data set's name, or of a training file of the user's own.
  task(data)::
    { type: 'srl' } + (if choose.is_path(data) then { train: data } else choose.from($.data, data, 'data')),

  // An energy's name, or a table {type: …} of any other.
  energy(name):: if std.isObject(name) then name else choose.from(energies, name, 'energy'),

  // `bilstm`, or the name or folder of a Hugging Face model.
  features(encoder, small)::
    if encoder == 'bilstm' then
      { type: 'bilstm' } + (if small then { word_dim: 32, hidden: 48, layers: 1, dropout: 0.1 } else { word_dim: 100, hidden: 200, layers: 2, dropout: 0.4 })
    else { type: 'transformer', model: encoder },

  // A pretrained encoder is fine-tuned gently, as the authors did; a BiLSTM starts from nothing.
  training(encoder, small)::
    if encoder == 'bilstm' then {
      net_lr: if small then 5e-3 else 1e-3,
      energy_lr: 1e-3,
      batch_size: 32,
      epochs: if small then 12 else 20,
      patience: 5,
      net_clip: 5,
    } else {
      net_lr: 1e-5,
      energy_lr: 1e-5,
      batch_size: 16,
      epochs: 20,
      patience: 4,
      net_clip: 1,
    },

  // Hyper-parameters of an encoder and a method under a schedule.
  defaults(data, encoder, method, schedule)::
    local row = choose.from(rows(encoder != 'bilstm'), method, 'method');
    {
      optimizer: 'adamw',
      weight_decay: 1e-5,
      cross_entropy_weight: 1,
      per_variable: true,
      samples: 20,
      plateau: { factor: 0.5, patience: 2 },
    }
    + $.training(encoder, data == 'sample')
    + row
    + methods.schedule(schedule, method, row.steps[0], row.steps[1]),
}
