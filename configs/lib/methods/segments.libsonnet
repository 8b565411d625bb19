// A semi-Markov model of labelled spans (spen-exact), which learns by its likelihood as a CRF does.
local baselines = import 'baselines.libsonnet';
{
  segments: baselines.cross_entropy { inference_net: { type: 'exact.segments' } },
}
