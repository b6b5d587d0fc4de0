"""Whether a ``curl`` or ``wget`` command does no more than read over HTTP. Pure. Called from ``matching``.

Only options that are listed here are let through, since what is new in the next version may write a file. Requests go
to addresses that are written out, and never to the one from which a cloud machine hands out its credentials.
"""

import re
from collections.abc import Mapping
from typing import Final

from supervisor.decide.rules.arguments import Arguments, GivenOption, arguments_of
from supervisor.model.reading import Command, Word


def _table(flags: str, valued: str) -> dict[str, bool]:
    return {**dict.fromkeys(flags.split(), False), **dict.fromkeys(valued.split(), True)}


_CURL: Final = _table(
    "-s -S -i -I -k -L -f -v -4 -6 -N -g -G -q -0 -# -V --silent --show-error --include --head --insecure --location"
    " --fail --fail-with-body --fail-early --verbose --ipv4 --ipv6 --no-buffer --globoff --get --disable --compressed"
    " --http1.0 --http1.1 --http2 --http2-prior-knowledge --http3 --progress-bar --no-progress-meter --path-as-is"
    " --tlsv1.0 --tlsv1.1 --tlsv1.2 --tlsv1.3 --anyauth --basic --digest --no-keepalive --tcp-nodelay --version"
    " --no-sessionid --retry-connrefused --retry-all-errors --no-location --no-silent",
    "-m -H -A -e -w -X -o -u -r -b -d -D --max-time --connect-timeout --header --user-agent --referer --write-out"
    " --request --output --user --range --cookie --data --data-urlencode --dump-header --retry --retry-delay"
    " --retry-max-time --max-redirs --max-filesize --resolve --connect-to --interface --url --cacert --capath"
    " --unix-socket --abstract-unix-socket --oauth2-bearer --noproxy --limit-rate --speed-time --speed-limit"
    " --tls-max --ciphers --keepalive-time --expect100-timeout --proto --proto-default --stderr -Y -y",
)
_WGET: Final = _table(
    "-q -S -nv -v -4 -6 -d --quiet --server-response --spider --no-verbose --verbose --no-check-certificate"
    " --inet4-only --inet6-only"
    " --no-cache --no-hsts --no-config --no-dns-cache --content-on-error --save-headers --version -V"
    " --no-cookies --no-proxy --debug",
    "-T -t -O -U -w --timeout --connect-timeout --read-timeout --dns-timeout --tries --output-document --header"
    " --user-agent --max-redirect --method --waitretry --ca-certificate --secure-protocol --referer",
)
_NOWHERE: Final = frozenset({"-", "/dev/null", "/dev/stdout", "/dev/stderr"})
_URL: Final = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://)?(?P<authority>[^/?#]*)(?P<rest>.*)", re.DOTALL)
_HOST: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]+)?")
_METADATA_NAMES: Final = re.compile(
    r"(?:.*\.)?metadata(?:\..*)?|instance-data(?:\..*)?|.*169[.-]254[.-].*|.*a9fea9fe.*", re.IGNORECASE
)
_METADATA_ADDRESSES: Final = frozenset(
    {0x646464C8, 0xA83F8110, 0xC00000C0}
)  # 100.100.100.200, 168.63.129.16, 192.0.0.192
_LINK_LOCAL: Final = 0xA9FE
_NUMBERS: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}")


def only_reads_http(command: Command) -> bool:
    """Whether this is a plain read of addresses that are written out."""
    if command.name == "curl":
        given = arguments_of(command, _CURL)
        return _known(given, _CURL) and _curl_reads(given)
    given = arguments_of(command, _WGET)
    return command.name == "wget" and _known(given, _WGET) and _wget_reads(given)


def metadata_host(host: str) -> bool:
    """Whether a host is, or may be, where a cloud machine asks for its own credentials; also if nobody can tell."""
    name = host.strip("[]").rstrip(".").lower()
    if ":" in name:
        from ipaddress import IPv6Address  # here, not above: few requests name an IPv6 address

        try:
            address = IPv6Address(name)
        except ValueError:
            return True
        mapped = int(address) & 0xFFFFFFFF
        return address.is_link_local or name.startswith("fd00:ec2") or mapped >> 16 == _LINK_LOCAL
    if _METADATA_NAMES.fullmatch(name):
        return True
    number = _ipv4(name)
    return number is not None and (number >> 16 == _LINK_LOCAL or number in _METADATA_ADDRESSES)


def _known(given: Arguments, table: Mapping[str, bool]) -> bool:
    for name, value, _, unknown in given.options:
        if name not in table or unknown or (value is not None and not _is_one_line(value)):
            return False
    return not any(one.word.maybe_option or one.word.splits for one in given.words)


def _is_one_line(value: Word) -> bool:
    """Whether a value stays one word, and adds no header of its own to a request."""
    return not value.splits and "\r" not in value.text and "\n" not in value.text


def _curl_reads(given: Arguments) -> bool:
    names = {one.name for one in given.options}
    gets = bool(names & {"-G", "--get"})
    if names & {"-V", "--version"}:
        return True
    urls = [one.word for one in given.words] + [o.value for o in given.options if o.name == "--url" and o.value]
    return all(_curl_option(one, gets=gets) for one in given.options) and bool(urls) and all(map(_url_reads, urls))


def _curl_option(one: GivenOption, *, gets: bool) -> bool:
    """Whether an option that is harmless by itself has a harmless value."""
    value = one.value
    if value is None:
        return not _CURL[one.name]
    match one.name:
        case "-X" | "--request":
            return value.static and value.text in ("GET", "HEAD", "OPTIONS")
        case "-o" | "--output" | "-D" | "--dump-header" | "--stderr":
            return value.static and value.text in _NOWHERE
        case "-d" | "--data" | "--data-urlencode":
            return gets and not value.leading and "@" not in value.text.partition("=")[0]
        case "-H" | "--header":
            return not value.leading and value.text[:1] != "@" and not _overrides_method(value.text)
        case "-w" | "--write-out":
            return value.static and value.text[:1] != "@" and "%output" not in value.text
        case "-b" | "--cookie":
            return not value.leading and "=" in value.text
        case "--connect-to" | "--resolve":
            return value.static and not any(map(metadata_host, value.text.split(":"))) and "[" not in value.text
        case "--proto" | "--proto-default":
            return value.static and not set(re.findall(r"[a-z]+", value.text)) - {"http", "https"}
        case _:
            return True


def _overrides_method(header: str) -> bool:
    """Whether a header makes more of a request: another method, or a connection on which to go on."""
    return re.match(r"\s*(?:x-(?:http-)?method(?:-override)?|upgrade)\s*:", header, re.IGNORECASE) is not None


def _wget_reads(given: Arguments) -> bool:
    goes_nowhere = False
    for one in given.options:
        match one.name:
            case "--spider" | "-V" | "--version":
                goes_nowhere = True
            case "-O" | "--output-document":
                if one.value is None or not one.value.static or one.value.text not in _NOWHERE:
                    return False
                goes_nowhere = True
            case "--method":
                if one.value is None or one.value.text not in ("GET", "HEAD"):
                    return False
            case "--header":
                if one.value is None or one.value.leading or _overrides_method(one.value.text):
                    return False
    return goes_nowhere and all(_url_reads(one.word) for one in given.words)


def _url_reads(word: Word) -> bool:
    """Whether a word is an HTTP address whose host is certain and not one that hands out credentials."""
    found = _URL.fullmatch(word.text)
    if found is None or (found["scheme"] or "http").lower() not in ("http", "https"):
        return False
    _, _, host_and_port = found["authority"].rpartition("@")
    # A port that is only known at run time still is a port.
    host = _HOST.fullmatch(re.sub(r":\$(?:\w+|\{\w+\})$", "", host_and_port) if word.dynamic else host_and_port)
    if host is None or metadata_host(host["host"]):
        return False
    # Without a scheme, curl takes it from the host's name.
    return found["scheme"] is not None or not re.match(
        r"(?:ftp|dict|ldap|imap|smtp|pop3)\.", host["host"], re.IGNORECASE
    )


def _ipv4(name: str) -> int | None:
    """The address a name means to a resolver that also takes octal, hexadecimal and shortened ones."""
    if not _NUMBERS.fullmatch(name):
        return None
    try:
        numbers = [
            int(part, 16) if part[:2] == "0x" else int(part, 8 if part[0] == "0" else 10) for part in name.split(".")
        ]
    except ValueError:
        return _LINK_LOCAL << 16
    number = 0
    for part in numbers[:-1]:
        number = number << 8 | part & 0xFF
    return (number << 8 * (5 - len(numbers)) | numbers[-1]) & 0xFFFFFFFF
