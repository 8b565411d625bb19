// One-vs-rest logistic regression on the inputs themselves, as they are or as tf-idf, for label sets: the baseline that others have to beat.
// It takes none of the numbers that are tuned for nets.
{
  linear: {
    has_energy:: false,
    tuned:: false,
    features: { type: 'bag' },
    inference_net: { type: 'independent', bias: true },
    trainer: { type: 'one_vs_rest' },
  },
}
