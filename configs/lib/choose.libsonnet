// Small helpers the libraries share.
{
  // The row of `table` called `name`, or an error that lists the known names.
  from(table, name, what)::
    if std.isString(name) && std.objectHas(table, name) then table[name]
    else error 'unknown %s %s; known: %s' % [what, std.manifestJsonEx(name, '', ''), std.join(', ', std.objectFields(table))],

  // `fields` without those that are null: an argument left at null keeps what the tables say.
  given(fields):: { [key]: fields[key] for key in std.objectFields(fields) if fields[key] != null },

  // Whether `name` is a user's own file rather than a data set known by name.
  is_path(name)::
    std.isString(name) && (
      std.length(std.findSubstr('/', name)) > 0
      || std.length([end for end in ['.arff', '.conll', '.gold_conll', '.txt', '.tsv'] if std.endsWith(name, end)]) > 0
    ),
}
