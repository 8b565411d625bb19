"""Tables of features and labels: ARFF, CSV, Parquet, libsvm, matrices."""
