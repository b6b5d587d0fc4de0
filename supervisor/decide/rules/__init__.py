"""Whether the rules of a tier let a tool call through. Pure. ``permission.permission`` is all there is to call.

``rule_pattern`` turns the text of a rule into its parts, for ``settings``. A shell text is judged command by command in
``shell_rules``, with ``matching`` (patterns over ``arguments``) and ``checks`` (what only reads: ``http_read``,
``sed_read``, ``sql_read``, ``ssh_settings``, ``own_names``); ``shell_text`` looks at the text as a whole. Other tools
are judged in ``file_tools``. What no rule can open is in ``off_limits`` and ``shut_paths``, over ``path_names``,
``path_patterns`` and ``unknown_places``. ``verdicts`` are the findings, of which the strictest counts.
"""
