// Methods without an energy: cross entropy of the net's own distribution.
local cross_entropy = { has_energy:: false, trainer+: { type: 'cross_entropy' } };
{
  cross_entropy: cross_entropy,
  crf: cross_entropy { inference_net: { type: 'crf' } },
}
