// Small helpers the libraries share.
{
  // The row of `table` called `name`, or an error that lists the known names and says `hint`.
  from(table, name, what, hint='')::
    if std.isString(name) && std.objectHas(table, name) then table[name]
    else error 'unknown %s %s; known: %s%s' % [what, std.manifestJsonEx(name, '', ''), std.join(', ', std.objectFields(table)), hint],

  // The row of a data set, or an error that says how to name a file.
  data(table, name):: $.from(table, name, 'data', '; or a file: ./%s' % std.toString(name)),

  // `fields` without those that are null: an argument left at null keeps what the tables say.
  given(fields):: { [key]: fields[key] for key in std.objectFields(fields) if fields[key] != null },

  // Those of the fields called `names` that `table` has.
  some(table, names):: { [key]: table[key] for key in names if std.objectHas(table, key) },

  // Whether `name` is a user's own file rather than a data set known by name: those have neither dot nor slash.
  is_path(name):: std.isString(name) && std.length([c for c in std.stringChars(name) if c == '.' || c == '/']) > 0,
}
