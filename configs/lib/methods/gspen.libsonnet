// Graph structured prediction energy networks (Graber & Schwing 2019): potentials of labels and of pairs with a hub, and a global term,
// learned one after the other; prediction is mirror ascent over beliefs. The first stage takes what is tuned for cross entropy.
{
  gspen: {
    local config = self,
    has_energy:: false,  // none of those that are tuned for others
    as:: ['cross_entropy'],
    mirror:: { steps: 20 },
    energy: { type: 'gspen.star' },
    energy_loss: { type: 'gspen.gap', mirror: config.mirror },
    inference_net: { type: 'gspen.mirror' } + config.mirror,
    trainer+: { type: 'gspen.staged' },
  },
}
