// Constraints (spen-rules). Structured tuning (Li et al. 2020): a CRF goes on for five epochs with each core role at most once in
// its loss, at a third of its learning rate.
local baselines = import 'baselines.libsonnet';
{
  structured_tuning: baselines.crf {
    energy: { type: 'rules.unique_role' },
    energy_loss: { type: 'rules.violation', of: 'emissions' },
    trainer+: { local net = self.net, type: 'rules.tuning', tuning: net + { lr: net.lr / 3 } },
  },
}
