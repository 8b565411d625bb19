// Roles as arcs: data sets, and the methods of Belanger, Yang & McCallum (2017, Sec. 6.2).
local choose = import 'lib/choose.libsonnet';
local patches = import 'lib/patches.libsonnet';

local ewt(part) = 'data:srl/ewt_propbank/ewt-propbank-%s.gold_conll' % part;
local trees(part) = 'data:pos/ewt/en_ewt-ud-%s.conllu' % part;
local data_sets = {
  sample: { task: { corpus: 'sample' } },
  ewt: {
    task: {
      train: ewt('train'),
      validation: ewt('dev'),
      test: ewt('test'),
      trees: [trees(part) for part in ['train', 'dev', 'test']],
      min_count: 2,
    },
  },
  // Your own files, named by task.train=… task.validation=… task.test=… task.trees=…
  files: { task: {} },
};

// `scorer`: sizes of the arc-factored model; the energy's local terms begin as its copy. `net_epochs`: how long it learns alone.
local energy(config) = { type: 'e2e.arcs' } + config.scorer;
local methods = {
  'local': { has_energy:: false, trainer+: { type: 'cross_entropy' } },
  // 10 steps, with rates of their own and without momentum, as in the paper. With the entropy that is added, the steps stay at the local
  // model's output unless the other terms want another.
  spen: {
    local config = self,
    local net = super.inference_net,
    energy: energy(config),
    inference_net: { type: 'e2e.unrolled', steps: config.steps, lr: 0.5, rates: 'learned', entropy: 1, net: net },
    trainer+: {
      type: 'e2e.unroll',
      init_epochs: config.net_epochs,
      clamped_epochs: config.clamped_epochs,
      copies: { 'energy.features': 'inference_net.net.features', 'energy.local': 'inference_net.net.local' },
    },
  },
  icnn: self.spen { energy+: { icnn: true } },
  spen_ssvm: {
    local config = self,
    local net = super.inference_net,
    local descent = { steps: config.steps, lr: 0.1, optimizer: 'adam' },
    energy: energy(config),
    energy_loss: { type: 'ssvm', cost: 'l1', starts: ['net'], descent: descent },
    inference_net: { type: 'gbi', starts: ['net'], net: net } + descent,
    trainer+: { type: 'energy', net_epochs: config.net_epochs },
  },
};

local start = {
  every: {
    net_epochs:: 15,
    steps:: 10,
    clamped_epochs:: 2,
    // A few sentences have thousands of pairs: the steps of a batch of 32 with one of them take 6 GB.
    trainer+: { batch_size: 16, epochs: 15, patience: 4, net+: { lr: 2e-3, clip: 5, plateau: { factor: 0.5, patience: 1 } } },
  },
  // Gradients through the steps are few and large.
  with_energy: { trainer+: { epochs: 8, energy+: { lr: 1e-3, clip: 1 } } },
  // Its local terms begin as anything.
  spen_ssvm: { trainer+: { epochs: 20 } },
};
local bilstm = {
  scorer:: { hidden: 128, dropout: 0.2 },
  features:: { type: 'bilstm', word_dim: 100, hidden: 128, layers: 2, dropout: 0.4 },
};
local small = {
  scorer:: { hidden: 64, dropout: 0.1 },
  features:: { type: 'bilstm', word_dim: 32, hidden: 48, layers: 1, dropout: 0.1 },
  every: { net_epochs:: 6, clamped_epochs:: 1, steps:: 3, trainer+: { batch_size: 8, epochs: 6, net+: { lr: 5e-3 } } },
  with_energy: { trainer+: { epochs: 3 } },
  'local': { trainer+: { epochs: 12 } },
  spen_ssvm: { trainer+: { epochs: 12 } },
};
local pretrained = {
  scorer:: bilstm.scorer,
  every: { net_epochs:: 5, trainer+: { batch_size: 16, epochs: 5, net+: { lr: 2e-5, clip: 1 } } },
  with_energy: { trainer+: { epochs: 3, energy+: { lr: 2e-5 } } },
  spen_ssvm: { trainer+: { epochs: 10 } },
};
local tuned(data, encoder) = if choose.is_pretrained(encoder) then pretrained else if data == 'sample' then small else bilstm;

{
  task(data, validation, test, split, trees)::
    local files = if trees == null || std.isArray(trees) then trees else [trees];
    { task: { type: 'e2e.arcs' } + choose.files(data_sets, data, validation, test, { trees: files }, split) },

  // `bilstm`, the name or folder of a Hugging Face model, or a table {type: …} of any feature network; and the arc-factored model.
  features(data, encoder):: {
    scorer:: tuned(data, encoder).scorer,
    inference_net: { type: 'e2e.arc_scorer' } + self.scorer,
    features:
      if std.isObject(encoder) then encoder
      else if encoder == 'bilstm' then tuned(data, encoder).features
      else { type: 'transformer', model: encoder },
  },

  method(data, encoder, name):: patches.method(methods, name, [start, tuned(data, encoder)]),
}
