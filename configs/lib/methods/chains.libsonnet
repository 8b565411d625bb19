// A CRF that teaches: an energy of a linear chain learns by its likelihood, which makes it a CRF, and is then fixed while a net whose
// tags are independent learns from it and from gold (inference networks: Tu & Gimpel 2018; SEAL-static: Lee et al. 2022). The net's
// loss is KL(q‖p) beside cross entropy; each has half of the gradient.
{
  static_crf: {
    energy_loss: { type: 'likelihood' },
    trainer+: { type: 'seal.static', energy_epochs: 20, select: 'loss', energy_share: 0.5 },
  },
}
