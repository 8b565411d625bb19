// Implicit training (Shankar & Piratla): the net minimises cross entropy and the energy of its output; the energy learns from a loss at
// the net that results. `trainer.inverse=none` makes each a control that leaves out the gradient through the net.
//
// `pretrain_epochs`: how long the net learns from cross entropy alone before that.
local bilevel(loss) = {
  local config = self,
  pretrain_epochs:: 0,
  energy_loss: loss,
  trainer+: { type: 'implicit.bilevel', net_epochs: config.pretrain_epochs },
};
{
  implicit_cd: bilevel({ type: 'implicit.cd', samples: 20 }),
  implicit_ssvm: bilevel({ type: 'seal.margin', cost: 'score' }),
  implicit_dvn: bilevel({ type: 'seal.regression' }),
  alternating_cd: self.implicit_cd { trainer+: { inverse: 'none' } },
}
