// SEAL-dynamic (Lee et al. 2022), by the loss that trains the energy: the energy and the net take turns on each batch.
//
// The authors' schedule "score 12 : task 5" is 5 rounds of 12 updates of the energy and 1 of the net. Margin losses turn the
// players round: "1 : 6" is 6 updates of the net, then 1 of the energy.
local dynamic(loss, first='energy') = {
  energy_loss: { type: 'seal.' + loss },
  trainer+: { type: 'seal.dynamic', first: first, rounds: 1, energy+: { steps: 1, clip: null }, net+: { steps: 1 } },
};
{
  nce: dynamic('nce'),
  ranking: dynamic('ranking'),
  margin: dynamic('margin', first='net'),
  margin_compound: dynamic('margin_compound', first='net'),
  regression: dynamic('regression'),
  regression_s: dynamic('regression_s'),
}
