// Semantic role labelling: data sets, encoders, energies, and the hyper-parameters they start from.
local choose = import 'choose.libsonnet';
local methods = import 'methods.libsonnet';

local ewt(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;

// Starting points by method. The authors' λ1 of nce is 0.5, for BERT and a cross entropy that is a mean over tokens
// while the energy is a sum. A BiLSTM that starts from nothing is led astray by so much energy: `kind` says how much it
// takes, beside a cross entropy that is a sum.
local rows(kind) =
  local energy_weight = { pretrained: 0.5, small: 0.6, bilstm: 0.3 }[kind];
  // Regression asks for −σ(−E), at most 1 in size: λ1 of 1 beside a mean is 12 beside the sum over 12 tokens.
  local bounded_weight = if kind == 'pretrained' then 1 else 12;
  {
    cross_entropy: { steps: [1, 1] },
    crf: { steps: [1, 1] },
    nce: { energy_weight: energy_weight, steps: [1, 1] },
    ranking: { energy_weight: energy_weight, steps: [1, 1] },
    margin: { energy_weight: energy_weight, steps: [1, 1] },
    margin_compound: { energy_weight: energy_weight, perceptron_weight: 0.1, steps: [1, 1] },
    regression: { energy_weight: bounded_weight, steps: [1, 1] },
    regression_s: { energy_weight: bounded_weight, std: 0.5, steps: [1, 1] },
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
  task(data, validation, test)::
    local rest = choose.given({ validation: validation, test: test });
    if choose.is_path(data) then
      if validation == null then
        error 'data=%s is the training file; name the others too: data=%s validation=FILE test=FILE' % [data, data]
      else { type: 'srl', train: data } + rest
    else if rest != {} then
      error 'validation= and test= go with a training file, data=FILE; data=%s names no file' % std.toString(data)
    else { type: 'srl' } + choose.data($.data, data),

  // An energy's name, or a table {type: …} of any other.
  energy(name):: if std.isObject(name) then name else choose.from(energies, name, 'energy'),

  // `bilstm`, the name or folder of a Hugging Face model, or a table {type: …} of any feature network.
  features(encoder, small)::
    if std.isObject(encoder) then encoder
    else if encoder == 'bilstm' then
      { type: 'bilstm' } + (if small then { word_dim: 32, hidden: 48, layers: 1, dropout: 0.1 } else { word_dim: 100, hidden: 128, layers: 2, dropout: 0.4 })
    else { type: 'transformer', model: encoder },

  // A pretrained encoder is fine-tuned gently, as the authors did; a BiLSTM starts from nothing.
  training(kind, method, schedule)::
    {
      pretrained: {
        per_variable: true,
        samples: if schedule == 'released' && method == 'nce' then 400 else 20,
        net_lr: 1e-5,
        energy_lr: 1e-5,
        batch_size: 16,
        epochs: 20,
        patience: 4,
        net_clip: 1,
      },
      bilstm: {
        per_variable: false,
        samples: 8,
        net_lr: 2e-3,
        energy_lr: 1e-3,
        batch_size: 32,
        epochs: 20,
        patience: 5,
        net_clip: 10,
      },
      small: self.bilstm { samples: 20, net_lr: 5e-3, epochs: 12 },
    }[kind],

  // Hyper-parameters of an encoder and a method under a schedule.
  defaults(data, encoder, method, schedule)::
    local pretrained = if std.isObject(encoder) then std.get(encoder, 'type') == 'transformer' else encoder != 'bilstm';
    local kind = if pretrained then 'pretrained' else if data == 'sample' then 'small' else 'bilstm';
    local row = choose.from(rows(kind), method, 'method');
    local steps = methods.schedule(schedule, method, row.steps[0], row.steps[1]);
    if schedule == 'released' && kind != 'pretrained' then
      error "schedule=released is the authors' for a pretrained encoder, such as encoder=bert-base-cased; one that starts from nothing has none"
    else
      {
        optimizer: 'adamw',
        weight_decay: 1e-5,
        cross_entropy_weight: 1,
        plateau: { factor: 0.5, patience: 2 },
      }
      + $.training(kind, method, schedule)
      + row
      + steps,
}
