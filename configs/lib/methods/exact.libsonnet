// Structures over label sets whose sums are exact (spen-exact), taught by the likelihood of gold: cross entropy with another net.
local baselines = import 'baselines.libsonnet';
local seal = import 'seal.libsonnet';

local taught(type) = baselines.cross_entropy { as:: ['cross_entropy'], inference_net+: { type: 'exact.' + type } };
{
  counts: taught('counts'),
  hierarchy: taught('hierarchy'),
  star: taught('star'),
  mixture: taught('mixture'),
  // An energy on top that learns its own ln Z from samples of the net.
  partition: seal.nce { as:: ['nce'], energy_loss: { type: 'exact.partition' } },
}
