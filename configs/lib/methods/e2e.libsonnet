// End-to-end training (Belanger, Yang & McCallum 2017): a prediction is some gradient steps on the energy, from the output of a net,
// and the energy learns through them.
//
// The net learns alone at first, from cross entropy; the local terms of the energy begin as its copy. With the entropy that is added,
// the net's output is then where the steps end if the energy has nothing else.
{
  unrolled: {
    local config = self,
    local net = super.inference_net,
    local energy = config.energy,
    // The part of the energy with features and local scores.
    local part = if energy.type == 'sum' && std.objectHas(energy.terms, 'chain') then 'energy.terms.chain' else 'energy',
    // Another energy begins as it is.
    local known = part != 'energy' || std.member(['linear_chain', 'local', 'seal.labels'], energy.type)
                  || (energy.type == 'seal.self_attention' && std.get(energy, 'local', true)),
    init_epochs:: 30,
    inference_net: { type: 'e2e.unrolled', steps: 3, lr: 1, rates: 'learned', entropy: 1, net: net { bias: false } },
    trainer+: {
      type: 'e2e.unroll',
      init_epochs: config.init_epochs,
      clamped_epochs: 5,
      copies:
        if known then { [part + '.features']: 'inference_net.net.features', [part + '.local']: 'inference_net.net.output' } else {},
    },
  },
}
