// Crops of the Berkeley images.
{
  every: {
    task+: { crop: 40, repeat: 16 },
    player:: { type: 'adam', lr: 5e-3, weight_decay: 0, schedule: { type: 'cosine' } },
    // Whole images are larger than crops. The rate's course is planned to its end.
    trainer+: { epochs: 24, batch_size: 4, evaluation_batch_size: 2, patience: null },
  },
}
