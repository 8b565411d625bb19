// A semi-Markov model of labelled spans (spen-exact), which learns by its likelihood as a CRF does; and one that teaches a net whose tags
// are independent, as `static_crf` does. Such a net gives tags that break the scheme some probability, which the model does not: the net
// learns the model's marginals by cross entropy, KL(p‖q), as KL(q‖p) is infinite.
local baselines = import 'baselines.libsonnet';
local chains = import 'chains.libsonnet';
{
  segments: baselines.cross_entropy { inference_net: { type: 'exact.segments' } },
  static_segments: chains.static_crf { energy_loss+: { marginals: true } },

  // The energy of `static_segments`, which comes after those of a data set.
  tables:: { static_segments: { energy: { type: 'exact.segments' } } },
}
