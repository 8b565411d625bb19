"""`spen annotate`: a corpus through a pipeline, shard by shard, on one machine or on many.

`sources` reads and cuts the input, `plan` writes down which shards there are, `shards` annotates one of them, `engines`
and `on_ray` have them all annotated. What an engine hands to a process is plain data: a `Job` and a `Shard`.
"""
