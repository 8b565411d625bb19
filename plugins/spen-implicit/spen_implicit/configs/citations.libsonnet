// Fields of citations: data sets, and what a feature network sees of a word.
local choose = import 'lib/choose.libsonnet';
local energies = import 'lib/energies.libsonnet';
local baselines = import 'lib/methods/baselines.libsonnet';
local implicit = import 'lib/methods/implicit.libsonnet';
local label_sets = import 'lib/methods/label_sets.libsonnet';
local patches = import 'lib/patches.libsonnet';
local rules = import 'lib/methods/rules.libsonnet';

local cora = 'data:citations/cora/cora.tagged.txt';
local pools = { none: null, anystyle: 'data:citations/anystyle/good.xml' };
local tuned = {
  every: { pretrain_epochs:: 5, trainer+: { batch_size: 16, epochs: 40, patience: 10, net+: { type: 'adam', lr: 2e-3, clip: 5 } } },
  with_energy: energies.chain { trainer+: { epochs: 20, energy+: { type: 'adam', lr: 1e-2 } } },
  implicit_cd: { energy_loss+: { samples: 5 } },
  alternating_cd: self.implicit_cd,
  // These learn nothing from citations without fields.
  cross_entropy: { task+: { rest: false, unlabelled: null } },
  crf: self.cross_entropy,
  dvn: self.cross_entropy,
};
// `with_fields`: about how many of an epoch's citations have fields; the few that do come as often as it takes.
local files = { task: {}, tuned: tuned, bilstm: { hidden: 100, dropout: 0.5 }, with_fields: 150 };
local data_sets = {
  sample: files {
    task: { corpus: 'sample' },
    bilstm: { hidden: 32, dropout: 0.3 },
    with_fields: 60,
    tuned+: {
      every+: { trainer+: { epochs: 12, patience: 6, net+: { lr: 5e-3 } } },
      with_energy+: { trainer+: { epochs: 12 } },
    },
  },
  cora: files { task: { train: cora, parts: [300, 100, 100] } },
  // Your own files, named by task.train=… task.validation=… task.test=…
  files: files,
};

{
  task(data, validation, test, split, labelled, pool)::
    local pooled = if std.objectHas(pools, pool) then pools[pool] else pool;
    local set = choose.data(data_sets, data);
    {
      task: { type: 'implicit.citations' }
            + choose.files(data_sets, data, validation, test, split=split)
            + choose.given({ labelled: labelled, unlabelled: pooled })
            + (if std.isNumber(labelled) && labelled > 0 then { repeat: std.max(1, std.round(set.with_fields / labelled)) } else {}),
    },

  features(data):: {
    features: { type: 'bilstm', layers: 1, word_dim: 50, affix_dim: 32, case_dim: 8, column_dim: 16, word_dropout: 0.2 }
              + choose.data(data_sets, data).bilstm,
  },

  method(data, name, methods=baselines + implicit + { dvn: label_sets.dvn } + rules.of_file(baselines.crf, null)):: patches.method(methods, name, [choose.data(data_sets, data).tuned]),
}
