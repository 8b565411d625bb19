// Finished runs that teach one net: init.energy names them, a run folder, a folder of them or a list. The mean of their probabilities is
// a fixed energy, E = −ln mean q, of which ln Z is 0. λ1 (trainer.energy_weight) stands beside gold cross entropy; both are in nats.
local taught(loss) = {
  has_energy:: false,
  as:: ['cross_entropy'],  // the net's own learning rate and dropout
  energy: { type: 'mean' },
  energy_loss: { type: 'likelihood' } + loss,
  trainer+: { type: 'seal.static', energy_epochs: 0 },
};
{
  // SEAL-static (Lee et al. 2022): E − H at the net's output, a bound of KL(q‖p).
  static_mean: taught({}),
  // Its control (Hinton et al. 2015): cross entropy against the mean probabilities, KL(p‖q) up to a constant.
  distillation: taught({ marginals: true }),
}
