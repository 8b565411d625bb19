"""`spen annotate`: annotates a corpus with a pipeline, shard by shard, on one machine or on many.

`sources` reads and cuts the input, `plan` writes the list of shards, `shards` annotates one shard, and `engines` and
`on_ray` distribute all shards. An engine passes plain data to a process: a `Job` and a `Shard`.
"""
