"""The checks that patterns ask for by name, each against what it lets through and what it stops."""

import pytest

from supervisor.decide.rules.checks import CHECKS
from supervisor.decide.rules.http_read import metadata_host
from supervisor.shell import read_shell


def passes(check: str, text: str) -> bool:
    commands = read_shell(text).commands
    return CHECKS[check](commands[-1], commands[-2] if len(commands) > 1 else None)


@pytest.mark.parametrize(
    "text",
    [
        "sed -n 1,5p f",
        "sed '$d' f",
        "sed -e 's/a/b/g' -e '/x/d' f",
        "sed 's,/a/,/b/,2p' f",
        r"sed 's/\//x/' f",
        "sed -n '/a/I,/b/{p;q}' f",
        "sed ':a;N;$!ba;s/\\n/ /g' f",
        "sed 'y/abc/xyz/' f",
        "sed '1i header' f",
        "sed -nE '/^(a|b)/p;10q' f",
        "sed -n '0~3p' f",
        r"sed '\,x,d' f",
    ],
)
def test_a_sed_that_only_prints_passes(text: str) -> None:
    assert passes("sed-read", text)


@pytest.mark.parametrize(
    "text",
    [
        "sed -i s/a/b/ f",
        "sed --in-place s/a/b/ f",
        "sed 'w f' f",
        "sed 's/a/b/w f' f",
        "sed 's/a/b/e' f",
        "sed '1e id' f",
        "sed 'r /etc/hosts' f",
        "sed -n 'p;p;W x' f",
        "sed -n '/a/{p\nw x\n}' f",
        "sed ':a;e id' f",
        "sed -f script f",
        'sed "$x" f',
        "sed 's/[/w x' f",
        "sed 's/a/b' f",
        "sed f $x",
        "sed",
    ],
)
def test_a_sed_that_may_do_more_does_not(text: str) -> None:
    assert not passes("sed-read", text)


@pytest.mark.parametrize(
    "statement",
    [
        "select 1",
        "SELECT count(*) FROM t WHERE a IN (1, 2)",
        "select * from t where note = 'drop table x; delete'",
        "select 1; select 2",
        "show max_connections",
        "explain analyze select * from t",
        "with a as (select 1) select * from a",
        r"\dt+ public.*",
        r"\l",
    ],
)
def test_a_statement_that_only_reads_passes(statement: str) -> None:
    assert passes("sql-read", f'psql -c "{statement}"')


@pytest.mark.parametrize(
    "statement",
    [
        "delete from t",
        "select 1; drop table t",
        "with x as (delete from t returning 1) select 1",
        "explain analyze delete from t",
        "select a into b from t",
        "select pg_terminate_backend(1)",
        "select my_function()",
        "select 1 -- x",
        "select 1 /* x */",
        "select * from t for update",
        "select * from pg_shadow",
        "show x; set y = 1",
        r"\! id",
        r"\copy t to x",
        r"\l \! id",
    ],
)
def test_a_statement_that_may_do_more_does_not(statement: str) -> None:
    assert not passes("sql-read", f"psql -c '{statement}'")


@pytest.mark.parametrize(
    "text",
    ["psql", "psql -f x", "psql -c 'select 1' -o x", 'psql -c "$x"', "mongosh --eval 'x'", "mysql mysql -e 'select 1'"],
)
def test_a_client_without_plain_statements_does_not_pass(text: str) -> None:
    assert not passes("sql-read", text)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "2852039166",
        "0xA9FEA9FE",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "metadata.google.internal",
        "METADATA",
        "100.100.100.200",
        "169.254.169.254.nip.io",
        "[1:2:3]",
    ],
)
def test_where_a_cloud_hands_out_credentials_is_recognised(host: str) -> None:
    assert metadata_host(host)


@pytest.mark.parametrize("host", ["localhost", "10.0.0.5", "127.0.0.1", "web", "[::1]", "example.com", "1.2.3.4.5"])
def test_other_hosts_are_not_taken_for_it(host: str) -> None:
    assert not metadata_host(host)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("curl -sS -m 5 http://web/", True, id="a plain read"),
        pytest.param("curl -so /dev/null -w '%{http_code}' http://web/", True, id="only the status"),
        pytest.param("curl -G --data-urlencode 'q=a b' http://web/", True, id="a query"),
        pytest.param("curl --data-urlencode 'q=a b' http://web/", False, id="a form"),
        pytest.param("curl -G --data-urlencode 'q@f' http://web/", False, id="a file as a query"),
        pytest.param("curl -H 'X-HTTP-Method-Override: DELETE' http://web/", False, id="a method by header"),
        pytest.param("curl http://user@169.254.169.254/", False, id="credentials of the cloud"),
        pytest.param('curl "http://$host/"', False, id="an unknown host"),
        pytest.param('curl "http://web:$port/$path"', True, id="an unknown port and path"),
        pytest.param("curl 'http://{a,b}/'", False, id="a host in braces"),
        pytest.param("curl file:///etc/hosts", False, id="another protocol"),
        pytest.param("curl", False, id="no address"),
        pytest.param("wget -qO- http://web/", True, id="wget to the terminal"),
        pytest.param("wget http://web/", False, id="wget to a file"),
        pytest.param("wget --spider -o log http://web/", False, id="wget with a log"),
    ],
)
def test_what_only_reads_over_http(text: str, expected: bool) -> None:
    assert passes("http-read", text) == expected


@pytest.mark.parametrize(
    ("check", "text", "expected"),
    [
        pytest.param("jq-read", "jq '.env | keys' f", True, id="a key called env"),
        pytest.param("jq-read", "jq -n env", False, id="the environment"),
        pytest.param("jq-read", "jq -n '$ENV.HOME'", False, id="the environment as a variable"),
        pytest.param("awk-read", "awk '{print $1}' f", True, id="an awk program that prints"),
        pytest.param("awk-read", "awk 'BEGIN{print ENVIRON[1]}'", False, id="an awk program that looks around"),
        pytest.param("plain-names", "systemctl restart web@1.service", True, id="a name"),
        pytest.param("plain-names", "service ../x restart", False, id="a path for a name"),
        pytest.param("plain-names", "systemctl restart 'web*'", False, id="a pattern for a name"),
        pytest.param("plain-mode", "chmod u+x,g-w f", True, id="an ordinary mode"),
        pytest.param("plain-mode", "chmod 4755 f", False, id="a mode that lends a user"),
        pytest.param("plain-mode", "chmod u+s f", False, id="the same in letters"),
        pytest.param("own-names", "export LANG=C", True, id="a harmless variable for others"),
        pytest.param("own-names", "export SOME_PLUGIN=x", False, id="any variable for others"),
        pytest.param("own-names", "declare -x SOME_PLUGIN=x", False, id="any variable for others, declared"),
        pytest.param("no-equals", "sysctl a.b", True, id="a setting that is read"),
        pytest.param("no-equals", "sysctl a.b=1", False, id="a setting that is set"),
        pytest.param("no-equals", 'sysctl "$x"', False, id="a setting that may be set"),
        pytest.param("no-input", "openssl s_client < /dev/null", True, id="empty input"),
        pytest.param("no-input", "echo | openssl s_client", True, id="an empty line"),
        pytest.param("no-input", "echo GET / | openssl s_client", False, id="something to say"),
        pytest.param("no-input", "openssl s_client < f", False, id="a file to send"),
        pytest.param("own-names", "read -r line", True, id="a variable of one's own"),
        pytest.param("own-names", "read -r PATH", False, id="a variable that steers"),
        pytest.param("own-names", 'read -r "$x"', False, id="a variable nobody knows"),
        pytest.param("own-names", "printf '%s' PATH", True, id="a word that is printed"),
        pytest.param("own-names", "printf -v PATH x", False, id="a variable that is printed into"),
        pytest.param("own-names", "declare -n x=PATH", False, id="another name for a variable"),
    ],
)
def test_the_small_checks(check: str, text: str, expected: bool) -> None:
    assert passes(check, text) == expected
