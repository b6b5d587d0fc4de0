"""Whether a database client is given nothing but plain reading statements. Pure. Called from ``matching``.

For ``psql``, ``mysql``, ``mariadb``, ``sqlite3`` and ``clickhouse-client``. A function can do anything, so only
functions that are known to read are let through; what a client would obey itself (``\\!``, ``.shell``) is not.
"""

import re
from functools import cache
from typing import Final

from supervisor.decide.rules.arguments import Arguments, arguments_of
from supervisor.model.reading import Command, Word


def _table(flags: str, valued: str) -> dict[str, bool]:
    return {**dict.fromkeys(flags.split(), False), **dict.fromkeys(valued.split(), True)}


_PSQL: Final = _table(
    "-t -A -x -q -X -w -H -l -a -e -E -1 -b --tuples-only --no-align --expanded --quiet --no-psqlrc --no-password"
    " --html --list --csv --version -V",
    "-h -p -U -d -c -P -F -R --host --port --username --dbname --command --pset --field-separator --record-separator",
)
_MYSQL: Final = _table(
    "-N -B -s -t -E -H -v -r -C -p --batch --silent --skip-column-names --table --vertical --raw --column-names --html"
    " --compress --ssl --version -V --no-auto-rehash -A",
    "-h -P -u -D -e -S --host --port --user --database --execute --socket --connect-timeout --ssl-mode --password"
    " --protocol --default-character-set",
)
_SQLITE: Final = _table("-readonly -header -noheader -csv -json -line -column -list -table -box -markdown -version", "")
_CLICKHOUSE: Final = _table(
    "--vertical -E --multiquery -n --version -V",
    "-h -u -d -q -f --host --port --user --password --database --query --format --max_execution_time",
)
_STATEMENT_OPTIONS: Final = frozenset({"-c", "--command", "-e", "--execute", "-q", "--query"})
_TABLES: Final = {
    "psql": _PSQL,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlite3": _SQLITE,
    "clickhouse-client": _CLICKHOUSE,
}
_META: Final = {
    "psql": re.compile(r"\\(?:l|d[A-Za-z]*|conninfo|z|encoding)[S+]*(?:\s+[\w.*\"]+)?"),
    "sqlite3": re.compile(r"\.(?:tables|schema|databases|indexes|indices|dbinfo)(?:\s+[\w.%]+)?"),
}
_STARTS: Final = frozenset({"select", "show", "explain", "describe", "desc", "with", "table", "values", "use"})
_WRITING: Final = (
    "into insert update delete merge replace truncate drop alter create grant revoke copy call do execute prepare"
    " lock vacuum reindex cluster refresh set reset load import handler kill shutdown attach detach optimize system"
    " rename begin commit notify listen security share flush outfile dumpfile procedure pragma url file s3 remote"
)
_WRITES: Final = frozenset(_WRITING.split())
_WORD: Final = re.compile(r"\w+")
# The letters outside of ASCII that a search without regard to case takes for one of it.
_LIKE_ASCII: Final = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
_TELLS: Final = frozenset({"--version", "-V", "-version", "-l", "--list"})
_MARKS: Final = re.compile(r"[\\#$`]|--|/\*")
_FIRST_WORD: Final = re.compile(r"\(*\s*([A-Za-z]+)")
_SHOWS: Final = re.compile(r"[\w\s.,=<>%'*\"()]+")
_STRING: Final = re.compile(r"'[^'\\]*'")
# Looked for from the beginning of a name on only, for the sake of speed.
_CALL: Final = re.compile(r"((?<![A-Za-z_])[A-Za-z_][\w.]*|\")\s*\(")
_NOT_CALLS: Final = (
    "in and or not any all some exists values as over filter by on where having when then else from select using limit"
    " with union join between like is case recursive materialized explain"
)
_FUNCTION_NAMES: Final = (
    " count sum min max avg now age extract date_trunc date_part to_char to_timestamp date time timestamp"
    " interval round floor ceil ceiling trunc abs mod power sqrt greatest least coalesce nullif ifnull isnull if"
    " length char_length lower upper trim ltrim rtrim substring substr left right concat concat_ws position"
    " split_part string_agg array_agg array_length unnest json_agg jsonb_agg json_build_object json_extract"
    " row_to_json group_concat cast convert format row_number rank dense_rank lag lead first_value last_value"
    " ntile percentile_cont percentile_disc stddev variance generate_series version database schema user"
    " current_user current_database current_schema current_setting inet_server_addr pg_backend_pid pg_size_pretty"
    " pg_database_size pg_relation_size pg_total_relation_size pg_table_size pg_indexes_size pg_tablespace_size"
    " pg_is_in_recovery pg_postmaster_start_time pg_conf_load_time pg_last_xact_replay_timestamp"
    " pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_current_wal_lsn pg_wal_lsn_diff pg_blocking_pids"
    " pg_get_indexdef pg_get_constraintdef pg_get_viewdef pg_get_userbyid pg_stat_get_activity pg_locks"
    " pg_stat_file obj_description to_regclass txid_current_snapshot pg_is_wal_replay_paused curdate curtime"
    " date_format date_sub date_add datediff timestampdiff timediff unix_timestamp from_unixtime connection_id"
    " utc_timestamp hour minute day month year strftime datetime julianday typeof hex regexp_replace"
    " regexp_matches make_interval justify_interval uptime hostname todate tostartofhour formatreadablesize"
    " formatreadablequantity countif sumif uniq quantile tostring"
)
_SECRETS: Final = re.compile(
    r"\b(?:pg_shadow|pg_authid|rolpassword|passwd|authentication_string|pg_user_mapping\w*|mysql\s*\.\s*\w+|use\s+mysql|show\s+create\s+user)\b"
)


def only_reads_sql(command: Command) -> bool:
    """Whether the client runs statements that are written out, and each of them only reads."""
    table = _TABLES.get(command.name)
    if table is None:
        return False
    given = arguments_of(command, table)
    for one in given.options:
        attached_password = command.name in ("mysql", "mariadb") and one.name.startswith("-p")
        if (one.name not in table and not attached_password) or one.unknown:
            return False
    names = [one.name for one in given.options]
    if not _TELLS.isdisjoint(names):
        return _STATEMENT_OPTIONS.isdisjoint(names)
    words = [one.word for one in given.words]
    if any(word.maybe_option for word in words) or _opens_accounts(given):
        return False
    statements: list[Word | None] = [one.value for one in given.options if one.name in _STATEMENT_OPTIONS]
    if command.name == "sqlite3":
        statements, words = list(words[1:]), words[:1]
    return (
        bool(statements) and len(words) < 3 and all(one is not None and _reads(one, command.name) for one in statements)
    )


def _opens_accounts(given: Arguments) -> bool:
    """Whether the database is the one in which MySQL keeps its users."""
    named = [one.word for one in given.words]
    named += [one.value for one in given.options if one.name in ("-D", "--database") and one.value is not None]
    return any(not word.static or word.text.lower() == "mysql" for word in named)


def _reads(statement: Word, program: str) -> bool:
    text = statement.text.strip()
    if not statement.static:
        return False
    meta = _META.get(program)
    if meta is not None and meta.fullmatch(text):
        return True
    if program in ("mysql", "mariadb"):
        text = text.removesuffix("\\G")
    plain = _STRING.sub("''", text)
    if _MARKS.search(plain) or "'" in plain.replace("''", ""):
        return False
    statements = [one.strip() for one in plain.split(";")]
    return any(statements) and all(_statement_reads(one) for one in statements if one)


def _statement_reads(text: str) -> bool:
    first = _FIRST_WORD.match(text)
    small = (text if text.isascii() else text.translate(_LIKE_ASCII)).lower()
    if first is None or first[1].lower() not in _STARTS or _SECRETS.search(small):
        return False
    if first[1].lower() in ("show", "describe", "desc", "use"):
        return _SHOWS.fullmatch(text) is not None and not _CALL.search(text)
    return _WRITES.isdisjoint(_WORD.findall(small)) and all(
        name.lower() in _functions() for name in _CALL.findall(text)
    )


@cache
def _functions() -> frozenset[str]:
    return frozenset(f"{_NOT_CALLS}{_FUNCTION_NAMES}".split())
