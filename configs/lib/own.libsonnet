// A user's own files may be few: then batches are smaller, and an epoch passes over them several times, so that epochs and patience mean
// enough updates.
{ every+: { trainer+: { epoch_updates: 100 } } }
