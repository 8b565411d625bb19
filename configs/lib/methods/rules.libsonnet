// Constraints, and the rules of a file (spen-rules).
local baselines = import 'baselines.libsonnet';
local implicit = import 'implicit.libsonnet';

// The rules' votes, an energy that is fixed, teach a net beside cross entropy. It takes none of the settings that are tuned for energies that learn.
local taught(loss, weight=1) = {
  has_energy:: false,
  energy: { type: 'rules.votes' },
  energy_loss: { type: 'rules.' + loss },
  trainer+: { type: 'seal.static', energy_epochs: 0, energy_weight: weight },
};
// An energy that predicts by gradient-based inference learns which of two outputs the rules prefer.
local ranked(pairs) = {
  inference_net: { type: 'gbi', starts: ['uniform'] },
  energy_loss: { type: 'rules.rank', pairs: pairs },
  trainer+: { type: 'energy', net_epochs: 0 },
};
{
  // Structured tuning (Li et al. 2020): a CRF goes on for five epochs with each core role at most once in its loss, at a third of its
  // learning rate.
  structured_tuning: baselines.crf {
    takes_energy:: true,
    energy: { type: 'rules.unique_role' },
    energy_loss: { type: 'rules.violation', of: 'emissions' },
    trainer+: { local net = self.net, type: 'rules.tuning', tuning: net + { lr: net.lr / 3 } },
  },

  // Methods by the rules of a file, on a net like that of `base`: their vote as it is; their vote as gold; the vote's energy;
  // generalized expectation (Mann & McCallum 2010); contrastive divergence; R-SPEN and SG-SPEN (Rooshenas et al. 2018, 2019).
  // The few training examples with gold come `repeat` times as often as the others; null: as the task says.
  of_file(base, repeat=20):: {
    local few = if repeat == null then {} else { task+: { repeat: repeat } },
    majority: { tuned:: false, has_energy:: false, inference_net: { type: 'rules.majority' }, trainer: { type: 'rules.untrained' } },
    votes: base + few + taught('imitation'),
    rules_energy: base + few + taught('violation'),
    expectation: base + few + taught('expectation', 10),
    rules_cd: implicit.alternating_cd + few { energy_loss+: { samples: 5, by_rules: true } },
    r_spen: few + ranked('iterates'),
    sg_spen: few + ranked('search'),
  },
}
