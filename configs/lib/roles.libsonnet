// Semantic role labelling: data sets, energies, and what encoders start from.
local choose = import 'choose.libsonnet';
local own = import 'own.libsonnet';
local patches = import 'patches.libsonnet';
local baselines = import 'methods/baselines.libsonnet';
local chains = import 'methods/chains.libsonnet';
local rules = import 'methods/rules.libsonnet';
local seal = import 'methods/seal.libsonnet';
local segments = import 'methods/segments.libsonnet';
local teachers = import 'methods/teachers.libsonnet';

local methods = baselines + segments + seal + chains + teachers + rules + rules.of_file(baselines.crf);

local ewt(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;
local data_sets = {
  sample: { task: { corpus: 'sample' } },
  ewt: { task: { train: ewt('train'), validation: ewt('dev'), test: ewt('test'), min_count: 2 } },
  // Your own files, named by task.train=… task.validation=… task.test=…
  files: { task: {} },
};

local energies = {
  'local': { energy: { type: 'local' } },
  linear_chain: { energy: { type: 'linear_chain' } },
  self_attention: { energy: { type: 'seal.self_attention' } },
  // Those of structured tuning, with the weights of Li et al. (2020). docs/roles.md has the lines that write rolesets.jsonl.
  constraints: {
    energy: {
      type: 'sum',
      terms: {
        unique: { type: 'rules.unique_role' },
        frames: { type: 'rules.frame_roles', rolesets: 'rolesets.jsonl' },
        overlap: { type: 'rules.overlap' },
      },
      weights: { frames: 0.5, overlap: 0.1 },
    },
  },
};

local start = {
  every: { trainer+: { epochs: 20, net+: { plateau: { factor: 0.5, patience: 2 } } } },
  with_energy: energies.self_attention,
  static_crf: energies.linear_chain,
};
// Of each method: λ1, K and the deviation of noise. `bounded` is λ1 of regression, which asks for −σ(−E), at most 1 in size.
local losses(energy_weight, bounded, samples) = {
  nce: { trainer+: { energy_weight: energy_weight }, energy_loss+: { samples: samples } },
  ranking: self.nce,
  margin: { trainer+: { energy_weight: energy_weight } },
  margin_compound: self.margin { energy_loss+: { perceptron_weight: 0.1 } },
  regression: { trainer+: { energy_weight: bounded } },
  regression_s: self.regression { energy_loss+: { samples: samples, std: 0.5 } },
};
// A pretrained encoder is fine-tuned gently, as the authors did: for BERT their λ1 of nce is 0.5 beside a mean over tokens.
local pretrained = losses(energy_weight=0.5, bounded=1, samples=20) {
  head:: { dim: 256, hidden: 128, dropout: 0.2 },
  every: { trainer+: { per_variable: true, batch_size: 16, patience: 4, net+: { lr: 1e-5, clip: 1 } } },
  with_energy: { trainer+: { energy+: { lr: 1e-5 } } },
};
// A BiLSTM that starts from nothing is led astray by so much energy. Its cross entropy is a sum, of some 12 tokens.
local bilstm = losses(energy_weight=0.3, bounded=12, samples=8) {
  features:: { type: 'bilstm', word_dim: 100, hidden: 128, layers: 2, dropout: 0.4 },
  head:: { dim: 128, hidden: 64, dropout: 0.3 },  // of reading=sentence
  every: { trainer+: { batch_size: 32, patience: 5, net+: { lr: 2e-3 } } },
  with_energy: { trainer+: { energy+: { lr: 1e-3 } } },
};
local small = bilstm + losses(energy_weight=0.6, bounded=12, samples=20) {
  features:: { type: 'bilstm', word_dim: 32, hidden: 48, layers: 1, dropout: 0.1 },
  head:: { dim: 96, hidden: 48, dropout: 0.1 },
  every+: { trainer+: { epochs: 12, net+: { lr: 5e-3 } } },
};
local tuned(data, encoder) = if choose.is_pretrained(encoder) then pretrained else if data == 'sample' then small else bilstm;
// What starts from nothing learns faster than the pretrained encoder below it.
local faster = { groups: { '*': 20, 'features.reader': 1 } };
local rates(encoder, reading) =
  if reading == 'sentence' && choose.is_pretrained(encoder) then { every: { trainer+: { net+: faster } }, with_energy: { trainer+: { energy+: faster } } }
  else {};
local size(data) = if choose.is_path(data) || data == 'files' then own else {};

// The authors' schedule, for pretrained encoders, is `light` with more samples.
local schedules = { light: {}, released: { nce: { energy_loss+: { samples: 400 } } } };

{
  task(data, validation, test, split):: { task: { type: 'srl' } + choose.files(data_sets, data, validation, test, split=split) },

  // `bilstm`, the name or folder of a Hugging Face model, or a table {type: …} of any feature network.
  // Under `reading` sentence, that network reads each sentence once, and a head runs for each predicate.
  features(data, encoder, reading='predicate'):: {
    local network =
      if std.isObject(encoder) then encoder
      else if encoder == 'bilstm' then tuned(data, encoder).features
      else { type: 'transformer', model: encoder },
    features: choose.from({
      predicate: network,
      sentence: { type: 'one_reading', reader: network } + tuned(data, encoder).head,
    }, reading, 'reading'),
  },

  default(method, energy, schedule)::
    if method != null then method else if energy != null || schedule != 'light' then 'nce' else 'crf',

  method(data, encoder, name, energy, schedule, reading='predicate')::
    if schedule == 'released' && !choose.is_pretrained(encoder) then
      error 'schedule=released requires a pretrained encoder, such as encoder=bert-base-cased; for others use schedule=light'
    else
      patches.method(methods, name, [start, segments.tables, tuned(data, encoder), rates(encoder, reading), size(data), choose.from(schedules, schedule, 'schedule')], energies, energy),
}
